"""What a job has spent of its budget, as far as its attempts told, and what is thought of the rest.

An attempt's end tells what it spent. One whose time is over without a word may have spent all of its
grant, and may go on: the whole counts as spent, marked as estimated, until its end is told after all.
How much attempts are granted is in :mod:`streams.core.granting`.
"""

from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from streams.core.events import Planned, SubTaskFailed, SubTaskSucceeded
from streams.core.moves import spend
from streams.core.purse import Purse, covers, less, more, of, smaller, used
from streams.core.states import Lost, Open, Ready, Released, Running, Suspended
from streams.core.values import NO_USAGE, PLAN, Grant, TaskId, Usage

NOTHING = Grant(calls=0, tokens=0, usd=0.0)
"""Of a sub-task that calls no model."""

NAMED = 5
"""Lost attempts that a reason names."""

Ended: TypeAlias = Planned | SubTaskSucceeded | SubTaskFailed


def spent(job: Open) -> Usage:
    """What the job has spent: what its attempts told, and the grants of those that never did."""
    total = job.usage
    for lost in job.lost:
        total += estimate(lost.grant)
    return total


def charged(job: Open) -> bool:
    """Whether what the job's attempts may spend is limited: by its goal's budget, or by its lease."""
    return job.submitted.goal.budget.limited or job.decided.lease is not None


def budget_left(job: Open) -> Purse:
    """What is left of the goal's own budget; less than nothing where more was spent."""
    return less(of(job.submitted.goal.budget), used(spent(job)))


def lease_left(job: Open) -> Purse:
    """What is left of what the job was given of its tenant's day; no limit where it has no lease."""
    lease = job.decided.lease
    if lease is None:
        return None, None, None
    return less(more(of(lease), used(job.decided.before)), used(spent(job)))


def left(job: Open) -> Purse:
    """What the job may still spend, what is granted to its attempts included."""
    return smaller(budget_left(job), lease_left(job))


def lease_binds(job: Open) -> bool:
    """Whether the job could spend more if only its lease were larger."""
    return not covers(lease_left(job), budget_left(job)) or any(
        mine is not None and own is None for mine, own in zip(lease_left(job), budget_left(job), strict=True)
    )


def owner(job: Open, task: TaskId) -> TaskId | None:
    """The sub-task of the plan whose own budget an attempt spends: its hedge spends it as well."""
    if task in job.nodes:
        return task
    step = job.steps.get(task)
    return step.of[0].task if step is not None and step.role == "hedge" and step.of else None


def own_left(job: Open, task: TaskId) -> Purse:
    """What is left of a sub-task's own budget, what is granted to its attempts included."""
    own, whose = job.submitted.goal.budget.subtask, owner(job, task)
    if own is None or whose is None:
        return None, None, None
    total = job.spending.get(whose, NO_USAGE)
    for lost in job.lost:
        if owner(job, lost.task) == whose:
            total += estimate(lost.grant)
    return less(of(own), used(total))


def charge(job: Open, task: TaskId, usage: Usage) -> Open:
    """The job, and its sub-task where that has a budget of its own, with what an attempt cost."""
    job = spend(job, usage)
    whose = owner(job, task)
    if whose is None or job.submitted.goal.budget.subtask is None:
        return job
    total = job.spending.get(whose, NO_USAGE) + usage
    return replace(job, spending=MappingProxyType({**job.spending, whose: total}))


def outlay(job: Open, tasks: Iterable[TaskId]) -> Usage:
    """What a job has spent in this revision when it ends, and all that these sub-tasks were granted.

    Nobody waits for those to tell what they spent of it.

    Args:
        tasks: Those whose attempts have not ended.
    """
    total, lost = spent(job), lost_attempts(job)
    for task in tasks:
        state = job.states[task]
        if isinstance(state, Ready | Released | Running | Suspended) and state.grant is not None:
            total += NO_USAGE if (task, state.attempt) in lost else estimate(state.grant)
    before = job.decided.before
    return Usage(
        calls=total.calls - before.calls,
        tokens_in=total.tokens_in - before.tokens_in,
        tokens_cached=total.tokens_cached - before.tokens_cached,
        tokens_out=total.tokens_out - before.tokens_out,
        usd=max(0.0, total.usd - before.usd),
        estimated=total.estimated - before.estimated,
        tool_calls=total.tool_calls - before.tool_calls,
    )


def over_budget(job: Open) -> str:
    """Which budget is spent, for a person; empty while none is."""
    budget = job.submitted.goal.budget
    if not budget.limited:
        return ""
    usage = spent(job)
    *_, usd = less(of(budget), used(usage))  # as it is granted: the sum of many floats is hardly ever exact
    if budget.tokens is not None and usage.tokens >= budget.tokens:
        what = f"the budget of {budget.tokens} tokens is spent ({usage.tokens} used"
    elif budget.calls is not None and usage.calls >= budget.calls:
        what = f"the budget of {budget.calls} model calls is spent ({usage.calls} made"
    elif budget.usd is not None and usd is not None and usd <= 0:
        what = f"the budget of {budget.usd:g} US dollars is spent ({usage.usd:.6f} used"
    else:
        return ""
    lost = ", ".join(f"{each.task}/{each.attempt}" for each in job.lost[:NAMED])
    more = f" and {len(job.lost) - NAMED} more" if len(job.lost) > NAMED else ""
    return (
        f"{what}, counting all that was granted to {lost}{more}, whose end nobody told)"
        if lost
        else f"{what})"
    )


def lose(job: Open, task: TaskId, state: Ready | Released | Running | Suspended) -> Open:
    """An attempt's time is over, and nobody told what it cost.

    Of one sub-task the last such attempt is remembered; what was granted to one before it stays spent. One
    that may spend any amount counts as nothing until it tells.
    """
    before = next((lost for lost in job.lost if lost.task == task), None)
    if before is not None and before.attempt == state.attempt:
        return job
    if before is not None:
        job = charge(job, task, estimate(before.grant))
    others = tuple(lost for lost in job.lost if lost.task != task)
    grant = NOTHING if state.grant is None else state.grant
    lost = Lost(task=task, attempt=state.attempt, grant=grant)
    return replace(job, lost=(*others, lost))


def told_late(job: Open, event: Ended) -> Open:
    """The job once the end of a lost attempt is told after all: it has spent what that one says."""
    if isinstance(event, Planned) and event.task != PLAN:
        return job
    for lost in job.lost:
        if (lost.task, lost.attempt) == (event.task, event.attempt):
            rest = tuple(other for other in job.lost if other is not lost)
            return replace(charge(job, event.task, event.usage), lost=rest)
    return job


def lost_attempts(job: Open) -> frozenset[tuple[TaskId, int]]:
    """Those that are waited for to tell what they cost."""
    return frozenset((lost.task, lost.attempt) for lost in job.lost)


def unheard(job: Open, told: frozenset[tuple[TaskId, int]]) -> Usage:
    """What was granted to attempts that had begun when their job ended, but those that *told* their end."""
    total = NO_USAGE
    for task, state in job.states.items():
        if isinstance(state, Running) and (task, state.attempt) not in told and state.grant is not None:
            total += estimate(state.grant)
    return total


def estimate(grant: Grant) -> Usage:
    """What an attempt may have spent that never told: all of its grant. Its tokens count as input."""
    if grant == NOTHING:
        return NO_USAGE
    calls = grant.calls or 0
    return Usage(calls=calls, tokens_in=grant.tokens or 0, usd=grant.usd or 0.0, estimated=max(1, calls))
