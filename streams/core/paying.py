"""Paying: after each event of a job whose money is limited, what is granted, asked for, or the end.

A job with a lease of its tenant's day asks its account for more before it runs out, and goes on meanwhile.
Where it cannot go on without, it waits; where the account has no more, it ends with what it has.
"""

from dataclasses import replace

from streams.core import steps
from streams.core.commands import Effect, Tell
from streams.core.ending import Folded, finish
from streams.core.events import BUDGET, Event, MoneyAsked, MoneyGiven, PlaceAsked, SubTaskFailed
from streams.core.granting import calls_no_model, fund, lacking, may_ask, unfunded
from streams.core.leases import part_of
from streams.core.money import budget_left, lease_binds, lease_left, over_budget, own_left
from streams.core.moves import fail_for_good, put
from streams.core.placing import money_asked, place_asked
from streams.core.purse import LEAST, Purse, covers, grant_of, larger, less, of, smaller, some
from streams.core.settling import settle
from streams.core.states import Failed, Hold, Job, Open, Ready, Suspended
from streams.core.values import Grant, TaskId


def pay(job: Open, event: Event, effects: tuple[Effect, ...]) -> Folded:
    """The job after *event*, which had these effects, once its money is seen to."""
    if job.decided.hold is not None and job.decided.hold.on == "place":
        return job, effects  # nobody knows yet what it may spend
    after: Job = fund(job)
    while isinstance(after, Open) and (spent_up := exhausted(after)) is not None:
        after, more = _give_up(after, spent_up, event)
        effects = (*effects, *more)
        after = fund(after) if isinstance(after, Open) else after
    if not isinstance(after, Open):
        return after, effects
    after, more = _go_on(after, event)
    return after, (*effects, *more)


def stuck(job: Open) -> bool:
    """Whether nothing is out, and nothing of what is ready can be granted anything.

    What waits for a person or a child will tell what it spent.
    """
    if job.outstanding or not job.ready or len(unfunded(job)) < len(job.ready):
        return False
    return not any(isinstance(state, Suspended) for state in job.states.values())


def out_of_budget(job: Open) -> str:
    """Why a stuck job gets no further with its own budget, for a person; empty where that is not why."""
    if reason := over_budget(job):
        return reason
    if job.decided.lease is None or not covers(budget_left(job), LEAST):
        return "too little is left of the budget"
    return ""


def exhausted(job: Open) -> TaskId | None:
    """A ready sub-task that has spent its own budget: no further attempt can be granted anything."""
    if job.submitted.goal.budget.subtask is None:
        return None
    for task in unfunded(job):
        if not covers(own_left(job, task), LEAST) and not calls_no_model(job, task):
            return task
    return None


def _go_on(job: Open, event: Event) -> Folded:
    """Ask for what is missing, or end; nothing where the job can go on as it is."""
    hold = job.decided.hold
    if not stuck(job):
        if hold is not None and hold.on == "money":  # something was told after all, and leaves enough
            return replace(job, decided=replace(job.decided, hold=None)), ()
        return _ask(job, waits=False, event=event) if may_ask(job) and unfunded(job) else (job, ())
    if hold is not None and hold.on != "money":
        return job, ()  # it waits for a person; what it lacks is seen to when it goes on
    if reason := out_of_budget(job):
        return finish(job, event, rule="budget", reason=reason)
    if isinstance(event, MoneyGiven) and job.decided.given == event.n:
        return finish(job, event, rule="tenant_budget", reason=job.decided.short or "too little is left")
    if not lease_binds(job):
        return finish(job, event, rule="budget", reason="too little is left of the budget")
    return _ask(job, waits=True, event=event)


def _ask(job: Open, *, waits: bool, event: Event) -> Folded:
    """Ask the account for more, unless it has yet to answer.

    Args:
        waits: The job cannot go on without.
    """
    decided = job.decided
    if waits and decided.hold is None:
        decided = replace(decided, hold=Hold(on="money", since=event.at))
    if decided.asked > decided.given:
        return (job if decided is job.decided else replace(job, decided=decided)), ()
    want = wanted(job)
    if want is None or (not waits and not _short(job)):
        return job, ()
    asking = replace(job, decided=replace(decided, asked=decided.asked + 1))
    return asking, (Tell(event=money_asked(asking, want)),)


def asked_again(job: Open) -> PlaceAsked | MoneyAsked | None:
    """What a job asks its account for that waits for an answer: the word or its answer may be lost."""
    match job.decided.hold:
        case Hold(on="place"):
            return place_asked(job)
        case Hold(on="money"):
            want = wanted(job)
            return None if want is None else money_asked(job, want)
        case _:
            return None


def wanted(job: Open) -> Grant | None:
    """How much more the job asks for: what it lacks, or a usual lease where that is more.

    Never more than its own budget allows; None where its lease does not limit it.
    """
    lease, own = job.decided.lease, less(budget_left(job), lease_left(job))
    if lease is None or not lease_binds(job):
        return None
    day = job.submitted.goal.rules.day
    usual: Purse = (0, 0, 0) if day is None else part_of(day)
    most = smaller(larger(some(lacking(job)), usual), own)
    return grant_of(_of_what_is_leased(lease, some(most)))


def _short(job: Open) -> bool:
    """Whether the lease lacks something for what could go out now, that the budget would allow."""
    lack = smaller(lacking(job), less(budget_left(job), lease_left(job)))
    return any(
        have is not None and (missing or 0) > 0 for have, missing in zip(lease_left(job), lack, strict=True)
    )


def _of_what_is_leased(lease: Grant, purse: Purse) -> Purse:
    a, b, c = of(lease)
    x, y, z = purse
    return None if a is None else x or 0, None if b is None else y or 0, None if c is None else z or 0


def _give_up(job: Open, task: TaskId, event: Event) -> Folded:
    """A sub-task has spent its own budget: it fails for good, and the job goes on without it."""
    state = job.states[task]
    assert isinstance(state, Ready)
    reason = "its own budget is spent, in all its attempts together"
    failed = Failed(attempt=max(1, state.attempt - 1), kind=BUDGET, reason=reason)
    if task in job.nodes:
        return settle(fail_for_good(job, task, failed), event)
    told = SubTaskFailed(
        job=job.submitted.job,
        task=task,
        attempt=failed.attempt,
        kind=BUDGET,
        reason=reason,
        final=True,
        at=event.at,
        offset=event.offset,
    )
    return steps.failed(put(job, {task: failed}), told)
