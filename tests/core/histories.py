"""Histories to state laws over: what may stand on the log of one job, likely or not.

Half of the events are what would come next, the rest are redelivered ones, ones of other
attempts, of sub-tasks that the job has not, of other kinds than their sub-task has, and timers
before and after their time. Finished jobs are opened again, as an operator does it who redrives a
dead letter. Times never go back, as on a topic with LogAppendTime.

Everything is decided by bytes, of which 0 is the simplest choice: so Hypothesis makes a history
with one draw, in a fraction of a millisecond, and still shrinks it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hypothesis import strategies as st

from streams.core.commands import Effect
from streams.core.events import (
    STOPPED,
    UNREADABLE,
    AttemptOverdue,
    DeadlinePassed,
    Event,
    GoalRejected,
    HedgeDue,
    JobBroken,
    JobReopened,
    JobSubmitted,
    Planned,
    RetryDue,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
)
from streams.core.goal import Budget, Goal, Hedging, JoinRule, Limits, Source, Weight
from streams.core.job import absorb
from streams.core.plan import Plan, SubTask
from streams.core.reopening import reopening, standing
from streams.core.states import Backoff, Finished, Job, New, Open, Ready, Released, Running
from streams.core.values import ANSWER, PLAN, Inline, JobId, Reference, TaskId, Usage, Value

T = TypeVar("T")

JOB = "acme/goal-1"
START = 1_700_000_000_000
RATIOS = (0.0, 1.0, 0.25, 0.5, 0.75)
UNKNOWN = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One event, and what the fold made of it."""

    before: Job
    event: Event
    after: Job
    effects: tuple[Effect, ...]


def walk(history: list[Event]) -> Iterator[Step]:
    """Absorb one event after the other, beginning with no job."""
    job: Job = New()
    for event in history:
        after, effects = absorb(job, event)
        yield Step(before=job, event=event, after=after, effects=effects)
        job = after


class Choices:
    """Decisions, a byte each; the first option of all once the bytes are used up."""

    def __init__(self, data: bytes) -> None:
        self._left = iter(data)

    def below(self, count: int) -> int:
        """A number from 0, below *count* (at most 256)."""
        return next(self._left, 0) % count

    def of(self, options: Sequence[T]) -> T:
        """One of these."""
        return options[self.below(len(options))]


def a_plan(choices: Choices, most: int = 7) -> Plan:
    """An admitted plan: each sub-task may depend on any before it, now and then twice on one."""
    names = [f"t{place}" for place in range(1 + choices.below(most))]
    return tuple(
        SubTask(
            id=name,
            goal=f"do {name}",
            dep=tuple(choices.of(names[:place]) for _ in range(choices.below(4))) if place else (),
        )
        for place, name in enumerate(names)
    )


def a_goal(choices: Choices) -> Goal:
    """A goal with small limits, so that the rules have something to do."""
    return Goal(
        text=Inline(value="count the boats"),
        digest=choices.of(("one goal", "one goal", "another goal")),
        priority=choices.below(10),
        deadline_s=choices.of((None, 0.5, 20.0, 100.0)),
        budget=Budget(
            tokens=choices.of((None, None, 60, 300)),
            usd=choices.of((None, None, 0.5)),
            calls=choices.of((None, None, 5)),
        ),
        limits=Limits(
            concurrency=1 + choices.below(4),
            timeout_s=choices.of((10.0, 0.5)),
            max_attempts=1 + choices.below(3),
            start_timeout_s=20.0,
        ),
        join=a_join(choices),
        hedge=Hedging(share=choices.of((1.0, 0.0, 0.3)), floor_s=0.2),
    )


def a_join(choices: Choices) -> JoinRule:
    """A join rule; half of them as usual."""
    usual = JoinRule(min_success_ratio=choices.of(RATIOS), fail_fast_ratio=choices.of(RATIOS[::-1]))
    if choices.below(2) == 0:
        return usual
    return replace(
        usual,
        strategy=choices.of(("synthesize", "vote", "first", "rank", "synthesize", "concat", "table", "vote")),
        quorum=choices.of((None, None, 1, 2)),
        candidates=choices.of((None, None, None, 3)),
        equality=choices.of(("normalised", "exact", "judged")),
        counting=choices.of(("majority", "quorum", "weighted")),
        weights=choices.of(((), (Weight(model="m", weight=0.1),))),
        models=choices.of(((), ("m", "n"))),
        keep=choices.of((1, 2)),
        duplicates=choices.of(("keep", "exact", "near")),
        check=choices.below(2) == 1,
        tie_break=choices.below(2) == 1,
        chunk_bytes=choices.of((262_144, 40_000)),
    )


def a_usage(choices: Choices) -> Usage:
    """What an attempt cost, in dollars whose sums are exact."""
    return Usage(
        calls=choices.below(3),
        tokens_in=choices.below(60),
        tokens_out=choices.below(20),
        usd=choices.of((0.0, 0.25, 0.015625)),
        tool_calls=choices.below(2),
    )


CLAIM = Reference(topic="transcripts", partition=1, offsets=(4, 5), size=20_000, digest="ab" * 32)
VALUES: tuple[Value, ...] = (Inline(value=1), Inline(value="two"), Inline(value=[3, {"four": None}]), CLAIM)
FINGERPRINTS = ("", "aa:bb:", "ab:bb:", "cc:dd:")
VERDICTS: tuple[Value, ...] = (
    Inline(value={"contradictions": [{"tasks": ["t0", "t1"], "about": "the boats"}]}),
    Inline(value={"groups": [["t1", "t0"], ["t2"]], "order": ["t1", "t0", "t2"]}),
    Inline(value={"groups": [["candidate-1", "candidate-2", "candidate-3"]], "contradictions": []}),
    Inline(value={"order": ["candidate-3", "candidate-1", "candidate-2"]}),
    Inline(value="nonsense"),
)
WAITS = (0.0, 0.0, 1.0, 6.5)
KINDS: tuple[type[Event], ...] = (
    *(SubTaskSucceeded,) * 16,
    *(SubTaskStarted,) * 9,
    *(SubTaskFailed,) * 9,
    *(AttemptOverdue, RetryDue) * 4,
    *(HedgeDue,) * 12,
    *(Planned, DeadlinePassed, JobSubmitted, GoalRejected, JobBroken),
)


def a_source(choices: Choices) -> Source:
    """Where a goal stands."""
    return Source(topic="goals", partition=0, offset=choices.below(9))


def an_event(choices: Choices, plan: Plan, task: TaskId, attempt: int) -> Event:
    """An event of any kind, without its time and place."""
    kind = choices.of(KINDS)
    name: dict[str, Any] = {"job": JOB, "task": task, "attempt": attempt}
    if kind is SubTaskStarted:
        return SubTaskStarted(**name, run=choices.of(("run-1", "run-2")))
    if kind is SubTaskSucceeded:
        size = 1_000 * choices.below(200)
        return SubTaskSucceeded(
            **name,
            result=choices.of(VERDICTS if task in ("~judge", "~check") else VALUES),
            size=size,
            usage=a_usage(choices),
            fingerprint=choices.of(FINGERPRINTS),
            cites=choices.of(((), ("t0", "~reduce-1", "nobody"))),
        )
    if kind is SubTaskFailed:
        final, wait = choices.below(4) == 3, choices.of(WAITS)
        word = choices.of(("rate_limited", UNREADABLE, STOPPED))
        return SubTaskFailed(
            **name, kind=word, reason="no", final=final, retry_in=wait, usage=a_usage(choices)
        )
    if kind is AttemptOverdue:
        return AttemptOverdue(**name, retry_in=choices.of(WAITS))
    if kind is RetryDue:
        return RetryDue(**name)
    if kind is HedgeDue:
        return HedgeDue(**name, after_ms=choices.of((0, 1_500, 5_000)))
    if kind is Planned:
        return Planned(**name, plan=choices.of((plan, plan, broken(plan))), usage=a_usage(choices))
    if kind is DeadlinePassed:
        return DeadlinePassed(job=JOB)
    if kind is JobSubmitted:
        brought = choices.of(((), plan))
        return JobSubmitted(job=JOB, goal=a_goal(choices), source=a_source(choices), plan=brought)
    if kind is GoalRejected:
        return GoalRejected(job=JOB, reason="the priority is 11", source=a_source(choices))
    return JobBroken(job=JOB, reason="its row was too large", revision=choices.of((1, 1, 2)))


def broken(plan: Plan) -> Plan:
    """A plan that breaks the rules."""
    return (replace(plan[0], dep=("missing",)), *plan[1:])


def a_history(choices: Choices, most: int) -> list[Event]:
    """The events of one job, at most so many; some have no goal, and some goals bring a plan."""
    plan = a_plan(choices)
    submitted = JobSubmitted(job=JOB, goal=a_goal(choices), source=a_source(choices))
    planned = Planned(job=JOB, task=PLAN, attempt=1, plan=plan, usage=a_usage(choices))
    usual: list[Event] = [submitted, planned]
    if brought := choices.of(((), (), (), (), plan, plan, plan, broken(plan))):
        usual = [replace(submitted, plan=brought)]
    opening = usual[: choices.of((2, 2, 2, 2, 2, 2, 1, 0))]
    names = (*(task.id for task in plan), PLAN, ANSWER, UNKNOWN)
    history: list[Event] = []
    job: Job = New()
    at = START
    for number in range(choices.below(most + 1)):
        event: Event
        if number < len(opening):
            event = opening[number]
        elif isinstance(job, Finished) and job.outcome != "succeeded" and choices.below(2):
            event = a_reopening(choices, history) or DeadlinePassed(job=JOB)
        elif history and choices.below(6) == 5:
            event = choices.of(history)  # redelivered
        else:
            alive = _alive(job)
            if alive and choices.below(6) < 5:
                task, attempt = choices.of(alive)
            else:
                task, attempt = choices.of(names), choices.below(5)
            event = an_event(choices, plan, task, attempt)
        at += choices.of((0, 1, 300, 2_000, 30_000))
        event = replace(event, at=at, offset=number)
        history.append(event)
        job, _ = absorb(job, event)
    return history


def a_reopening(choices: Choices, history: list[Event]) -> Event | None:
    """A finished job is to go on, now and then with commands that no lane could read.

    None where its log does not allow it, or where nothing would be gained.
    """
    finished = standing(history, None)
    assert isinstance(finished, Finished)
    unread = [(e.task, e.attempt) for e in history if isinstance(e, SubTaskFailed) and e.kind == UNREADABLE]
    event = reopening(history, finished, redriven=unread if choices.below(4) < 3 else (), by="operator")
    after = New() if event is None else absorb(finished, replace(event, at=finished.at))[0]
    return None if isinstance(after, Finished) and after.outcome != "succeeded" else event


def named(event: Event, job: JobId) -> Event:
    """The same event, of another job."""
    if isinstance(event, JobReopened):
        return replace(event, job=job, submitted=replace(event.submitted, job=job))
    return replace(event, job=job)


def _alive(job: Job) -> list[tuple[TaskId, int]]:
    """Sub-tasks that can still move, with their attempts."""
    if not isinstance(job, Open):
        return []
    return [
        (task, state.attempt)
        for task, state in job.states.items()
        if isinstance(state, Ready | Backoff | Released | Running)
    ]


def choices(count: int) -> st.SearchStrategy[Choices]:
    """So many decisions."""
    return st.binary(min_size=count, max_size=count).map(Choices)


def histories(most: int = 40) -> st.SearchStrategy[list[Event]]:
    """Histories of one job with at most so many events, as above."""
    return choices(60 + 10 * most).map(lambda made: a_history(made, most))


def plans() -> st.SearchStrategy[Plan]:
    """Admitted plans, as above."""
    return choices(40).map(a_plan)
