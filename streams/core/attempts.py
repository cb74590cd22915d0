"""Attempts of sub-tasks: they begin, end, are late, and are followed by others."""

from dataclasses import replace
from typing import assert_never

from streams.core import hedging, steps
from streams.core.commands import StopAttempt
from streams.core.ending import Folded, finish
from streams.core.events import (
    BUDGET,
    UNREADABLE,
    AttemptOverdue,
    Planned,
    RetryDue,
    SubTaskEvent,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
)
from streams.core.granting import bound_by_its_own, had_all, learned, may_ask, too_small
from streams.core.growing import grow
from streams.core.money import charge, lease_binds, lose, over_budget, told_late
from streams.core.moves import fail_for_good, put, succeed
from streams.core.replanning import is_replan, taken
from streams.core.seconds import seconds_of
from streams.core.settling import settle, take_plan
from streams.core.states import (
    Backoff,
    Failed,
    Hedged,
    Open,
    Ready,
    Released,
    Running,
    Stopped,
    SubTaskState,
    Succeeded,
)
from streams.core.stopping import stops
from streams.core.values import ANSWER, PLAN, Grant


def advance(job: Open, state: SubTaskState, event: SubTaskEvent) -> Folded:
    """Apply an event of one sub-task; events of other attempts than the present one change nothing.

    Ready and Released are told apart nowhere here: a replay, which folds the same events without
    pacing, must see the same life. So an overdue start is not rechecked against its release.
    """
    match event, state:
        case SubTaskStarted(attempt=attempt, run=run), (Ready() | Released() | Running()) if is_of(
            event, state
        ):
            if isinstance(state, Running) and state.run == run:
                return job, ()
            running = Running(
                attempt=attempt, run=run, since=event.at, grant=state.grant, resume=state.resume
            )
            return put(job, {event.task: running}), ()
        case SubTaskFailed(kind=kind, attempt=attempt), _ if (
            kind == UNREADABLE and attempt == job.revision.before(event.task)
        ):
            return job, ()  # told of it again; it is redriven since, so it can be read now
        case (
            (Planned() | SubTaskSucceeded() | SubTaskFailed()),
            Ready(attempt=now, grant=grant)
            | Released(attempt=now, grant=grant)
            | Running(attempt=now, grant=grant),
        ) if event.attempt == now and may_tell(job, event):
            return end(charge(job, event.task, event.usage), event, grant)
        case SubTaskSucceeded() | SubTaskFailed(), Stopped(attempt=now, told=False) if event.attempt == now:
            # It was stopped, or had its result before that was known: what it cost counts all the same.
            return put(charge(job, event.task, event.usage), {event.task: replace(state, told=True)}), ()
        case ((Planned() | SubTaskSucceeded() | SubTaskFailed()), _) if job.lost:
            return told_late(job, event), ()
        case AttemptOverdue(), (Ready() | Released()) if is_of(event, state):
            seconds = job.submitted.goal.limits.start_timeout_s
            return overdue(job, state, event, "not_started", f"no lane started it within {seconds:g} s")
        case AttemptOverdue(), Running(since=since) if is_of(event, state):
            seconds = seconds_of(job, event.task)
            if event.at < since + seconds * 1000:
                return job, ()
            return overdue(job, state, event, "timeout", f"no result within {seconds:g} s")
        case RetryDue(attempt=attempt), Backoff(attempt=now, until=due) if attempt == now and event.at >= due:
            return put(job, {event.task: Ready(attempt=now)}), ()
        case _:
            return job, ()


def may_tell(job: Open, event: Planned | SubTaskSucceeded | SubTaskFailed) -> bool:
    """Whether this can be the end of an attempt of its sub-task: only planners bring plans."""
    return not isinstance(event, Planned) or event.task == PLAN or is_replan(job, event.task)


def is_of(event: SubTaskStarted | AttemptOverdue, state: Ready | Released | Running) -> bool:
    """Whether an event is of the present stretch of the present attempt: it may have been suspended since."""
    number = 0 if state.resume is None else state.resume.number
    return (event.attempt, event.number) == (state.attempt, number)


def end(job: Open, event: Planned | SubTaskSucceeded | SubTaskFailed, grant: Grant | None) -> Folded:
    """An attempt with this grant has ended; its usage is already counted."""
    match event:
        case SubTaskFailed(kind=kind) if kind == BUDGET and grant is not None:
            return run_short(job, event, grant)
        case SubTaskFailed(kind=kind, reason=reason, retry_in=retry_in):
            return fail(job, event, kind, reason, retry_in, final=event.final)
        case Planned(plan=plan):
            return (
                settle(taken(job, event), event) if event.task in job.steps else take_plan(job, event, plan)
            )
        case SubTaskSucceeded(result=result, size=size, attempt=attempt):
            if event.task == PLAN:
                return finish(job, event, rule="planning", reason="the planner sent no plan", failed=True)
            state = Succeeded(
                attempt=attempt,
                result=result,
                size=size,
                offset=event.offset,
                fingerprint=event.fingerprint,
                cites=event.cites,
            )
            job = succeed(grow(learned(job, event, grant), event), event.task, state)
            if event.task in job.steps:
                return steps.succeeded(job, event)
            if event.task == ANSWER:
                return finish(job, event, rule="all_done")
            return hedging.settle_first(job, event)
        case _:
            assert_never(event)


def overdue(
    job: Open, state: Ready | Released | Running, event: AttemptOverdue, kind: str, reason: str
) -> Folded:
    """The time of an attempt is over without a word of its end: it is stopped, wherever it is."""
    stopped = stops(job, reason, (event.task,))
    after, effects = fail(lose(job, event.task, state), event, kind, reason, event.retry_in)
    told = {(one.task, one.attempt) for one in effects if isinstance(one, StopAttempt)}
    return after, (*effects, *(one for one in stopped if (one.task, one.attempt) not in told))


def fail(
    job: Open, event: SubTaskEvent, kind: str, reason: str, retry_in: float, *, final: bool = False
) -> Folded:
    """An attempt failed: the next one, after its wait, or the end of the sub-task."""
    tried = event.attempt - job.revision.before(event.task)
    final = final or hedging.is_hedge(job, event.task)
    if not final and tried < job.submitted.goal.limits.max_attempts and not over_budget(job):
        after = event.attempt + 1
        if retry_in > 0:
            return put(job, {event.task: Backoff(attempt=after, until=event.at + int(retry_in * 1000))}), ()
        return put(job, {event.task: Ready(attempt=after)}), ()
    if event.task == PLAN:
        return finish(job, event, rule="planning", reason=f"no plan: {reason}", failed=True)
    if event.task == ANSWER:
        return finish(job, event, rule="synthesis", reason=f"no synthesis, joined results instead: {reason}")
    failed = Failed(attempt=event.attempt, kind=kind, reason=reason)
    if event.task in job.steps:
        return steps.failed(put(job, {event.task: failed}), event)
    if hedging.hedged_by(job, event.task):
        return put(job, {event.task: Hedged(attempt=event.attempt, kind=kind, reason=reason)}), ()
    return settle(fail_for_good(job, event.task, failed), event)


def run_short(job: Open, event: SubTaskFailed, grant: Grant) -> Folded:
    """An attempt needed more than its grant: another one has more, or the budget is too small.

    It is for the attempt to say that asking again brings nothing, and for the job to grant more.
    """
    if hedging.is_hedge(job, event.task) or bound_by_its_own(job, event.task, grant, event.usage):
        return fail(job, event, event.kind, event.reason, 0.0, final=True)
    rule = "tenant_budget" if lease_binds(job) else "budget"
    if event.task == PLAN and not may_ask(job):
        return finish(job, event, rule=rule, reason=f"no plan: {event.reason}", failed=True)
    if event.task == ANSWER and not may_ask(job):
        reason = f"no synthesis, joined results instead: {event.reason}"
        return finish(job, event, rule=rule, reason=reason)
    if had_all(job, grant, event.usage):
        # The others would fail one by one, each with less.
        state = Failed(attempt=event.attempt, kind=event.kind, reason=event.reason)
        reason = f"too little is left of the budget for {event.task}: {event.reason}"
        failed = (
            put(job, {event.task: state})
            if event.task in job.steps
            else fail_for_good(job, event.task, state)
        )
        return finish(failed, event, rule=rule, reason=reason)
    return fail(too_small(job, grant), event, event.kind, event.reason, event.retry_in)
