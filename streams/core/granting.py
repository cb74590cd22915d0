"""What a job's attempts are granted of its budget.

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

**What is learned.** What an attempt is likely to cost in dollars nobody knows beforehand: until one has
succeeded, a budget in dollars is shared by :data:`AT_FIRST` at most, then a share is at least
:data:`MARGIN` times the dearest so far. An attempt whose grant was too small is tried again with twice
as much, as are all after it; had it all that was left, the job ends.

What is spent, and what becomes of the grants of attempts that are lost, is in :mod:`streams.core.money`.
"""

from dataclasses import replace

from streams.core.events import SubTaskSucceeded
from streams.core.money import NOTHING, over_budget, spent
from streams.core.purse import LEAST, NONE, Purse, billionths, covers, grant_of, larger, less, of, times, used
from streams.core.states import Node, Open, Ready, Released, Running, SubTaskState
from streams.core.stopping import ordinal_of
from streams.core.values import ANSWER, PLAN, Grant, TaskId, Usage

CALLS, CALLS_WITH_TOOLS = 2, 4
"""Model calls that an attempt is likely to need: the one that brings its result and one that brings none, or
three rounds of tools and the turn after them."""

TOKENS = 8_000
"""Tokens that an attempt is likely to need: the 4,000 of output that it has by default, and as many more."""

AT_FIRST = 8
"""Sub-tasks that share a budget in dollars before anything is known of what one of them costs."""

MARGIN = 4
"""Times as much as the dearest attempt so far another one may need: before a call all of its output counts,
of which most need a part."""

TWICE = 2
"""Times as much as was too little."""


def releasable(job: Open) -> tuple[TaskId, ...]:
    """The ready sub-tasks whose commands may go out: of a job with a budget those that have a grant.

    None of a job that waits, for its tenant's turn or for a person.
    """
    if job.decided.hold is not None:
        return ()
    if not job.submitted.goal.budget.limited:
        return job.ready
    return tuple(task for task in job.ready if _grant(job, task) is not None)


def fund(job: Open) -> Open:
    """Grant ready sub-tasks their share of the budget, in the plan's order, as far as it goes.

    At most as many are out as the goal's concurrency allows.
    """
    waiting = _waiting(job)
    if not waiting:
        return job
    out, held = _held(job)
    left = less(of(job.submitted.goal.budget), used(spent(job)))
    free = less(left, held)
    share, kept = _share(job, left)
    enough = covers(share, LEAST)
    granted: dict[TaskId, SubTaskState] = {}
    for task in waiting:
        if out >= job.submitted.goal.limits.concurrency:
            break
        if _calls_no_model(job.nodes.get(task)):
            grant = NOTHING
        elif enough and (enough := covers(less(free, kept), share)):
            grant = grant_of(share)
            free = less(free, share)
        elif out == 0 and covers(free, LEAST):
            grant = grant_of(free)
            free = less(free, free)
        else:
            continue
        granted[task] = Ready(attempt=_ready(job, task).attempt, grant=grant)
        out += 1
    return replace(job, states={**job.states, **granted}) if granted else job


def out_of_money(job: Open) -> str:
    """Why the job cannot go on, for a person: nothing is out, and for what is ready too little is left.

    Empty while it can.
    """
    if job.outstanding or not job.ready or any(_grant(job, task) is not None for task in job.ready):
        return ""
    return over_budget(job) or "too little is left of the budget"


def had_all(job: Open, grant: Grant | None, usage: Usage) -> bool:
    """Whether an attempt with this grant, which has just told its usage, had all that its job could give.

    Then no other attempt can be granted more than was too little for this one.
    """
    if grant is None or _held(job)[0] > 1:
        return False
    before = less(of(job.submitted.goal.budget), used(spent(job)))
    had = of(grant)
    left = [
        (whole + back, part)
        for whole, back, part in zip(before, used(usage), had, strict=True)
        if whole is not None and back is not None and part is not None
    ]
    return any(part >= whole for whole, part in left)


def learned(job: Open, event: SubTaskSucceeded, grant: Grant | None) -> Open:
    """The job with what the success of a sub-task says of what others are likely to cost."""
    if grant is None or grant.usd is None or not event.usage.calls:
        return job
    usd, known = MARGIN * event.usage.usd, job.need.usd if job.need else None
    if known is not None and known >= usd:
        return job
    return replace(job, need=replace(job.need or Grant(), usd=usd))


def too_small(job: Open, grant: Grant) -> Open:
    """The job once this grant was too little for an attempt: further ones have twice as much."""
    need = of(job.need or Grant())
    return replace(job, need=grant_of(larger(need, times(of(grant), TWICE))))


def _waiting(job: Open) -> list[TaskId]:
    """Ready sub-tasks without a grant, in the plan's order; a restored job may have them in another one."""
    waiting = [task for task in job.ready if _grant(job, task) is None]
    return sorted(waiting, key=lambda task: ordinal_of(job, task)) if len(waiting) > 1 else waiting


def _held(job: Open) -> tuple[int, Purse]:
    """How many attempts are out, and what is granted to them."""
    out = calls = tokens = usd = 0
    for state in job.states.values():
        if not isinstance(state, Ready | Released | Running):
            continue
        if (grant := state.grant) is not None:
            calls += grant.calls or 0
            tokens += grant.tokens or 0
            usd += billionths(grant.usd) if grant.usd else 0
            out += 1
        elif not isinstance(state, Ready):
            out += 1
    return out, (calls, tokens, usd)


def _grant(job: Open, task: TaskId) -> Grant | None:
    """That of a ready sub-task."""
    return _ready(job, task).grant


def _ready(job: Open, task: TaskId) -> Ready:
    state = job.states[task]
    assert isinstance(state, Ready)
    return state


def _calls_no_model(node: Node | None) -> bool:
    return node is not None and node.task.tool is not None and not node.task.goal


def _share(job: Open, left: Purse) -> tuple[Purse, Purse]:
    """What one attempt is to have, and what stays free for what comes after."""
    goal, total = job.submitted.goal, len(job.nodes)
    if PLAN in job.states:
        parts = 2
    elif ANSWER in job.states or total == 1:
        return left, NONE
    else:
        parts = 1 + min(goal.limits.concurrency, total - job.ended)
    calls, tokens, usd = left
    likely = CALLS_WITH_TOOLS if goal.tools else CALLS
    need: Purse = (None, None, None) if job.need is None else of(job.need)
    if usd is not None and need[2] is None:
        parts = min(parts, 1 + AT_FIRST)
    share = (
        _part(calls, parts, max(likely, need[0] or 0)),
        _part(tokens, parts, max(TOKENS, need[1] or 0)),
        _part(usd, parts, max(1, need[2] or 0)),
    )
    return share, share


def _part(whole: int | None, parts: int, least: int) -> int | None:
    return None if whole is None else max(whole // parts, least)
