"""What people say to a job: that it may go on, that it may not, that it is to end.

A word counts for what waits when it comes, and is ignored where nothing does.
"""

from dataclasses import replace

from streams.core.commands import CallEnded
from streams.core.ending import Folded, finish
from streams.core.events import ApprovalGiven, ApprovalRefused, JobCancelled
from streams.core.holding import approved, waits_for_person
from streams.core.states import Open, Suspended
from streams.core.suspending import resumed
from streams.core.values import TaskId

HEARD = 256
"""Places of records that a job remembers: more than intake may deliver a second time after a crash."""


def hear(job: Open, event: ApprovalGiven | ApprovalRefused | JobCancelled) -> Folded:
    """Do what a person says."""
    match event:
        case JobCancelled():
            reason = _why("cancelled", event)
            return finish(_by(job, event), event, rule="cancelled", reason=reason, outcome="cancelled")
        case ApprovalRefused():
            if not (_held(job, event) or _calls(job, event)):
                return job, ()
            reason = _why("not approved", event)
            return finish(_by(job, event), event, rule="not_approved", reason=reason, outcome="rejected")
        case ApprovalGiven():
            return _let(job, event)


def _let(job: Open, event: ApprovalGiven) -> Folded:
    """Let go on what waits and is meant."""
    held, calls = _held(job, event), _calls(job, event)
    if not (held or calls) or (event.source is not None and event.source in job.decided.heard):
        return job, ()
    job = _by(job, event)
    if event.source is not None:
        heard = (*job.decided.heard, event.source)[-HEARD:]
        job = replace(job, decided=replace(job.decided, heard=heard))
    for task, state in calls:
        job = resumed(job, task, state, CallEnded(call=state.call, outcome="approved", reason=event.reason))
    if held == "plan":
        return approved(job, "plan"), ()
    if held == "answer":
        hold = job.decided.hold
        assert hold is not None
        job = approved(job, "answer")
        return finish(job, event, rule=hold.rule, reason=hold.reason, failed=hold.failed)
    return job, ()


def _held(job: Open, event: ApprovalGiven | ApprovalRefused) -> str:
    """What is meant of the whole job and waits: ``plan``, ``answer`` or nothing."""
    held = waits_for_person(job)
    return held if event.task is None and event.what in (None, held) else ""


def _calls(job: Open, event: ApprovalGiven | ApprovalRefused) -> list[tuple[TaskId, Suspended]]:
    """The tool calls that are meant and wait."""
    if event.what not in (None, "tools"):
        return []
    return [
        (task, state)
        for task, state in job.states.items()
        if isinstance(state, Suspended) and state.on == "approval" and event.task in (None, task)
    ]


def _by(job: Open, event: ApprovalGiven | ApprovalRefused | JobCancelled) -> Open:
    return replace(job, decided=replace(job.decided, by=event.by))


def _why(what: str, event: ApprovalRefused | JobCancelled) -> str:
    who = f"{what} by {event.by}" if event.by else what
    return f"{who}: {event.reason}" if event.reason else who
