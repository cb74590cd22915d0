"""The life of a job: one event after another, folded. Pure, so that a replay sees the same."""

from typing import TypeAlias, assert_never

from streams.core import accounts, approvals, gating, hedging, notes, placing, suspending
from streams.core.admission import problems
from streams.core.attempts import advance
from streams.core.beginning import begin
from streams.core.commands import Answer, Bury
from streams.core.due import deadline
from streams.core.ending import Folded, finish
from streams.core.events import (
    ApprovalGiven,
    ApprovalRefused,
    ChildAnswered,
    DeadlinePassed,
    Event,
    FromAnAccount,
    FromOutside,
    GoalRejected,
    HedgeDue,
    JobBroken,
    JobCancelled,
    JobReopened,
    JobSubmitted,
    MoneyAsked,
    MoneyGiven,
    NoteWritten,
    PlaceAsked,
    PlaceGiven,
    PlaceReturned,
    SubTaskEvent,
    SubTaskSuspended,
    Told,
)
from streams.core.money import charged
from streams.core.opening import reopened
from streams.core.paying import pay
from streams.core.settling import settle
from streams.core.states import FIRST, Account, Finished, Job, New, Open, Revision
from streams.core.values import ANSWER

Carried: TypeAlias = SubTaskEvent | Told | FromOutside | FromAnAccount

COULD_NOT = "could not be folded"
"""In the reason of a dead letter: the event was of use to its job all the same, and ended it."""


def fold(job: Job, event: Event) -> Folded:
    """Apply one event to one job, and say what it newly asks of the world.

    An event already absorbed changes nothing and asks for nothing. Commands are no effects: they
    are derived from the state (``release.py``), since pacing decides when they go out.
    """
    after, effects = moved(job, event)
    if after is job or not isinstance(after, Open) or not charged(after):
        return after, effects
    return pay(after, event, effects)


def moved(job: Job, event: Event) -> Folded:
    """The job after an event, before its budget is looked at."""
    match event:
        case JobSubmitted():
            return submit(job, event)
        case GoalRejected():
            return reject(job, event)
        case DeadlinePassed():
            return pass_deadline(job, event)
        case JobBroken():
            return break_job(job, event)
        case JobReopened():
            return reopen(job, event)
        case PlaceAsked() | MoneyAsked() | PlaceReturned():
            return accounts.keep(job, event)
        case PlaceGiven() if not isinstance(job, Open):
            return placing.gone(job, event)
        case _:
            return carry_on(job, event) if isinstance(job, Open) else (job, ())


def carry_on(job: Open, event: Carried) -> Folded:
    """A job under way, after what it is told of itself and its sub-tasks."""
    match event:
        case ApprovalGiven() | ApprovalRefused() | JobCancelled():
            return approvals.hear(job, event)
        case PlaceGiven() | MoneyGiven():
            return placing.given(job, event)
        case HedgeDue():
            return hedging.hedge(job, event)
        case SubTaskSuspended():
            return suspending.suspend(job, event)
        case ChildAnswered():
            return suspending.answered(job, event)
        case NoteWritten():
            return notes.write(job, event)
        case _:
            state = job.states.get(event.task)
            return (job, ()) if state is None else advance(job, state, event)


def absorb(job: Job, event: Event) -> Folded:
    """Fold; an event that cannot be folded is buried, and ends its job with the reason.

    A bug in the rules must neither stop a partition nor hide: the same event breaks the job the
    same way in every replay.
    """
    try:
        return fold(job, event)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not stop the partition
        reason = f"{type(event).__name__} {COULD_NOT}: {type(error).__name__}: {error}"
        return break_by(job, event, reason)


def break_by(job: Job, event: Event, reason: str) -> Folded:
    """End the job by an event that could not be folded, which is buried with this reason."""
    now = job.revision.number if isinstance(job, Open) else 1
    broken = JobBroken(job=event.job, reason=reason, revision=now, at=event.at, offset=event.offset)
    after, effects = fold(job, broken)
    return after, (*effects, Bury(reason=reason))


def submit(job: Job, event: JobSubmitted) -> Folded:
    """Open the job; the same goal again changes nothing, and another one under its id is buried.

    A goal that brings its plan is not planned: its sub-tasks open at once. One that was rejected at intake
    and comes back good is the same job, and its answer the next revision; one that a person or the gate
    refused is not.
    """
    match job:
        case New():
            return opened(event, FIRST)
        case Finished(outcome="rejected", digest="", revision=last):
            return opened(event, Revision(number=last + 1))
        case Open():
            known, told = job.submitted.goal.digest, f"which stands at {job.submitted.source}"
        case Account():
            return job, ()
        case Finished():
            known, told = job.digest, f"which ended at offset {job.offset} of this job's events"
        case _:
            assert_never(job)
    if known == event.goal.digest:
        return job, ()  # a redelivered goal is the same job
    reason = (
        f"job {event.job} exists with another goal, {told}; the goal at {event.source} needs an id of its own"
    )
    return job, (Bury(reason=reason, source=event.source),)


def opened(event: JobSubmitted, revision: Revision) -> Folded:
    """The job of a goal, which asks for its place first where its tenant has limits."""
    job, effects = open_job(event, revision)
    job, asked = placing.enter(job, event)
    return job, (*effects, *asked)


def open_job(event: JobSubmitted, revision: Revision) -> Folded:
    """The job of a goal, on its way to this revision of its answer."""
    job = Open(submitted=event, nodes={}, states={}, revision=revision)
    return (gating.ask(job), ()) if event.goal.gate else begin(job, event)


def reopen(job: Job, event: JobReopened) -> Folded:
    """Let a finished job go on, once a revision: of two that ask at the same time the first counts.

    Where the job is not known the log no longer has its beginning, and the event brings what is needed.
    """
    if event.submitted.job != event.job:
        return job, (Bury(reason=f"it brings the goal of {event.submitted.job}, not of {event.job}"),)
    match job:
        case Open():
            return job, ()
        case Finished(digest=digest, revision=last):
            if (event.revision, event.submitted.goal.digest) != (last + 1, digest):
                return job, ()
        case New():
            pass
        case Account():
            return job, ()
        case _:
            assert_never(job)
    limit = event.submitted.goal.limits.max_subtasks
    if event.plan and (wrong := problems(event.plan, max_subtasks=limit)):
        return job, (Bury(reason=f"its plan breaks the rules: {'; '.join(wrong)}"),)
    again = gating.again(event) or reopened(event)
    after, effects = settle(again, event) if again.nodes and ANSWER not in again.states else (again, ())
    after, asked = placing.enter(after, event)
    return after, (*effects, *asked)


def reject(job: Job, event: GoalRejected) -> Folded:
    """Answer a goal that cannot be accepted, unless its id has a job."""
    if not isinstance(job, New):
        return job, ()
    tenant, _, own = event.job.partition("/")
    answer = Answer(
        job=event.job,
        id=own,
        tenant=tenant,
        outcome="rejected",
        rule=event.rule,
        reason=event.reason,
        submitted_at=event.at,
        answered_at=event.at,
        source=event.source,
        headers=event.headers,
    )
    return Finished(digest="", outcome="rejected", offset=event.offset, at=event.at), (answer,)


def pass_deadline(job: Job, event: DeadlinePassed) -> Folded:
    """End a job under way with what is there."""
    if not isinstance(job, Open) or (end_at := deadline(job)) is None:
        return job, ()
    if event.at < end_at:
        return job, ()  # sent by a clock ahead of the broker's; it comes again
    limit = job.submitted.goal.deadline_s
    return finish(job, event, rule="deadline", reason=f"the deadline of {limit:g} s passed")


def break_job(job: Job, event: JobBroken) -> Folded:
    """End a job under way, since one of its events could not be handled."""
    if not isinstance(job, Open) or event.revision != job.revision.number:
        return job, ()
    return finish(job, event, rule="broken", reason=event.reason, failed=True)
