"""A job's budget: what its attempts are granted of it, and what of it is left.

What is granted to the attempts that are out, and what is spent, are never more than the budget
together. A grant belongs to one attempt from the moment it is ready, and is released, counted and
settled by the job's own events alone, so that every replay sees the same grants, whatever paced
the commands. Where a goal has no budget nothing of this applies, and no attempt has a grant.

**How much.** *Left* is the budget less what is spent. It is cut into as many equal shares as sub-tasks
can be out at once (those that have not ended, at most the goal's concurrency), and one for the
synthesis; planning gets one of two, and a plan's only sub-task, as the synthesis, all of it. A
share is at least what an attempt is likely to need (:data:`CALLS`, :data:`CALLS_WITH_TOOLS`,
:data:`TOKENS`), so that a small budget means fewer attempts at once and not hopeless ones. An attempt
is granted a share where another one stays free for the synthesis; else it waits until something is
settled. Where nothing is out that could be, it is granted all that is left. Sub-tasks that call a
tool and no model are granted nothing, and wait for nothing.

**Settling.** An attempt's end tells what it spent; the rest of its grant is free again. One whose time
is over without a word may have spent all of its grant, and may go on: the whole counts as spent,
marked as estimated, until its end is told after all.
"""

from dataclasses import replace
from typing import TypeAlias

from streams.core.events import Planned, SubTaskFailed, SubTaskSucceeded
from streams.core.goal import Budget
from streams.core.states import Lost, Node, Open, Ready, Released, Running, SubTaskState
from streams.core.values import ANSWER, NO_USAGE, PLAN, Grant, TaskId, Usage

CALLS, CALLS_WITH_TOOLS = 2, 4
"""Model calls that an attempt is likely to need: the one that brings its result and one that brings none, or
three rounds of tools and the turn after them."""

TOKENS = 8_000
"""Tokens that an attempt is likely to need: the 4,000 of output that it has by default, and as many more."""

NOTHING = Grant(calls=0, tokens=0, usd=0.0)
"""Of a sub-task that calls no model."""

Ended: TypeAlias = Planned | SubTaskSucceeded | SubTaskFailed

Purse: TypeAlias = tuple[int | None, int | None, int | None]
"""Calls, tokens, and billionths of a US dollar, in which sums are exact; None where there is no limit."""

_BILLION = 1_000_000_000


def spent(job: Open) -> Usage:
    """What the job has spent: what its attempts told, and the grants of those that never did."""
    total = job.usage
    for lost in job.lost:
        total += _estimate(lost.grant)
    return total


def over_budget(job: Open) -> str:
    """Which budget is spent, for a person; empty while none is."""
    budget = job.submitted.goal.budget
    if not budget.limited:
        return ""
    usage = spent(job)
    if budget.tokens is not None and usage.tokens >= budget.tokens:
        what = f"the budget of {budget.tokens} tokens is spent ({usage.tokens} used"
    elif budget.calls is not None and usage.calls >= budget.calls:
        what = f"the budget of {budget.calls} model calls is spent ({usage.calls} made"
    elif budget.usd is not None and usage.usd >= budget.usd:
        what = f"the budget of {budget.usd:g} US dollars is spent ({usage.usd:.6f} used"
    else:
        return ""
    lost = ", ".join(f"{each.task}/{each.attempt}" for each in job.lost[:_NAMED])
    more = f" and {len(job.lost) - _NAMED} more" if len(job.lost) > _NAMED else ""
    return (
        f"{what}, counting all that was granted to {lost}{more}, whose end nobody told)"
        if lost
        else f"{what})"
    )


_NAMED = 5


def is_out(state: SubTaskState) -> bool:
    """Whether an attempt is under way or may begin at any time: released, running, or granted its share."""
    return isinstance(state, Released | Running) or (isinstance(state, Ready) and state.grant is not None)


def releasable(job: Open) -> tuple[TaskId, ...]:
    """The ready sub-tasks whose commands may go out: of a job with a budget those that have a grant."""
    if not job.submitted.goal.budget.limited:
        return job.ready
    return tuple(task for task in job.ready if is_out(job.states[task]))


def fund(job: Open) -> Open:
    """Grant ready sub-tasks their share of the budget, in the plan's order, as far as it goes.

    At most as many are out as the goal's concurrency allows.
    """
    waiting = _waiting(job)
    if not waiting:
        return job
    grants = [state.grant for state in job.states.values() if isinstance(state, Ready | Released | Running)]
    out = sum(map(is_out, job.states.values()))
    left = _less(_of(job.submitted.goal.budget), _spent(spent(job)))
    free = left
    for grant in grants:
        if grant is not None:
            free = _less(free, _of(grant))
    share, kept = _share(job, left)
    states = dict(job.states)
    for task in waiting:
        if out >= job.submitted.goal.limits.concurrency:
            break
        if _calls_no_model(job.nodes.get(task)):
            grant = NOTHING
        elif _covers(share, _LEAST) and _covers(_less(free, kept), share):
            grant = _grant(share)
            free = _less(free, share)
        elif out == 0 and _covers(free, _LEAST):
            grant = _grant(free)
            free = _less(free, free)
        else:
            continue
        states[task] = Ready(attempt=_attempt(states[task]), grant=grant)
        out += 1
    return replace(job, states=states)


def out_of_money(job: Open) -> str:
    """Why the job cannot go on, for a person: nothing is out, and for what is ready too little is left.

    Empty while it can.
    """
    if not _waiting(job) or any(map(is_out, job.states.values())):
        return ""
    return over_budget(job)


def had_all(job: Open, grant: Grant | None, usage: Usage) -> bool:
    """Whether an attempt with this grant, which has just told its usage, had all that its job could give.

    Then no other attempt can be granted more than was too little for this one.
    """
    if grant is None or sum(map(is_out, job.states.values())) > 1:
        return False
    before = _less(_of(job.submitted.goal.budget), _spent(spent(job)))
    had = _of(grant)
    left = [
        (whole + back, part)
        for whole, back, part in zip(before, _spent(usage), had, strict=True)
        if whole is not None and back is not None and part is not None
    ]
    return any(part >= whole for whole, part in left)


def lose(job: Open, task: TaskId, state: Ready | Released | Running) -> Open:
    """An attempt's time is over, and nobody told what it cost.

    Of one sub-task the last such attempt is remembered; what was granted to one before it stays spent.
    """
    if state.grant is None:
        return job
    before = next((lost for lost in job.lost if lost.task == task), None)
    usage = job.usage if before is None else job.usage + _estimate(before.grant)
    others = tuple(lost for lost in job.lost if lost.task != task)
    lost = Lost(task=task, attempt=state.attempt, grant=state.grant)
    return replace(job, usage=usage, lost=(*others, lost))


def told_late(job: Open, event: Ended) -> Open:
    """The job once the end of a lost attempt is told after all: it has spent what that one says."""
    if isinstance(event, Planned) and event.task != PLAN:
        return job
    for lost in job.lost:
        if (lost.task, lost.attempt) == (event.task, event.attempt):
            rest = tuple(other for other in job.lost if other is not lost)
            return replace(job, usage=job.usage + event.usage, lost=rest)
    return job


def lost_attempts(job: Open) -> frozenset[tuple[TaskId, int]]:
    """Those that are waited for to tell what they cost."""
    return frozenset((lost.task, lost.attempt) for lost in job.lost)


def unheard(job: Open, told: frozenset[tuple[TaskId, int]]) -> Usage:
    """What was granted to attempts that had begun when their job ended, but those that *told* their end."""
    total = NO_USAGE
    for task, state in job.states.items():
        if isinstance(state, Running) and (task, state.attempt) not in told and state.grant is not None:
            total += _estimate(state.grant)
    return total


def _estimate(grant: Grant) -> Usage:
    """What an attempt may have spent that never told: all of its grant. Its tokens count as input."""
    if grant == NOTHING:
        return NO_USAGE
    calls = grant.calls or 0
    return Usage(calls=calls, tokens_in=grant.tokens or 0, usd=grant.usd or 0.0, estimated=max(1, calls))


def _waiting(job: Open) -> list[TaskId]:
    """Ready sub-tasks without a grant, in the plan's order; a restored job may have them in another one."""
    waiting = [task for task in job.ready if not is_out(job.states[task])]
    return sorted(waiting, key=lambda task: job.nodes[task].ordinal) if len(waiting) > 1 else waiting


def _attempt(state: SubTaskState) -> int:
    assert isinstance(state, Ready)
    return state.attempt


def _calls_no_model(node: Node | None) -> bool:
    return node is not None and node.task.tool is not None and not node.task.goal


def _share(job: Open, left: Purse) -> tuple[Purse, Purse]:
    """What one attempt is to have, and what stays free for what comes after."""
    goal, total = job.submitted.goal, len(job.nodes)
    if PLAN in job.states:
        parts = 2
    elif ANSWER in job.states or total == 1:
        return left, _NONE
    else:
        parts = 1 + min(goal.limits.concurrency, total - job.ended)
    calls, tokens, usd = left
    likely = CALLS_WITH_TOOLS if goal.tools else CALLS
    share = _part(calls, parts, likely), _part(tokens, parts, TOKENS), _part(usd, parts, 1)
    return share, share


def _part(whole: int | None, parts: int, least: int) -> int | None:
    return None if whole is None else max(whole // parts, least)


_NONE: Purse = (0, 0, 0)
_LEAST: Purse = (1, 1, 1)


def _less(whole: Purse, part: Purse) -> Purse:
    a, b, c = whole
    x, y, z = part
    return (
        None if a is None else a - (x or 0),
        None if b is None else b - (y or 0),
        None if c is None else c - (z or 0),
    )


def _covers(whole: Purse, part: Purse) -> bool:
    return all(a is None or a >= (b or 0) for a, b in zip(whole, part, strict=True))


def _of(limits: Budget | Grant) -> Purse:
    usd = limits.usd
    return limits.calls, limits.tokens, None if usd is None else round(usd * _BILLION)


def _spent(usage: Usage) -> Purse:
    return usage.calls, usage.tokens, round(usage.usd * _BILLION)


def _grant(purse: Purse) -> Grant:
    calls, tokens, usd = purse
    return Grant(calls=calls, tokens=tokens, usd=None if usd is None else usd / _BILLION)
