"""Holding a job back until a person lets it go on: nothing of it is released meanwhile."""

from dataclasses import replace
from typing import Literal

from streams.core.commands import Effect
from streams.core.events import AttemptOverdue, Event, Planned, SubTaskFailed, SubTaskSucceeded
from streams.core.goal import Approval
from streams.core.moves import put
from streams.core.states import Hold, Open, Ready, Released, Running, Stopped, SubTaskState
from streams.core.stopping import leave


def hold_plan(job: Open, at: int) -> Open:
    """A job that has just got a plan: it waits for a person, where its goal says so.

    What a plan grows by, and another one that a planner makes after a failure, pass the same caps and are not
    asked for again; a job that is opened again is.

    Args:
        at: Broker time, milliseconds since 1970.
    """
    if "plan" not in job.submitted.goal.approve:
        return job
    decided = job.decided
    hold = Hold(on="plan", since=at)
    if decided.hold is not None and decided.hold.on == "place":
        hold = replace(decided.hold, then="plan")
    approved = tuple(what for what in decided.approved if what != "plan")
    return replace(job, decided=replace(decided, hold=hold, approved=approved))


def hold_answer(
    job: Open, event: Event, *, rule: str, reason: str, failed: bool
) -> tuple[Open, tuple[Effect, ...]]:
    """A job that has its answer, by this rule: it waits for a person, and nothing of it runs any more."""
    why = f"the job was done by the rule {rule}"
    ended: dict[str, SubTaskState] = {}
    if isinstance(event, Planned | SubTaskSucceeded | SubTaskFailed | AttemptOverdue):
        state = job.states.get(event.task)
        if isinstance(state, Ready | Released | Running) and state.attempt == event.attempt:
            # What it cost is counted, or counts as lost, already.
            ended[event.task] = Stopped(attempt=state.attempt, tried=state.attempt, reason=why, told=True)
    job, stopped = leave(put(job, ended), why)
    hold = Hold(on="answer", since=event.at, rule=rule, reason=reason, failed=failed)
    return replace(job, decided=replace(job.decided, hold=hold)), stopped


def publishable(job: Open) -> bool:
    """Whether an answer may be published now: a person has approved it, or nobody need."""
    return "answer" not in job.submitted.goal.approve or "answer" in job.decided.approved


def waits_for_person(job: Open) -> Literal["", "plan", "answer"]:
    """What of the whole job waits for a person, perhaps after its tenant's account; empty without any."""
    match job.decided.hold:
        case None:
            return ""
        case Hold(on="plan"):
            return "plan"
        case Hold(on="answer"):
            return "answer"
        case Hold(then=then):
            return then


def approved(job: Open, what: Approval) -> Open:
    """The job once a person has approved its plan or its answer."""
    decided = job.decided
    assert decided.hold is not None
    hold = replace(decided.hold, then="") if decided.hold.then else None
    return replace(job, decided=replace(decided, hold=hold, approved=(*decided.approved, what)))
