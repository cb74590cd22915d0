"""Pacing: never too much at once, nobody forgotten, tenants in turn."""

from dataclasses import replace

from hypothesis import given

from streams.core.commands import Command
from streams.core.events import Event, JobBroken, JobSubmitted, Planned, SubTaskSucceeded
from streams.core.goal import Goal, Limits, Source, TenantRules
from streams.core.job import fold
from streams.core.pacing import Pacing
from streams.core.plan import SubTask
from streams.core.states import Job, New, Open, Ready
from streams.core.turns import AGEING
from streams.core.values import ANSWER, PLAN, Inline, JobId
from tests.core.histories import Choices, choices


class Partition:
    """Jobs of one partition, paced as the orchestrator does it."""

    def __init__(self, window: int) -> None:
        self.pacing = Pacing(window)
        self.jobs: dict[JobId, Job] = {}
        self.out: list[Command] = []
        self.offset = 0

    def see(self, *events: Event) -> None:
        """Fold a batch."""
        before = {event.job: self.jobs.get(event.job, New()) for event in events}
        for event in events:
            self.offset += 1
            placed = replace(event, offset=self.offset)
            self.jobs[event.job], _ = fold(self.jobs.get(event.job, New()), placed)
        for job, old in before.items():
            self.pacing.touch(old, self.jobs[job])

    def release(self) -> list[Command]:
        """Let go what may go."""
        released = self.pacing.release(self.jobs.__getitem__, at=1)
        for after, _ in released:
            self.jobs[after.submitted.job] = after
        commands = [command for _, given_ in released for command in given_]
        self.out += commands
        return commands

    @property
    def outstanding(self) -> int:
        """Sub-tasks out, by the jobs."""
        return sum(job.outstanding for job in self.jobs.values() if isinstance(job, Open))


def submitted(job: JobId, *, priority: int = 5, concurrency: int = 32) -> JobSubmitted:
    """A goal of the tenant that the job's id names."""
    goal = Goal(
        text=Inline(value="x"),
        tenant=job.partition("/")[0],
        priority=priority,
        limits=Limits(concurrency=concurrency),
    )
    return JobSubmitted(job=job, goal=goal, source=Source(topic="goals", partition=0, offset=0))


def planned(job: JobId, count: int) -> Planned:
    """A plan of independent sub-tasks."""
    return Planned(
        job=job, task=PLAN, attempt=1, plan=tuple(SubTask(id=f"t{n}", goal="x") for n in range(count))
    )


def succeeded(command: Command) -> Event:
    """The command's good end."""
    if command.task == PLAN:
        return planned(command.job, 3)
    result = Inline(value=1)
    return SubTaskSucceeded(job=command.job, task=command.task, attempt=command.attempt, result=result)


@given(choices(600))
def test_neither_window_nor_concurrency_is_ever_exceeded_and_all_finish(made: Choices) -> None:
    """Pacing counts what the jobs count; while something is ready and there is room, it goes."""
    window = 1 + made.below(6)
    partition = Partition(window)
    names = [f"{made.of(('a', 'b', 'c'))}/{n}" for n in range(1 + made.below(8))]
    waiting = [submitted(name, priority=made.below(3), concurrency=1 + made.below(3)) for name in names]
    for _ in range(400):
        if waiting and made.below(3) == 0:
            partition.see(waiting.pop())
        elif partition.out:
            batch = [
                partition.out.pop(made.below(len(partition.out)))
                for _ in range(1 + made.below(2))
                if partition.out
            ]
            partition.see(*(succeeded(command) for command in batch))
        elif waiting:
            partition.see(waiting.pop())
        else:
            break
        partition.release()
        assert partition.pacing.outstanding == partition.outstanding == len(partition.out) <= window
        for job in partition.jobs.values():
            if isinstance(job, Open):
                limit = job.submitted.goal.limits.concurrency
                assert job.outstanding <= limit
                if partition.outstanding < window:
                    assert not job.ready or job.outstanding == limit
    assert not any(isinstance(job, Open) for job in partition.jobs.values())


def test_a_tenant_with_one_job_is_not_behind_anothers_hundred() -> None:
    """It gets the second free place."""
    partition = Partition(window=4)
    partition.see(*(submitted(f"big/{n}") for n in range(100)))
    assert len(partition.release()) == 4
    partition.see(submitted("small/1"))
    order: list[str] = []
    while len(order) < 3:
        partition.see(succeeded(partition.out.pop(0)))
        order += [command.job.partition("/")[0] for command in partition.release()]
    assert "small" in order[:2]


def test_tenants_take_turns() -> None:
    """One place each, round and round, however many jobs each has."""
    partition = Partition(window=1)
    partition.see(*(submitted(f"a/{n}") for n in range(5)), *(submitted(f"b/{n}") for n in range(2)))
    order: list[str] = []
    for _ in range(4):
        (command,) = partition.release()
        order.append(command.job.partition("/")[0])
        partition.see(Planned(job=command.job, task=PLAN, attempt=1, plan=()))  # no plan: the job ends
        partition.out.clear()
    assert order == ["a", "b", "a", "b"]


@given(choices(300))
def test_nobody_starves(made: Choices) -> None:
    """Between two of one tenant each that waits has one; of a tenant the most urgent goes, and the oldest.

    Now and then what has waited longest goes before it.
    """
    partition = Partition(window=1)
    waiting = {
        f"{made.of('abc')}/{n}": (-made.below(3), n) for n in range(1 + made.below(20))
    }  # by urgency and age
    partition.see(*(submitted(job, priority=-urgency) for job, (urgency, _) in waiting.items()))
    order: list[str] = []
    while waiting:
        if made.below(4) == 3:  # a job ends before its turn: that costs its tenant none
            ended = made.of(sorted(waiting))
            del waiting[ended]
            partition.see(JobBroken(job=ended, reason="x"))
        else:
            (command,) = partition.release()
            tenant = command.job.partition("/")[0]
            of_it = [job for job in waiting if job.startswith(tenant)]
            aged = (order.count(tenant) + 1) % AGEING == 0
            assert command.job == (of_it[0] if aged else min(of_it, key=waiting.__getitem__))
            if tenant in order:
                since = order[len(order) - order[::-1].index(tenant) :]
                assert {job.partition("/")[0] for job in waiting} - {tenant} <= set(since)
            order.append(tenant)
            del waiting[command.job]
            partition.see(Planned(job=command.job, task=PLAN, attempt=1, plan=()))


def test_a_tenant_with_three_times_the_weight_has_three_places_for_one() -> None:
    """The weight comes with the goal."""
    partition = Partition(window=1)
    for tenant, weight in (("a", 3), ("b", 1)):
        for n in range(12):
            event = submitted(f"{tenant}/{n}")
            partition.see(replace(event, goal=replace(event.goal, rules=TenantRules(weight=weight))))
    order = ""
    for _ in range(12):
        (command,) = partition.release()
        order += command.job[0]
        partition.see(Planned(job=command.job, task=PLAN, attempt=1, plan=()))
    assert order.count("a") == 9
    assert "bb" not in order


def test_a_wide_job_leaves_room_for_other_tenants() -> None:
    """A hundred ready sub-tasks of one get no more than their share while another's wait."""
    partition = Partition(window=8)
    partition.see(submitted("a/1", concurrency=100), submitted("b/1", concurrency=100))
    partition.release()
    partition.see(planned("a/1", 100), planned("b/1", 100))
    assert [command.job for command in partition.release()].count("a/1") == 4


def test_priority_goes_first_within_a_tenant() -> None:
    """Older jobs first among equals."""
    partition = Partition(window=1)
    partition.see(
        *(submitted(f"a/{name}", priority=p) for name, p in (("low", 1), ("old", 5), ("high", 9), ("new", 5)))
    )
    order: list[str] = []
    for _ in range(4):
        (command,) = partition.release()
        order.append(command.job)
        partition.see(Planned(job=command.job, task=PLAN, attempt=1, plan=()))
    assert order == ["a/high", "a/old", "a/new", "a/low"]


def test_older_jobs_of_equal_priority_finish_first() -> None:
    """A tenant's jobs run in their order, not all at once and all late."""
    partition = Partition(window=2)
    partition.see(submitted("a/first"), submitted("a/second"))
    assert len(partition.release()) == 2
    partition.see(planned("a/first", 6), planned("a/second", 6))
    order: list[str] = []
    for _ in range(6):
        for command in partition.release():
            order.append(command.job)
            partition.see(succeeded(command))
    assert order[:6] == ["a/first"] * 6


def test_one_job_alone_gets_the_whole_window() -> None:
    """Turns cost nothing while nobody else waits."""
    partition = Partition(window=64)
    partition.see(submitted("a/1", concurrency=100))
    partition.release()
    partition.see(planned("a/1", 100))
    assert len(partition.release()) == 64
    assert sum(isinstance(s, Ready) for s in partition.jobs["a/1"].states.values()) == 36  # type: ignore[union-attr]


def test_a_finished_job_gives_its_places_back() -> None:
    """Also those of attempts that nobody will hear of."""
    partition = Partition(window=2)
    partition.see(submitted("a/1"), submitted("a/2"), submitted("a/3"))
    first, _ = partition.release()
    assert partition.release() == []
    partition.see(Planned(job=first.job, task=PLAN, attempt=1, plan=()))
    (third,) = partition.release()
    assert (third.job, third.task) == ("a/3", PLAN)
    assert ANSWER not in partition.jobs["a/3"].states  # type: ignore[union-attr]
