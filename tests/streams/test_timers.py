"""Timers of a partition: on time by an estimated clock, again until they count, and none too many."""

from dataclasses import replace

import pytest

from streams.core.events import (
    AttemptOverdue,
    DeadlinePassed,
    Event,
    JobBroken,
    JobReopened,
    JobSubmitted,
    Planned,
    RetryDue,
    SubTaskFailed,
    SubTaskStarted,
)
from streams.core.goal import Goal, Limits, Source
from streams.core.job import fold
from streams.core.plan import SubTask
from streams.core.release import release
from streams.core.states import Job, New, Open
from streams.core.values import PLAN, Inline, JobId
from streams.timers import AT_ONCE, KEPT, Timers
from tests.core.histories import JOB, START


class Partition:
    """One partition's jobs and timers, its clock moved by hand."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.timers = Timers(monotonic=lambda: self.seconds, chance=lambda: 0.5, grace_s=5.0)
        self.jobs: dict[JobId, Job] = {}
        self.timers.seen(START)

    def see(self, event: Event, *, at: int | None = None) -> None:
        """An event with the broker's time, or another one."""
        at = self.timers.now() if at is None else at
        self.timers.seen(at)
        self.to(event.job, fold(self.jobs.get(event.job, New()), replace(event, at=at))[0])

    def to(self, name: JobId, after: Job) -> None:
        """A job changes."""
        self.timers.arm(self.jobs.get(name, New()), after)
        self.jobs[name] = after

    def open(self, *, timeout_s: float = 10.0, deadline_s: float | None = None, job: JobId = JOB) -> None:
        """A job with one sub-task, not yet released."""
        limits = Limits(timeout_s=timeout_s, start_timeout_s=60.0)
        goal = Goal(text=Inline(value="x"), limits=limits, deadline_s=deadline_s)
        self.see(JobSubmitted(job=job, goal=goal, source=Source(topic="goals", partition=0, offset=0)))
        self.see(Planned(job=job, task=PLAN, attempt=1, plan=(SubTask(id="a", goal="x"),)))

    def start(self, *, job: JobId = JOB, attempt: int = 1) -> None:
        """A lane begins the attempt."""
        self.see(SubTaskStarted(job=job, task="a", attempt=attempt, run="r"))

    def due(self, *, after_s: float = 0.0) -> list[Event]:
        """What is due so many seconds later."""
        self.seconds += after_s
        return list(self.timers.due(self.jobs.__getitem__))


def test_an_overdue_attempt_comes_after_its_grace_and_each_second_until_it_counts() -> None:
    """The lane's own word comes first, if it comes."""
    partition = Partition()
    partition.open(timeout_s=10.0)
    partition.start()
    assert partition.timers.wait() == pytest.approx(15.0)
    assert partition.due(after_s=14.9) == []
    (event,) = partition.due(after_s=0.1)
    assert event == AttemptOverdue(job=JOB, task="a", attempt=1, retry_in=0.5)
    assert partition.due() == []
    assert partition.due(after_s=0.999) == []
    assert partition.due(after_s=0.001) == [event]
    partition.see(event)
    assert partition.due(after_s=0.499) == []
    assert partition.due(after_s=0.001) == [RetryDue(job=JOB, task="a", attempt=2)]


def test_a_command_that_no_lane_starts_is_overdue() -> None:
    """From its release on, without grace."""
    partition = Partition()
    partition.open()
    job = partition.jobs[JOB]
    assert isinstance(job, Open)
    partition.to(JOB, release(job, 1, partition.timers.now())[0])
    assert partition.due(after_s=59.9) == []
    assert partition.due(after_s=0.1) == [AttemptOverdue(job=JOB, task="a", attempt=1, retry_in=0.5)]


def test_a_command_in_line_behind_others_has_time_for_them_too() -> None:
    """Before they have run for as long as they may, nobody can say that it is lost."""
    partition = Partition()
    partition.open(timeout_s=10.0)
    job = partition.jobs[JOB]
    assert isinstance(job, Open)
    released, _ = release(job, 1, partition.timers.now())
    partition.timers.arm(job, released, ahead=2.5)
    partition.jobs[JOB] = released
    assert partition.due(after_s=84.9) == []
    assert partition.due(after_s=0.1) == [AttemptOverdue(job=JOB, task="a", attempt=1, retry_in=0.5)]


def test_of_many_that_are_due_at_the_same_time_each_has_its_turn() -> None:
    """No more are told than a batch folds, however slowly they are folded."""
    partition = Partition()
    for number in range(2 * AT_ONCE + 10):
        partition.open(deadline_s=20.0, job=f"acme/{number}")
    told = [partition.due(after_s=30.0 if turn == 0 else 0.0) for turn in range(4)]
    assert [len(events) for events in told] == [AT_ONCE, AT_ONCE, 10, 0]
    assert len({event.job for events in told for event in events}) == 2 * AT_ONCE + 10
    assert partition.due(after_s=1.0) == told[0]


def test_a_deadline_counts_from_the_goals_arrival() -> None:
    """And is over when the job is."""
    partition = Partition()
    partition.open(deadline_s=20.0)
    assert partition.due(after_s=19.9) == []
    assert partition.due(after_s=0.1) == [DeadlinePassed(job=JOB)]
    partition.see(DeadlinePassed(job=JOB))
    assert partition.due(after_s=100) == []
    assert partition.timers.wait() is None


def test_a_job_opened_again_has_its_time_once_more() -> None:
    """Also when it ended and went on within one batch; the old deadline is nobody's any more."""
    partition = Partition()
    partition.open(deadline_s=20.0)
    seen = partition.jobs[JOB]
    assert isinstance(seen, Open)
    partition.seconds += 15
    at = partition.timers.now()
    marker, _ = fold(seen, JobBroken(job=JOB, reason="test", at=at, offset=2))
    again = JobReopened(job=JOB, revision=2, submitted=seen.submitted, plan=(SubTask(id="a", goal="x"),))
    partition.to(JOB, fold(marker, replace(again, at=at, offset=3))[0])
    assert partition.due(after_s=19.9) == []
    assert partition.due(after_s=0.1) == [DeadlinePassed(job=JOB)]


def test_what_moved_on_by_itself_needs_no_timer() -> None:
    """The next attempt has one of its own."""
    partition = Partition()
    partition.open(timeout_s=10.0)
    partition.start()
    partition.see(SubTaskFailed(job=JOB, task="a", attempt=1, kind="x", reason="y", retry_in=30.0))
    assert partition.due(after_s=29.9) == []
    assert partition.due(after_s=0.1) == [RetryDue(job=JOB, task="a", attempt=2)]


def test_an_outage_is_not_the_attempts_fault() -> None:
    """Nobody owned the partition for an hour: its attempts get their time again, its deadlines do not."""
    partition = Partition()
    partition.open(timeout_s=10.0)
    partition.start()
    partition.open(timeout_s=10.0, deadline_s=600.0, job="acme/other")
    owner = Partition()  # restored: the rows' jobs, and the time of the last event
    for name, job in partition.jobs.items():
        owner.to(name, job)
    hour = 3_600_000
    owner.see(SubTaskStarted(job="acme/other", task="a", attempt=1, run="r"), at=START + hour)
    assert owner.due() == [DeadlinePassed(job="acme/other")]
    owner.see(DeadlinePassed(job="acme/other"))
    assert owner.due(after_s=14.9) == []
    assert owner.due(after_s=0.1) == [AttemptOverdue(job=JOB, task="a", attempt=1, retry_in=0.5)]


def test_memory_follows_the_work_under_way() -> None:
    """A timer of an attempt that ended long ago is not kept until it would have been due."""
    partition = Partition()
    for number in range(4 * KEPT):
        job = f"acme/{number}"
        partition.open(timeout_s=600.0, deadline_s=86_400.0, job=job)
        partition.start(job=job)
        partition.see(SubTaskFailed(job=job, task="a", attempt=1, kind="x", reason="y", final=True))
        assert partition.due() == []
    assert len(partition.timers._heap) <= KEPT + 2
