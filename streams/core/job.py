"""The life of a job: one event after another, folded. Pure, so that a replay sees the same."""

from dataclasses import replace
from typing import assert_never

from streams.core.admission import problems
from streams.core.commands import Answer, Bury, Effect
from streams.core.due import deadline
from streams.core.ending import finish
from streams.core.events import (
    BUDGET,
    UNREADABLE,
    AttemptOverdue,
    DeadlinePassed,
    Event,
    GoalRejected,
    JobBroken,
    JobReopened,
    JobSubmitted,
    Planned,
    RetryDue,
    SubTaskEvent,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
)
from streams.core.granting import fund, had_all, learned, out_of_money, too_small
from streams.core.money import lose, over_budget, told_late
from streams.core.moves import fail_for_good, first, put, spend, succeed
from streams.core.opening import nodes_of, reopened
from streams.core.plan import Plan
from streams.core.states import (
    FIRST,
    Backoff,
    Failed,
    Finished,
    Job,
    New,
    Open,
    Ready,
    Released,
    Revision,
    Running,
    SubTaskState,
    Succeeded,
    Waiting,
)
from streams.core.values import ANSWER, PLAN, Grant, TaskId

Folded = tuple[Job, tuple[Effect, ...]]

COULD_NOT = "could not be folded"
"""In the reason of a dead letter: the event was of use to its job all the same, and ended it."""


def fold(job: Job, event: Event) -> Folded:
    """Apply one event to one job, and say what it newly asks of the world.

    An event already absorbed changes nothing and asks for nothing. Commands are no effects: they
    are derived from the state (``release.py``), since pacing decides when they go out.
    """
    after, effects = moved(job, event)
    if after is job or not isinstance(after, Open) or not after.submitted.goal.budget.limited:
        return after, effects
    after = fund(after)
    if short := out_of_money(after):
        return finish(after, event, rule="budget", reason=short)
    return after, effects


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
        case _:
            if isinstance(job, Open) and (state := job.states.get(event.task)) is not None:
                return advance(job, state, event)
            return job, ()


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

    A goal that brings its plan is not planned: its sub-tasks open at once. One that was rejected and
    comes back good is the same job, and its answer the next revision.
    """
    match job:
        case New():
            return open_job(event, FIRST)
        case Finished(outcome="rejected", revision=last):
            return open_job(event, Revision(number=last + 1))
        case Open():
            known, told = job.submitted.goal.digest, f"which stands at {job.submitted.source}"
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


def open_job(event: JobSubmitted, revision: Revision) -> Folded:
    """The job of a goal, on its way to this revision of its answer."""
    if event.plan:
        # From here on the nodes are the plan: the row that keeps the goal need not repeat it.
        submitted = replace(event, plan=())
        job = Open(submitted=submitted, nodes={}, states={}, revision=revision)
        return take_plan(job, event, event.plan)
    states: dict[TaskId, SubTaskState] = {PLAN: Ready()}
    return Open(submitted=event, nodes={}, states=states, ready=(PLAN,), revision=revision), ()


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
        case _:
            assert_never(job)
    limit = event.submitted.goal.limits.max_subtasks
    if event.plan and (wrong := problems(event.plan, max_subtasks=limit)):
        return job, (Bury(reason=f"its plan breaks the rules: {'; '.join(wrong)}"),)
    opened = reopened(event)
    return settle(opened, event) if opened.nodes and ANSWER not in opened.states else (opened, ())


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
        rule="rejected",
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


def advance(job: Open, state: SubTaskState, event: SubTaskEvent) -> Folded:
    """Apply an event of one sub-task; events of other attempts than the present one change nothing.

    Ready and Released are told apart nowhere here: a replay, which folds the same events without
    pacing, must see the same life. So an overdue start is not rechecked against its release.
    """
    match event, state:
        case SubTaskStarted(attempt=attempt, run=run), (
            Ready(attempt=now, grant=grant) | Released(attempt=now, grant=grant)
        ) if attempt == now:
            return put(job, {event.task: Running(attempt=attempt, run=run, since=event.at, grant=grant)}), ()
        case SubTaskStarted(attempt=attempt, run=run), Running(attempt=now, run=before, grant=grant) if (
            attempt == now
        ):
            if run == before:
                return job, ()
            return put(job, {event.task: Running(attempt=attempt, run=run, since=event.at, grant=grant)}), ()
        case SubTaskFailed(kind=kind, attempt=attempt), _ if (
            kind == UNREADABLE and attempt == job.revision.before(event.task)
        ):
            return job, ()  # told of it again; it is redriven since, so it can be read now
        case (
            (Planned() | SubTaskSucceeded() | SubTaskFailed()),
            Ready(attempt=now, grant=grant)
            | Released(attempt=now, grant=grant)
            | Running(attempt=now, grant=grant),
        ) if event.attempt == now and (event.task == PLAN or not isinstance(event, Planned)):
            return end(spend(job, event.usage), event, grant)
        case ((Planned() | SubTaskSucceeded() | SubTaskFailed()), _) if job.lost:
            return told_late(job, event), ()
        case AttemptOverdue(attempt=attempt), (Ready(attempt=now) | Released(attempt=now)) if attempt == now:
            seconds = job.submitted.goal.limits.start_timeout_s
            return fail(
                lose(job, event.task, state),
                event,
                "not_started",
                f"no lane started it within {seconds:g} s",
                event.retry_in,
            )
        case AttemptOverdue(attempt=attempt), Running(attempt=now, since=since) if attempt == now:
            seconds = job.submitted.goal.limits.timeout_s
            if event.at < since + seconds * 1000:
                return job, ()
            return fail(
                lose(job, event.task, state),
                event,
                "timeout",
                f"no result within {seconds:g} s",
                event.retry_in,
            )
        case RetryDue(attempt=attempt), Backoff(attempt=now, until=due) if attempt == now and event.at >= due:
            return put(job, {event.task: Ready(attempt=now)}), ()
        case _:
            return job, ()


def end(job: Open, event: Planned | SubTaskSucceeded | SubTaskFailed, grant: Grant | None) -> Folded:
    """An attempt with this grant has ended; its usage is already counted."""
    match event:
        case SubTaskFailed(kind=kind) if kind == BUDGET and grant is not None:
            return run_short(job, event, grant)
        case SubTaskFailed(kind=kind, reason=reason, retry_in=retry_in):
            return fail(job, event, kind, reason, retry_in, final=event.final)
        case Planned(plan=plan):
            return take_plan(job, event, plan)
        case SubTaskSucceeded(result=result, size=size, attempt=attempt):
            if event.task == PLAN:
                return finish(job, event, rule="planning", reason="the planner sent no plan", failed=True)
            state = Succeeded(attempt=attempt, result=result, size=size, offset=event.offset)
            job = succeed(learned(job, event, grant), event.task, state)
            return finish(job, event, rule="all_done") if event.task == ANSWER else settle(job, event)
        case _:
            assert_never(event)


def take_plan(job: Open, event: Planned | JobSubmitted, plan: Plan) -> Folded:
    """Open the plan's sub-tasks; a plan that breaks the rules fails the job with the reasons."""
    if wrong := problems(plan, max_subtasks=job.submitted.goal.limits.max_subtasks):
        return finish(job, event, rule="planning", reason="; ".join(wrong), failed=True)
    states: dict[TaskId, SubTaskState] = {
        task.id: Waiting(missing=len(set(task.dep))) if task.dep else Ready() for task in plan
    }
    ready = tuple(task.id for task in plan if not task.dep)
    return settle(replace(job, nodes=nodes_of(plan), states=states, ready=ready, outstanding=0), event)


def fail(
    job: Open, event: SubTaskEvent, kind: str, reason: str, retry_in: float, *, final: bool = False
) -> Folded:
    """An attempt failed: the next one, after its wait, or the end of the sub-task."""
    tried = event.attempt - job.revision.before(event.task)
    if not final and tried < job.submitted.goal.limits.max_attempts and not over_budget(job):
        after = event.attempt + 1
        if retry_in > 0:
            return put(job, {event.task: Backoff(attempt=after, until=event.at + int(retry_in * 1000))}), ()
        return put(job, {event.task: Ready(attempt=after)}), ()
    if event.task == PLAN:
        return finish(job, event, rule="planning", reason=f"no plan: {reason}", failed=True)
    if event.task == ANSWER:
        return finish(job, event, rule="synthesis", reason=f"no synthesis, joined results instead: {reason}")
    return settle(
        fail_for_good(job, event.task, Failed(attempt=event.attempt, kind=kind, reason=reason)), event
    )


def run_short(job: Open, event: SubTaskFailed, grant: Grant) -> Folded:
    """An attempt needed more than its grant: another one has more, or the budget is too small.

    It is for the attempt to say that asking again brings nothing, and for the job to grant more.
    """
    if event.task == PLAN:
        return finish(job, event, rule="budget", reason=f"no plan: {event.reason}", failed=True)
    if event.task == ANSWER:
        reason = f"no synthesis, joined results instead: {event.reason}"
        return finish(job, event, rule="budget", reason=reason)
    if had_all(job, grant, event.usage):
        # The others would fail one by one, each with less.
        state = Failed(attempt=event.attempt, kind=event.kind, reason=event.reason)
        reason = f"too little is left of the budget for {event.task}: {event.reason}"
        return finish(fail_for_good(job, event.task, state), event, rule="budget", reason=reason)
    return fail(too_small(job, grant), event, event.kind, event.reason, event.retry_in)


def settle(job: Open, event: Event) -> Folded:
    """After a sub-task ended: end the job, begin the join, or go on.

    A plan of one sub-task that succeeded leaves nothing to join: its result is the answer, as it is
    (a claim check stays one), and no model is asked to say it again. Its budget is not asked either,
    since nothing is left to spend it on.
    """
    rule = job.submitted.goal.join
    total = len(job.nodes)
    if job.ended < total:
        if job.failed / total > rule.fail_fast_ratio:
            share = f"{rule.fail_fast_ratio:g}"
            reason = f"{job.failed} of {total} sub-tasks failed, more than the share of {share}"
            return finish(job, event, rule="fail_fast", reason=reason)
        if spent := over_budget(job):
            return finish(job, event, rule="budget", reason=spent)
        return job, ()
    if job.succeeded == 0 or job.succeeded / total < rule.min_success_ratio:
        reason = f"{job.succeeded} of {total} sub-tasks succeeded"
        return finish(job, event, rule="all_done", reason=reason)
    if total == 1:
        return finish(job, event, rule="all_done")
    if spent := over_budget(job):
        return finish(job, event, rule="budget", reason=spent)
    return put(job, {ANSWER: first(job, ANSWER)}), ()
