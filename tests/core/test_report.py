"""Reports and progress: laws over any histories, and one run with exact figures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.events import (
    AttemptOverdue,
    DeadlinePassed,
    Event,
    GoalRejected,
    JobCancelled,
    JobReopened,
    JobSubmitted,
    Planned,
    RetryDue,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
)
from streams.core.goal import Budget, Goal, JoinRule, Limits, Source
from streams.core.plan import SubTask
from streams.core.values import ANSWER, NO_USAGE, PLAN, Inline, Usage
from streams.progress import JobProgress, Progress
from streams.report import CriticalPath, Jobs, Latency, Report, Step, SubTasks, latency, report, to_dict
from tests.core.histories import JOB, START, histories, named

SOURCE = Source(topic="goals", partition=0, offset=0)
RUNS = st.lists(histories(25), max_size=4).map(
    lambda made: {f"{JOB}-{n}": [named(e, f"{JOB}-{n}") for e in events] for n, events in enumerate(made)}
)


def progress_of(events_by_job: Mapping[str, Sequence[Event]]) -> Progress:
    """Progress that saw all these events."""
    progress = Progress()
    for events in events_by_job.values():
        for event in events:
            progress.feed(event)
    return progress


@given(RUNS)
def test_totals_are_the_sums_of_their_parts(run: dict[str, list[Event]]) -> None:
    """Whatever happened: no sub-task is counted twice, none is lost, and no part is more than the whole."""
    made = report(run)
    jobs, tasks = made.jobs, made.subtasks
    ended = jobs.succeeded + jobs.partial + jobs.failed + jobs.rejected + jobs.cancelled
    assert jobs.total == ended + jobs.unfinished
    assert tasks.total == tasks.succeeded + tasks.failed + tasks.skipped + tasks.unfinished
    assert made.run.count <= made.queue.count <= tasks.total
    assert made.planner_share + made.synthesis_share <= 1
    for taken in (made.queue, made.run):
        assert 0 <= taken.p50 <= taken.p99 <= made.wall_ms
        assert 0 <= taken.mean <= made.wall_ms
    if path := made.critical_path:
        assert path.ms == sum(step.ms for step in path.steps) <= made.wall_ms


@given(RUNS)
def test_report_and_progress_agree(run: dict[str, list[Event]]) -> None:
    """They count the same events by the same rules."""
    made, jobs = report(run), progress_of(run).jobs()
    assert made.jobs.total == len(jobs)
    assert made.jobs.unfinished == sum(job.phase != "finished" for job in jobs)
    assert made.subtasks.total == sum(job.total for job in jobs)
    assert made.subtasks.succeeded == sum(job.succeeded for job in jobs)
    assert made.subtasks.failed == sum(job.failed for job in jobs)
    assert made.subtasks.skipped == sum(job.skipped for job in jobs)
    assert made.usage.tokens == sum(job.usage.tokens for job in jobs)
    assert made.usage.usd == pytest.approx(sum(job.usage.usd for job in jobs))


@given(RUNS)
def test_an_event_seen_twice_changes_nothing(run: dict[str, list[Event]]) -> None:
    """Neither the report nor the progress."""
    twice = {job: [event for event in events for _ in range(2)] for job, events in run.items()}
    assert report(twice) == report(run)
    assert progress_of(twice).jobs() == progress_of(run).jobs()


@given(RUNS, st.randoms(use_true_random=False))
def test_the_order_of_jobs_does_not_matter(run: dict[str, list[Event]], chance: Any) -> None:
    """Nor how their events stand among one another."""
    jobs = list(run)
    chance.shuffle(jobs)
    assert report({job: run[job] for job in jobs}) == report(run)
    mixed = Progress()
    left = {job: list(reversed(events)) for job, events in run.items()}
    while waiting := [job for job, events in left.items() if events]:
        mixed.feed(left[chance.choice(waiting)].pop())
    assert {job.job: job for job in mixed.jobs()} == {job.job: job for job in progress_of(run).jobs()}


@given(histories(40))
def test_progress_adds_up_after_every_event(history: list[Event]) -> None:
    """Each sub-task is waiting, running or finished, and what is finished stays so until the job goes on."""
    progress, finished = Progress(), 0
    for event in history:
        progress.feed(event)
        finished = 0 if isinstance(event, JobReopened) else finished
        for job in progress.jobs():
            assert job.total == job.waiting + job.running + job.finished
            assert job.finished >= finished
            assert (job.phase == "finished") == (job.outcome is not None)
            finished = job.finished


class Log:
    """Writes the events of one job, at milliseconds after the start."""

    def __init__(self, job: str) -> None:
        self.job = job
        self.events: list[Event] = []

    def submitted(self, at: int, *plan: SubTask) -> None:
        """Its goal is accepted, with its plan where it brings one."""
        goal = Goal(text=Inline(value="count the boats"))
        self.add(JobSubmitted(job=self.job, goal=goal, source=SOURCE, plan=plan), at)

    def planned(self, start: int, end: int, *plan: SubTask, usage: Usage) -> None:
        """It is planned in this time."""
        self.started(PLAN, start)
        self.add(Planned(job=self.job, task=PLAN, attempt=1, plan=plan, usage=usage), end)

    def started(self, task: str, at: int, attempt: int = 1) -> None:
        """An attempt starts."""
        self.add(SubTaskStarted(job=self.job, task=task, attempt=attempt, run="r"), at)

    def done(self, task: str, at: int, usage: Usage, attempt: int = 1) -> None:
        """An attempt brings a result."""
        name: dict[str, Any] = {"job": self.job, "task": task, "attempt": attempt}
        self.add(SubTaskSucceeded(**name, result=Inline(value=1), usage=usage), at)

    def failed(self, task: str, at: int, **more: Any) -> None:
        """Its first attempt fails."""
        self.add(SubTaskFailed(job=self.job, task=task, attempt=1, kind="timeout", reason="late", **more), at)

    def add(self, event: Event, at: int) -> None:
        """Any event."""
        self.events.append(replace(event, at=START + at, offset=len(self.events)))


def call(tokens: int, usd: float = 0.0, cached: int = 0) -> Usage:
    """One call with so many tokens in, and a tenth of them out."""
    return Usage(calls=1, tokens_in=tokens, tokens_cached=cached, tokens_out=tokens // 10, usd=usd)


def fan_in() -> Log:
    """Two sub-tasks, one of them with a retry, and one that joins them."""
    log = Log("acme/fan-in")
    log.submitted(0)
    plan = (
        SubTask(id="a", goal="a"),
        SubTask(id="b", goal="b"),
        SubTask(id="join", goal="c", dep=("a", "b")),
    )
    log.planned(10, 110, *plan, usage=call(1000, 0.5))
    log.started("a", 120)
    log.started("b", 130)
    log.failed("b", 180, retry_in=0.1, usage=call(100))
    log.add(RetryDue(job=log.job, task="b", attempt=2), 280)
    log.started("b", 300, attempt=2)
    log.done("a", 320, call(100, 0.25, cached=50))
    log.done("b", 500, call(100, 0.25, cached=50), attempt=2)
    log.started("join", 505)
    log.done("join", 605, call(200))
    log.started(ANSWER, 610)
    log.done(ANSWER, 710, call(500, 0.5))
    return log


def broken_chain() -> Log:
    """A sub-task that fails for good, two that are skipped for it, and one that still runs."""
    log = Log("acme/chain")
    log.submitted(100)
    plan = (
        SubTask(id="x", goal="x"),
        SubTask(id="y", goal="y", dep=("x",)),
        SubTask(id="z", goal="z", dep=("y",)),
        SubTask(id="w", goal="w"),
    )
    log.planned(100, 200, *plan, usage=call(500, 0.5))
    log.started("x", 240)
    log.started("w", 300)
    log.failed("x", 340, final=True)
    return log


def test_jobs_that_a_person_ended_are_told() -> None:
    """They are neither failed nor unfinished."""
    log = Log("acme/cancelled")
    log.submitted(0, SubTask(id="a", goal="a"))
    log.add(JobCancelled(job=log.job, by="ada"), 10)
    made = report({log.job: log.events})
    assert (made.jobs.total, made.jobs.cancelled, made.jobs.unfinished) == (1, 1, 0)


def test_what_is_told_after_the_end_of_a_sub_task_is_no_start_of_it() -> None:
    """Its only attempt was lost before anybody said that it began; what it cost counts."""
    log = Log("acme/late")
    goal = Goal(text=Inline(value="x"), budget=Budget(tokens=30_000), limits=Limits(max_attempts=1))
    goal = replace(goal, join=JoinRule(min_success_ratio=0.0, fail_fast_ratio=1.0))
    plan = (SubTask(id="a", goal="a"), SubTask(id="b", goal="b"))
    log.add(JobSubmitted(job=log.job, goal=goal, source=SOURCE, plan=plan), 0)
    log.add(AttemptOverdue(job=log.job, task="a", attempt=1), 150_000)
    log.add(SubTaskSucceeded(job=log.job, task="a", attempt=1, result=Inline(value=1), size=1), 150_010)
    made = report({log.job: log.events})
    assert made.run.count == 0
    assert made.queue.count == 0


def rejected() -> Log:
    """A goal that could not be accepted."""
    log = Log("acme/odd")
    log.add(GoalRejected(job=log.job, reason="the priority is 11", source=SOURCE), 1000)
    return log


def test_a_run_with_exact_figures() -> None:
    """Three jobs: one that succeeds after a retry, one still under way, one rejected."""
    logs = (fan_in(), broken_chain(), rejected())
    made = report({log.job: log.events for log in logs}, simulated=True)
    assert made == Report(
        jobs=Jobs(total=3, succeeded=1, partial=0, failed=0, rejected=1, cancelled=0, unfinished=1),
        subtasks=SubTasks(total=7, succeeded=3, failed=1, skipped=2, unfinished=1, rate=3 / 7),
        wall_ms=1000,
        queue=Latency(count=5, mean=(10 + 20 + 5 + 40 + 100) / 5, p50=20, p99=100),
        run=Latency(count=4, mean=(200 + 370 + 100 + 100) / 4, p50=100, p99=370),
        usage=Usage(calls=7, tokens_in=2500, tokens_cached=100, tokens_out=250, usd=2.0),
        planner_share=1650 / 2750,
        synthesis_share=550 / 2750,
        usd_per_subtask=2.0 / 7,
        simulated=True,
        throughput=4.0,
        critical_path=CriticalPath(
            job="acme/fan-in",
            steps=(
                Step(task=PLAN, ms=100),
                Step(task="b", ms=370),
                Step(task="join", ms=100),
                Step(task=ANSWER, ms=100),
            ),
            ms=670,
        ),
    )
    as_json = orjson.loads(orjson.dumps(to_dict(made)))
    assert as_json == orjson.loads(orjson.dumps(made))
    assert as_json["critical_path"]["steps"][1] == {"task": "b", "ms": 370}


def test_a_goal_with_its_plan_waits_for_no_planner() -> None:
    """Its sub-tasks queue from its arrival; a job of one has neither planning nor synthesis on its path."""
    log, progress = Log("acme/brought"), Progress()
    log.submitted(0, SubTask(id="a", goal="", tool="count_boats"))
    progress.feed(log.events[0])
    assert (progress.of(log.job).phase, progress.of(log.job).waiting) == ("running", 1)
    log.started("a", 10)
    log.done("a", 40, NO_USAGE)
    for event in log.events:
        progress.feed(event)
    assert progress.of(log.job).outcome == "succeeded"
    made = report({log.job: log.events})
    assert (made.queue, made.run) == (
        Latency(count=1, mean=10, p50=10, p99=10),
        Latency(count=1, mean=30, p50=30, p99=30),
    )
    assert made.critical_path == CriticalPath(job=log.job, steps=(Step(task="a", ms=30),), ms=30)
    assert (made.jobs.succeeded, made.planner_share, made.synthesis_share) == (1, 0, 0)


def test_progress_of_a_run() -> None:
    """The same jobs, as somebody sees them who watches."""
    logs = (fan_in(), broken_chain(), rejected())
    progress = progress_of({log.job: log.events for log in logs})
    assert progress.jobs() == (
        JobProgress(
            job="acme/fan-in",
            text="count the boats",
            phase="finished",
            outcome="succeeded",
            total=3,
            succeeded=3,
            usage=Usage(calls=6, tokens_in=2000, tokens_cached=100, tokens_out=200, usd=1.5),
        ),
        JobProgress(
            job="acme/chain",
            text="count the boats",
            phase="running",
            total=4,
            running=1,
            failed=1,
            skipped=2,
            usage=call(500, 0.5),
        ),
        JobProgress(
            job="acme/odd", text="", phase="finished", outcome="rejected", reason="the priority is 11"
        ),
    )


def test_progress_names_the_phase() -> None:
    """From the goal to the answer; a sub-task between two attempts waits."""
    log, progress = fan_in(), Progress()
    seen: list[tuple[str, int, int, int]] = []
    for event in log.events:
        progress.feed(event)
        job = progress.of(log.job)
        line = (job.phase, job.waiting, job.running, job.finished)
        seen += [line] if line not in seen[-1:] else []
    assert seen == [
        ("planning", 0, 0, 0),
        ("running", 3, 0, 0),
        ("running", 2, 1, 0),
        ("running", 1, 2, 0),
        ("running", 2, 1, 0),
        ("running", 1, 2, 0),
        ("running", 1, 1, 1),
        ("running", 1, 0, 2),
        ("running", 0, 1, 2),
        ("answering", 0, 0, 3),
        ("finished", 0, 0, 3),
    ]


def test_progress_knows_no_job_that_it_has_not_seen() -> None:
    """Events of a job whose goal was not seen are passed over."""
    progress = Progress()
    progress.feed(DeadlinePassed(job=JOB, at=START))
    assert progress.jobs() == ()
    with pytest.raises(KeyError):
        progress.of(JOB)


def test_nothing_is_nothing() -> None:
    """No division by it."""
    made = report({})
    assert made.jobs.total == made.subtasks.total == made.wall_ms == 0
    assert made.throughput == made.subtasks.rate == made.usd_per_subtask == 0
    assert made.critical_path is None


@pytest.mark.parametrize(
    ("count", "p50", "p99"), [(1, 1, 1), (2, 1, 2), (99, 50, 99), (100, 50, 99), (200, 100, 198)]
)
def test_percentiles_are_measurements(count: int, p50: int, p99: int) -> None:
    """By nearest rank: the smallest value that so many percent do not exceed."""
    taken = latency([*range(count, 0, -1), None])
    assert (taken.count, taken.p50, taken.p99) == (count, p50, p99)
    assert taken.mean == (count + 1) / 2


def test_what_ended_at_once_counts_the_time_it_says_it_ran() -> None:
    """No event tells of its start: its end less the time it ran is when it began."""
    log = Log("acme/at-once")
    log.submitted(0, SubTask(id="a", goal="", tool="noop"), SubTask(id="b", goal="", tool="noop"))
    for task, at, ran_ms in (("a", 50, 20), ("b", 60, 0)):
        event = SubTaskSucceeded(job=log.job, task=task, attempt=1, result=Inline(value=1), ran_ms=ran_ms)
        log.add(event, at)
    made = report({log.job: log.events})
    assert (made.run.count, made.run.mean, made.run.p99) == (2, 10.0, 20)
    assert (made.queue.count, made.queue.p50, made.queue.p99) == (2, 30, 60)
