"""What it takes to let a finished job go on: read from its events, since only a marker of it is kept."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from streams.core.admission import problems
from streams.core.approvals import HEARD
from streams.core.events import (
    UNREADABLE,
    ApprovalGiven,
    ApprovalRefused,
    Event,
    JobCancelled,
    JobReopened,
    Kept,
    Planned,
    RetryDue,
    SubTaskFailed,
    SubTaskSucceeded,
    Tried,
)
from streams.core.goal import Source
from streams.core.job import absorb
from streams.core.money import lost_attempts, spent, unheard
from streams.core.moves import put, spend
from streams.core.opening import nodes_of
from streams.core.replanning import standing as standing_in
from streams.core.results import on_the_log, too_large
from streams.core.states import Backoff, Finished, Job, New, Open, SubTaskState, Succeeded, Waiting
from streams.core.values import ANSWER, NO_USAGE, PLAN, STEP, Inline, TaskId

Ended: TypeAlias = Planned | SubTaskSucceeded | SubTaskFailed
"""What an attempt's end is told by."""

What: TypeAlias = tuple[type[Event], TaskId, int, bool]


def standing(events: Iterable[Event], marker: Finished | None) -> Job:
    """The job as the last of its events leaves it.

    Args:
        marker: Its row of the table, where that says how it ended: more certain than today's rules,
            and left when the beginning of the log is not.
    """
    job: Job = New() if marker is None else marker
    for event in events:
        if marker is None or event.offset > marker.offset:
            job, _ = absorb(job, event)
    return job


def reopening(
    events: Sequence[Event],
    finished: Finished,
    *,
    redriven: Collection[tuple[TaskId, int]] = (),
    by: str = "",
) -> JobReopened | None:
    """The event that opens a finished job again; None where a person ended it, or its log has no beginning.

    Results that came after the time of their attempt, or after the job had ended, are kept, too: they
    are paid for. What another plan took the place of is no part of it any more.

    What was granted to attempts that had begun and never told their end counts as spent.

    Args:
        events: Of the job, all that the log has.
        redriven: Sub-tasks and attempts whose commands are to go on their lanes again. Only those of
            which nothing ever ran are taken, and none of a job with a budget: what they were granted
            may be spent by now. Any other sub-task gets a new command.
        by: Who asks.
    """
    last = next((each for each in events if each.offset == finished.offset), None)
    if isinstance(last, ApprovalRefused | JobCancelled):
        return None
    job, unused = _before(events, finished)
    if job is None or job.submitted.goal.digest != finished.digest:
        return None
    silent = unheard(job, frozenset((event.task, event.attempt) for event in unused))
    job = _with_late_results(job, unused)
    kept = [task for task in job.nodes if isinstance(job.states[task], Succeeded)]
    large = too_large(job, kept)
    # Steps, too, those of an earlier revision among them: no attempt may run under the name of another.
    earlier = (each.task for each in job.revision.tried)
    names = dict.fromkeys((*job.nodes, PLAN, ANSWER, *job.steps, *earlier))
    tried = {task: _tried(job, task) for task in names if task not in kept}
    return JobReopened(
        job=job.submitted.job,
        revision=finished.revision + 1,
        submitted=replace(job.submitted, plan=()),
        plan=tuple(job.nodes[name].task for name in standing_in(job)),
        kept=tuple(_kept(job, task, by_claim=task in large) for task in kept),
        tried=tuple(Tried(task=task, attempt=attempt) for task, attempt in tried.items() if attempt),
        redriven=tuple(
            task
            for task, attempt in dict.fromkeys(redriven)
            if attempt
            and not task.startswith(STEP)  # it begins anew, if at all
            and tried.get(task) == attempt
            and not (job.submitted.goal.budget.limited or job.submitted.goal.rules.limited)
            and _never_ran(events, task, attempt)
        ),
        spent=spent(job) + silent,
        by=by,
        heard=_heard(job, last),
    )


def _heard(job: Open, last: Event | None) -> tuple[Source, ...]:
    """Where people's words stand that the job has heard; the last one may have ended it."""
    heard = job.decided.heard
    if isinstance(last, ApprovalGiven) and last.source is not None and last.source not in heard:
        heard = (*heard, last.source)[-HEARD:]
    return heard


def _before(events: Iterable[Event], finished: Finished) -> tuple[Open | None, list[Ended]]:
    """The job as it was when it was last open, and what its attempts brought that did not count."""
    job: Job = New()
    last: Open | None = None
    counted: set[What] = set()
    unused: list[Ended] = []
    for event in events:
        before = job
        if event.offset < finished.offset:
            job, _ = absorb(before, event)
            last = job if isinstance(job, Open) else last
        if isinstance(event, JobReopened) and job is not before:
            counted |= set(map(_what, unused))
            unused = []
        if isinstance(event, Ended):
            if isinstance(job, Open) and job is not before:
                counted.add(_what(event))
                if isinstance(before, Open) and (event.task, event.attempt) in lost_attempts(before):
                    unused.append(replace(event, usage=NO_USAGE))  # what it cost is counted, and no more
            elif _what(event) not in counted and last is not None and _is_of(last, event):
                unused.append(event)
    return last, unused


def _with_late_results(job: Open, unused: Iterable[Ended]) -> Open:
    """The job with what its attempts brought too late: after their time, or after its end."""
    seen: set[What] = set()
    for event in unused:
        if _what(event) in seen:
            continue
        seen.add(_what(event))
        job = spend(job, event.usage)
        match event:
            case SubTaskSucceeded(task=task, attempt=attempt, result=result, size=size) if (
                task in job.nodes and not isinstance(job.states[task], Succeeded)
            ):
                result_of = Succeeded(
                    attempt=attempt,
                    result=result,
                    size=size,
                    offset=event.offset,
                    fingerprint=event.fingerprint,
                )
                job = put(job, {task: result_of})
            case Planned(task=task, plan=plan) if (
                task == PLAN
                and not job.nodes
                and not problems(plan, max_subtasks=job.submitted.goal.limits.max_subtasks)
            ):
                waiting: dict[TaskId, SubTaskState] = {each.id: Waiting(missing=0) for each in plan}
                job = replace(job, nodes=nodes_of(plan), states={**job.states, **waiting})
            case _:
                pass
    return job


def _what(event: Ended) -> What:
    """What a redelivered event has in common with the first one; a redriven attempt ends twice."""
    unreadable = isinstance(event, SubTaskFailed) and event.kind == UNREADABLE
    return type(event), event.task, event.attempt, unreadable


def _is_of(job: Open, event: Ended) -> bool:
    """Whether it tells of an attempt that the job has had; one that waits for its turn was not out."""
    waits = isinstance(job.states.get(event.task), Backoff)
    return 0 < event.attempt <= _tried(job, event.task) - waits


def _tried(job: Open, task: TaskId) -> int:
    """The number of the sub-task's last attempt, in any revision.

    One that was ready counts: whether its command was out the log does not say.
    """
    return max(getattr(job.states.get(task), "attempt", 0), job.revision.before(task))


def _kept(job: Open, task: TaskId, *, by_claim: bool) -> Kept:
    state = job.states[task]
    assert isinstance(state, Succeeded)
    result = on_the_log(job, state) if by_claim and isinstance(state.result, Inline) else state.result
    return Kept(
        task=task,
        attempt=state.attempt,
        result=result,
        size=state.size,
        offset=state.offset,
        fingerprint=state.fingerprint,
    )


def _never_ran(events: Iterable[Event], task: TaskId, attempt: int) -> bool:
    """Whether all that the log says of the attempt is that no lane could read its command."""
    return all(
        isinstance(event, RetryDue) or (isinstance(event, SubTaskFailed) and event.kind == UNREADABLE)
        for event in events
        if (getattr(event, "task", None), getattr(event, "attempt", 0)) == (task, attempt)
    )
