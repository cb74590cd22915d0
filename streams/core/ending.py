"""How a job ends: its outcome, its answer, and the marker that stays."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from streams.core.answering import ENOUGH, cited, shortfall, the_answer, votes
from streams.core.commands import Answer, Effect, Outcome, TaskReport
from streams.core.events import Event, Planned, SubTaskFailed, SubTaskSucceeded
from streams.core.holding import hold_answer, publishable
from streams.core.money import charge, outlay, spent
from streams.core.results import ended
from streams.core.room import tally
from streams.core.states import (
    Backoff,
    Failed,
    Finished,
    Hedged,
    Job,
    Node,
    Open,
    Ready,
    Released,
    Running,
    Skipped,
    Stopped,
    SubTaskState,
    Succeeded,
    Suspended,
    Waiting,
)
from streams.core.stopping import stops
from streams.core.telling import told
from streams.core.values import TaskId, Value

Folded: TypeAlias = tuple[Job, tuple[Effect, ...]]
"""A job after an event, and what the event newly asks of the world."""


REPLACED = "another plan took its place"


def finish(
    job: Open,
    event: Event,
    *,
    rule: str,
    reason: str = "",
    failed: bool = False,
    outcome: Outcome | None = None,
) -> Folded:
    """End the job by *rule* with the answer that its results allow, once a person has approved it if need be.

    What it is made of says :mod:`streams.core.answering`. ``partial`` as soon as one sub-task has no result,
    unless the rule is content with fewer; ``failed`` with fewer successes than the goal's join rule asks
    for, or where *failed* says that results do not matter.

    Args:
        outcome: Where it is not the results that decide it: there is no answer then.
    """
    submitted = job.submitted
    total = tally(job).total
    answer: Value | None
    used: Sequence[TaskId] = ()
    if rule == "all_done" and job.decided.rule:
        rule = job.decided.rule
    content = rule in ENOUGH or job.decided.rule in ENOUGH
    few = not content and total > 0 and job.succeeded / total < submitted.goal.join.min_success_ratio
    if outcome is not None:
        answer = None
    elif failed or job.succeeded == 0 or few:
        outcome, answer = "failed", None
    elif rule == "deadline" and not publishable(job):
        outcome, answer = "failed", None
        reason = f"{reason} before a person approved the answer"
    elif not publishable(job):
        return hold_answer(job, event, rule=rule, reason=reason, failed=failed)
    else:
        answer, used = the_answer(job, rule)
        short = shortfall(job)
        whole = rule in ENOUGH or (rule == "all_done" and job.succeeded == total)
        outcome = "succeeded" if whole and not short else "partial"
        reason = reason or short
    if outcome == "succeeded":
        reason = ""
    elif not reason:
        reason = f"{job.succeeded} of {total} sub-tasks succeeded"
    made = Answer(
        job=submitted.job,
        id=submitted.job.partition("/")[2],
        tenant=submitted.goal.tenant,
        outcome=outcome,
        rule=rule,
        reason=reason,
        answer=answer,
        subtasks=tuple(
            placed(job, report(name, job.states[name], hedged=name in job.decided.hedged))
            for name in job.nodes
        ),
        usage=spent(with_suspended(job)),
        submitted_at=submitted.at,
        answered_at=event.at,
        revision=job.revision.number,
        source=submitted.source,
        headers=submitted.headers,
        used=tuple(used),
        cites=cited(job) if answer is not None else (),
        duplicates=job.decided.duplicates,
        contradictions=job.decided.contradictions,
        refused=job.decided.refused,
        replans=job.decided.replans,
        votes=votes(job),
        parent=submitted.goal.parent,
        by=job.decided.by,
    )
    marker = Finished(
        digest=submitted.goal.digest,
        outcome=outcome,
        offset=event.offset,
        at=event.at,
        revision=job.revision.number,
    )
    unneeded = [task for task in job.states if not is_end_of(event, task, job.states[task])]
    stopped = stops(job, f"the job has ended by the rule {rule}", unneeded)
    return marker, (made, *stopped, *told(job, made, spent=outlay(job, unneeded)))


def with_suspended(job: Open) -> Open:
    """The job with what attempts have spent that wait for somebody outside, and will never tell their end."""
    for task, state in job.states.items():
        if isinstance(state, Suspended):
            job = charge(job, task, state.so_far)
    return job


def is_end_of(event: Event, task: TaskId, state: SubTaskState) -> bool:
    """Whether the event says that the sub-task's present attempt has come to its end by itself."""
    return (
        isinstance(event, Planned | SubTaskSucceeded | SubTaskFailed)
        and event.task == task
        and event.attempt == getattr(state, "attempt", 0)
    )


def report(task: str, state: SubTaskState, *, hedged: bool = False) -> TaskReport:
    """A sub-task's line of the answer."""
    outcome, reason = ended(state)
    return TaskReport(task=task, outcome=outcome, attempts=begun(state), reason=reason, hedged=hedged)


def placed(job: Open, line: TaskReport) -> TaskReport:
    """A sub-task's line with its place in a plan that grew, or that another one took the place of."""
    node: Node | None = job.nodes[line.task]
    parent = node.task.parent if isinstance(node, Node) else None  # a broken job ends, too
    replaced = line.task in job.decided.replaced
    return replace(line, parent=parent, reason=f"{line.reason}; {REPLACED}" if replaced else line.reason)


def begun(state: SubTaskState) -> int:
    """Attempts that a lane began, or should have."""
    match state:
        case Waiting() | Skipped():
            return 0
        case Ready(attempt=following) | Backoff(attempt=following) | Released(attempt=following):
            return following - 1
        case Stopped(tried=tried):
            return tried
        case (
            Running(attempt=attempt)
            | Suspended(attempt=attempt)
            | Hedged(attempt=attempt)
            | Succeeded(attempt=attempt)
            | Failed(attempt=attempt)
        ):
            return attempt
