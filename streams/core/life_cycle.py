"""The life cycle, printed by the code that decides it: ``python -m streams.core.life_cycle``.

Every state that some small jobs can reach is found by folding sample events into the states found
so far, beginning with none. The print is a Mermaid state diagram. Planning, Working and Joining are
phases of the state Open. A job that was opened again is not followed further: its life is the same.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from streams.core.events import (
    ApprovalGiven,
    ApprovalRefused,
    AttemptOverdue,
    DeadlinePassed,
    Event,
    GoalRejected,
    HedgeDue,
    JobBroken,
    JobCancelled,
    JobReopened,
    JobSubmitted,
    Kept,
    Planned,
    RetryDue,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
    SubTaskSuspended,
)
from streams.core.goal import Budget, Goal, Hedging, JoinRule, Limits, Source
from streams.core.hedging import is_hedge
from streams.core.job import fold
from streams.core.plan import Plan, SubTask
from streams.core.release import places, release
from streams.core.states import Account, Finished, Job, New, Open
from streams.core.values import ANSWER, PLAN, Inline, TaskId, Usage

_JOB = "sample/job"
_SOURCE = Source(topic="goals", partition=0, offset=0)
_DUE = 60_000
"""Milliseconds, later than all that is due before a retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A goal and its plan, small enough to look at every state they can reach."""

    goal: Goal
    plan: Plan


_NO_HEDGES = Hedging()


def _sample(
    plan: Plan, *, max_attempts: int, join: JoinRule, budget: Budget, hedge: Hedging = _NO_HEDGES
) -> Sample:
    limits = Limits(max_attempts=max_attempts, timeout_s=1.0)
    text = Inline(value="sample")
    goal = Goal(text=text, deadline_s=1.0, limits=limits, join=join, budget=budget, hedge=hedge)
    return Sample(goal=goal, plan=plan)


_A, _C = SubTask(id="a", goal="first"), SubTask(id="c", goal="besides")
_B = SubTask(id="b", goal="then", dep=("a",))
_WRONG: Plan = (SubTask(id="a", goal="first", dep=("nobody",)),)
_ASKS = Goal(
    text=Inline(value="sample"),
    limits=Limits(max_attempts=1, timeout_s=1.0),
    approve=("plan", "tools", "answer"),
)
SAMPLES = (
    _sample((_A, _B), max_attempts=2, join=JoinRule(), budget=Budget()),
    _sample((_A, _B, _C), max_attempts=1, join=JoinRule(fail_fast_ratio=0.5), budget=Budget()),
    _sample((_A, _C), max_attempts=1, join=JoinRule(), budget=Budget(calls=1)),
    _sample((_A, _B), max_attempts=1, join=JoinRule(), budget=Budget(), hedge=Hedging(share=0.5)),
    Sample(goal=_ASKS, plan=(_A,)),
    _sample((_A, _C), max_attempts=1, join=JoinRule(quorum=1), budget=Budget()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """One way from a state to another; *label* says what leads there."""

    before: str
    after: str
    label: str


def draw() -> str:
    """The diagram."""
    jobs: dict[Arrow, None] = {}
    tasks: dict[Arrow, None] = {}
    for sample in SAMPLES:
        for label, task, before, after in _changes(sample):
            if phase(before) != phase(after):
                of = f" of {task}" if task in {PLAN, ANSWER} else ""
                jobs.setdefault(Arrow(before=phase(before), after=phase(after), label=label + of))
            for name, old, new in _moved(before, after):
                of = "" if name == task else _relation(before, task, name)
                tasks.setdefault(Arrow(before=old, after=new, label=label + of))
    lines = ["stateDiagram-v2"]
    for name, arrows in (("Job", jobs), ("SubTask", tasks)):
        lines += [f"    state {name} {{", *(f"        {line}" for line in _lines(arrows)), "    }"]
    return "\n".join(lines) + "\n"


def _relation(job: Job, task: TaskId, moved: TaskId) -> str:
    """How the sub-task that an event is about stands to another one that it moves."""
    assert isinstance(job, Open)
    if is_hedge(job, task):
        return " of its hedge"
    if is_hedge(job, moved):
        return " of what it hedges"
    return " of a dependency" if moved in job.nodes[task].dependants else " of another"


def phase(job: Job) -> str:
    """What a job is at, in one word."""
    match job:
        case New() | Account():
            return "New"
        case Finished():
            return "Finished"
        case Open(states=states, nodes=nodes):
            return "Joining" if ANSWER in states else "Working" if nodes else "Planning"


def _lines(arrows: Iterable[Arrow]) -> Iterator[str]:
    """A line for each pair of states, with all that leads from one to the other."""
    labels: dict[tuple[str, str], list[str]] = {}
    for arrow in arrows:
        labels.setdefault((arrow.before, arrow.after), []).append(arrow.label)
    for (before, after), ways in labels.items():
        yield f"{before} --> {after}: {', '.join(ways)}"


def _changes(sample: Sample) -> Iterator[tuple[str, TaskId, Job, Job]]:
    """Every change that can come: what brings it, the sub-task it is about, the job before and after."""
    found = {repr(New())}
    waiting: list[Job] = [New()]
    while waiting:
        job = waiting.pop(0)
        for label, task, after in _next(job, sample):
            yield label, task, job, after
            if (key := repr(after)) not in found:
                found.add(key)
                if not (isinstance(after, Open) and after.revision.number > 1):
                    waiting.append(after)


def _next(job: Job, sample: Sample) -> Iterator[tuple[str, TaskId, Job]]:
    if isinstance(job, Open) and places(job) > 0:
        released, commands = release(job, 1, at=0)
        yield "released by pacing", commands[0].task, released
    for label, task, event in _events(job, sample):
        after, _ = fold(job, event)
        if after is not job:
            yield label, task, after


def _events(job: Job, sample: Sample) -> Iterator[tuple[str, TaskId, Event]]:
    bare = JobSubmitted(job=_JOB, goal=sample.goal, source=_SOURCE)
    yield "JobSubmitted", "", bare
    yield "JobSubmitted with a plan", "", replace(bare, plan=sample.plan)
    yield "JobSubmitted with a plan that breaks the rules", "", replace(bare, plan=_WRONG)
    yield "GoalRejected", "", GoalRejected(job=_JOB, reason="sample", source=_SOURCE)
    for task, state in job.states.items() if isinstance(job, Open) else ():
        yield from _attempts(task, getattr(state, "attempt", 1), sample)
    if sample.goal.approve:
        yield "ApprovalGiven", sample.plan[0].id, ApprovalGiven(job=_JOB)
        yield "ApprovalRefused", "", ApprovalRefused(job=_JOB)
    yield "JobCancelled", "", JobCancelled(job=_JOB)
    yield "DeadlinePassed", "", DeadlinePassed(job=_JOB, at=_DUE)
    yield "JobBroken", "", JobBroken(job=_JOB, reason="sample")
    result = Inline(value="sample")
    kept = tuple(Kept(task=each.id, attempt=1, result=result, size=8, offset=0) for each in sample.plan)
    for what, plan, results in (
        ("without a plan", (), ()),
        ("with a plan", sample.plan, kept[:1]),
        ("with all results", sample.plan, kept),
    ):
        again = JobReopened(job=_JOB, revision=2, submitted=bare, plan=plan, kept=results)
        yield f"JobReopened {what}", "", again


def _attempts(task: TaskId, attempt: int, sample: Sample) -> Iterator[tuple[str, TaskId, Event]]:
    """What can be told of one attempt."""
    usage = Usage(calls=0 if task == PLAN else 1)
    yield "SubTaskStarted", task, SubTaskStarted(job=_JOB, task=task, attempt=attempt, run="sample")
    if task == PLAN:
        yield "Planned", "", Planned(job=_JOB, task=task, attempt=attempt, plan=sample.plan)
        yield "Planned (breaks the rules)", "", Planned(job=_JOB, task=task, attempt=attempt, plan=_WRONG)
    else:
        result = Inline(value="sample")
        good = SubTaskSucceeded(job=_JOB, task=task, attempt=attempt, result=result, usage=usage)
        yield "SubTaskSucceeded", task, good
        if sample.goal.approve:
            waits = SubTaskSuspended(job=_JOB, task=task, attempt=attempt, on="approval", call="sample")
            yield "SubTaskSuspended", task, waits
    last = attempt == sample.goal.limits.max_attempts
    for wait, final in ((0.0, False), (1.0, False), (0.0, True)):
        how = " (for good)" if last or final else " (to wait)" if wait else ""
        failed = SubTaskFailed(
            job=_JOB, task=task, attempt=attempt, kind="sample", reason="sample", retry_in=wait, final=final
        )
        yield f"SubTaskFailed{how}", task, failed
        if not final:
            overdue = AttemptOverdue(job=_JOB, task=task, attempt=attempt, retry_in=wait, at=_DUE)
            yield f"AttemptOverdue{how}", task, overdue
    if sample.goal.hedge.share:
        due = HedgeDue(job=_JOB, task=task, attempt=attempt, after_ms=0, at=_DUE)
        yield "HedgeDue", task, due
    yield "RetryDue", task, RetryDue(job=_JOB, task=task, attempt=attempt, at=2 * _DUE)


def _moved(before: Job, after: Job) -> Iterator[tuple[TaskId, str, str]]:
    """Sub-tasks that are in another state than before: name, old state, new one."""
    if isinstance(before, Open) and isinstance(after, Open):
        for name, state in after.states.items():
            old = before.states.get(name)
            if old is not None and type(old) is not type(state):
                yield name, type(old).__name__, type(state).__name__


if __name__ == "__main__":
    sys.stdout.write(draw())
