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
    ApprovalGiven,
    ApprovalRefused,
    AttemptOverdue,
    ChildAnswered,
    DeadlinePassed,
    Event,
    GoalRejected,
    HedgeDue,
    JobBroken,
    JobCancelled,
    JobReopened,
    JobSubmitted,
    MoneyGiven,
    NoteWritten,
    PlaceGiven,
    Planned,
    RetryDue,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
    SubTaskSuspended,
)
from streams.core.goal import Approval, Budget, Goal, Hedging, JoinRule, Limits, Source, TenantRules, Weight
from streams.core.holding import waits_for_person
from streams.core.job import absorb
from streams.core.plan import Plan, SubTask
from streams.core.reopening import reopening, standing
from streams.core.states import Backoff, Finished, Job, New, Open, Ready, Released, Running, Suspended
from streams.core.values import ANSWER, PLAN, Grant, Inline, JobId, Reference, TaskId, Usage, Value

T = TypeVar("T")

JOB = "acme/goal-1"
START = 1_700_000_000_000
RATIOS = (0.0, 1.0, 0.25, 0.5, 0.75)
UNKNOWN = "nobody"
CHILD = "acme/child"


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
            notes=choices.below(4) == 3,
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
            subtask=choices.of((None, None, None, Grant(calls=2), Grant(tokens=50, usd=0.25))),
        ),
        limits=Limits(
            concurrency=1 + choices.below(4),
            timeout_s=choices.of((10.0, 0.5)),
            max_attempts=1 + choices.below(3),
            start_timeout_s=20.0,
            max_subtasks=choices.of((100, 9)),
            max_replans=choices.of((1, 2)),
        ),
        join=a_join(choices),
        gate=choices.below(6) == 5,
        grow=choices.below(2) == 0,
        notes=choices.below(2) == 0,
        on_failure=choices.of(("replan", "go_on")),
        approve=choices.of(APPROVE),
        hedge=Hedging(share=choices.of((1.0, 0.0, 0.3)), floor_s=0.2),
        rules=a_tenants_rules(choices),
    )


def a_tenants_rules(choices: Choices) -> TenantRules:
    """Half of them without a limit."""
    day = choices.of((None, None, Grant(calls=9, tokens=40_000), Grant(usd=1.0)))
    return TenantRules(jobs=choices.of((None, None, None, 2)), day=day)


def of_its_account(choices: Choices, job: Job) -> Event | None:
    """What the job's account answers it; None where it has been asked nothing, or does not answer yet."""
    if not isinstance(job, Open) or job.decided.asked == job.decided.given or choices.below(4) == 3:
        return None
    return from_account(choices, job.revision.number, job.decided.asked)


def from_account(choices: Choices, revision: int, n: int) -> Event:
    """A place, or more money, of a tenant that has more or less of it."""
    day = choices.of((Grant(calls=4, tokens=16_000), Grant(usd=0.5), Grant(calls=0, tokens=0), None))
    if n <= 1:
        return PlaceGiven(job=JOB, revision=revision, lease=day)
    reason, more = choices.of(("", "the day is spent")), day or Grant(calls=9, tokens=90_000)
    return MoneyGiven(job=JOB, revision=revision, n=n, more=more, reason=reason)


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
APPROVE: tuple[tuple[Approval, ...], ...] = (
    *((),) * 6,
    ("plan",),
    ("answer",),
    ("plan", "answer"),
    ("tools",),
)
FINGERPRINTS = ("", "aa:bb:", "ab:bb:", "cc:dd:")
VERDICTS: tuple[Value, ...] = (
    Inline(value={"contradictions": [{"tasks": ["t0", "t1"], "about": "the boats"}]}),
    Inline(value={"groups": [["t1", "t0"], ["t2"]], "order": ["t1", "t0", "t2"]}),
    Inline(value={"groups": [["candidate-1", "candidate-2", "candidate-3"]], "contradictions": []}),
    Inline(value={"order": ["candidate-3", "candidate-1", "candidate-2"]}),
    Inline(value="nonsense"),
)
AT_THE_GATE: tuple[Value, ...] = (
    *(Inline(value={"allow": True, "reason": ""}),) * 4,
    Inline(value={"allow": False, "reason": "no boats"}),
    Inline(value="nonsense"),
    CLAIM,
)
WAITS = (0.0, 0.0, 1.0, 6.5)
KINDS: tuple[type[Event], ...] = (
    *(SubTaskSucceeded,) * 16,
    *(SubTaskStarted,) * 9,
    *(SubTaskFailed,) * 9,
    *(AttemptOverdue, RetryDue) * 4,
    *(HedgeDue,) * 12,
    *(Planned, DeadlinePassed, JobSubmitted, GoalRejected, JobBroken),
    *(NoteWritten,) * 6,
    *(SubTaskSuspended, ChildAnswered, ApprovalGiven) * 2,
    *(ApprovalRefused, JobCancelled),
)


def said_of(task: TaskId) -> tuple[Value, ...]:
    """What may be the result of a sub-task or a step."""
    if task == "~gate":
        return AT_THE_GATE
    return VERDICTS if task in ("~judge", "~check") else VALUES


def a_source(choices: Choices) -> Source:
    """Where a goal stands."""
    return Source(topic="goals", partition=0, offset=choices.below(9))


def a_word(choices: Choices, kind: type[Event]) -> Event:
    """What a person says of the job."""
    source = a_source(choices)
    if kind is JobCancelled:
        return JobCancelled(job=JOB, by="ada", source=source)
    what: Approval | None = choices.of((None, "plan", "answer", "tools"))
    task = choices.of((None, "t0"))
    said: Any = ApprovalGiven if kind is ApprovalGiven else ApprovalRefused
    return said(job=JOB, what=what, task=task, by="ada", source=source)  # type: ignore[no-any-return]


def a_wait(choices: Choices, kind: type[Event], name: dict[str, Any]) -> Event:
    """An attempt waits for somebody, or the child that it waits for has its answer."""
    call, number = choices.of(("call-1", "call-2")), 1 + choices.below(2)
    if kind is ChildAnswered:
        answer = choices.of((*VALUES, None))
        size = 1_000 * choices.below(20)
        return ChildAnswered(**name, call=call, child=CHILD, outcome="partial", answer=answer, size=size)
    on: Any = choices.of(("approval", "child"))
    child = CHILD if on == "child" else None
    return SubTaskSuspended(**name, on=on, call=call, tool="send", child=child, journal=(7,), number=number)


def an_event(  # noqa: PLR0912 - a branch a kind
    choices: Choices, plan: Plan, task: TaskId, attempt: int
) -> Event:
    """An event of any kind, without its time and place."""
    kind = Planned if is_replan(task) and choices.below(3) else choices.of(KINDS)
    name: dict[str, Any] = {"job": JOB, "task": task, "attempt": attempt}
    if kind is SubTaskStarted:
        return SubTaskStarted(**name, run=choices.of(("run-1", "run-2")), number=choices.of((0, 0, 1)))
    if kind is SubTaskSucceeded:
        size = 1_000 * choices.below(200)
        return SubTaskSucceeded(
            **name,
            result=choices.of(said_of(task)),
            size=size,
            usage=a_usage(choices),
            fingerprint=choices.of(FINGERPRINTS),
            cites=choices.of(((), ("t0", "~reduce-1", "nobody"))),
            proposed=proposals(choices, task),
        )
    if kind is SubTaskFailed:
        final, wait = choices.below(4) == 3, choices.of(WAITS)
        word = choices.of(("rate_limited", UNREADABLE, STOPPED))
        return SubTaskFailed(
            **name, kind=word, reason="no", final=final, retry_in=wait, usage=a_usage(choices)
        )
    if kind in (SubTaskSuspended, ChildAnswered):
        return a_wait(choices, kind, name)
    if kind in (ApprovalGiven, ApprovalRefused, JobCancelled):
        return a_word(choices, kind)
    if kind is AttemptOverdue:
        return AttemptOverdue(**name, retry_in=choices.of(WAITS))
    if kind is RetryDue:
        return RetryDue(**name)
    if kind is HedgeDue:
        return HedgeDue(**name, after_ms=choices.of((0, 1_500, 5_000)))
    if kind is NoteWritten:
        return a_note(choices, name)
    if kind is Planned and is_replan(task):
        return Planned(**name, plan=another_plan(choices, task), usage=a_usage(choices))
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


def is_replan(task: TaskId) -> bool:
    """A step of a planner that is asked again."""
    return task.startswith("~replan")


def proposals(choices: Choices, task: TaskId) -> Plan:
    """What a sub-task proposes: mostly nothing, else good proposals and such as are refused."""
    parent = f"t{int(task[7:]) - 1}" if task.startswith("~hedge-") else task
    count = choices.of((0, 0, 0, 2, 1, 4))
    fault = choices.below(6)
    return tuple(
        SubTask(
            id=f"{parent}-{number + (fault == 5)}",
            goal=f"do {parent}-{number}",
            parent=None if fault == 4 else parent,
            dep=choices.of(((), (), (f"{parent}-1",) if number > 1 else (), ("t0",))),
            notes=choices.below(8) == 7,
        )
        for number in range(1, count + 1)
    )


def another_plan(choices: Choices, task: TaskId) -> Plan:
    """The plan of a planner that is asked again; now and then one that is refused."""
    names = [f"r{task[8:]}-{place}" for place in range(1 + choices.below(3))]
    wrong = choices.of((None, None, None, "t0"))
    return tuple(
        SubTask(
            id=wrong or name,
            goal=f"do {name}",
            dep=choices.of(((), ("t0",), tuple(names[:place]))),
            notes=choices.below(4) == 3,
        )
        for place, name in enumerate(names)
    )


def a_note(choices: Choices, name: dict[str, Any]) -> Event:
    """A write of a shared note, on one of few topics."""
    value = choices.of(VALUES)
    size = choices.of((9, 9, 9, 7_000, 70_000))
    return NoteWritten(
        **name,
        call=f"call-{choices.below(3)}",
        topic=choices.of(("boats", "names", "")),
        value=value,
        base=choices.below(4),
        size=size,
    )


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
        elif (word := of_its_account(choices, job)) is not None:
            event = word
        elif choices.below(24) == 23:
            event = from_account(choices, choices.of((1, 1, 2)), choices.below(3))
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
    if isinstance(after, Open) and waits_for_person(after) == "answer":
        after, _ = absorb(after, ApprovalGiven(job=JOB))
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
        if isinstance(state, Ready | Backoff | Released | Running | Suspended)
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
