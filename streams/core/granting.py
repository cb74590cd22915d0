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

**Of a lease.** A job that was given a part of its tenant's day grants of that, too, and of the smaller of
both. While its account may give more, no attempt is granted less than it is likely to need: the job asks
first, see :mod:`streams.core.paying`.

**A sub-task's own budget** bounds all of its attempts together, and those of its hedges: a grant is never
more than what is left of it.

What is spent, and what becomes of the grants of attempts that are lost, is in :mod:`streams.core.money`.
"""

from dataclasses import replace

from streams.core.events import SubTaskSucceeded
from streams.core.goal import WITHOUT_A_MODEL
from streams.core.money import (
    NOTHING,
    budget_left,
    charged,
    lease_binds,
    lease_left,
    left,
    own_left,
    owner,
)
from streams.core.purse import (
    LEAST,
    NONE,
    Purse,
    billionths,
    covers,
    grant_of,
    larger,
    less,
    of,
    smaller,
    times,
    used,
)
from streams.core.room import alone
from streams.core.states import (
    Failed,
    Open,
    Ready,
    Released,
    Running,
    Stopped,
    SubTaskState,
    Succeeded,
    Suspended,
)
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
    if not charged(job):
        return job.ready
    return tuple(task for task in job.ready if _grant(job, task) is not None)


def fund(job: Open) -> Open:
    """Grant ready sub-tasks their share of the budget, in the plan's order, as far as it goes.

    At most as many are out as the goal's concurrency allows.
    """
    waiting = unfunded(job)
    if not waiting:
        return job
    out, held = _held(job)
    whole = left(job)
    free = less(whole, held)
    share, kept = _share(job, whole)
    enough = covers(share, LEAST)
    granted: dict[TaskId, SubTaskState] = {}
    for task in waiting:
        if out >= job.submitted.goal.limits.concurrency:
            break
        own = less(own_left(job, task), _held_of(job, task, granted))
        if calls_no_model(job, task):
            grant, taken = NOTHING, NONE
        elif not covers(own, LEAST) or _rather_asks(job, less(lease_left(job), less(whole, free))):
            continue
        elif enough and (enough := covers(less(free, kept), share)):
            grant = grant_of(taken := smaller(share, own))
        elif out == 0 and covers(free, LEAST):
            grant = grant_of(taken := smaller(free, own))
        else:
            continue
        free = less(free, taken)
        granted[task] = replace(_ready(job, task), grant=grant)
        out += 1
    return replace(job, states={**job.states, **granted}) if granted else job


def unfunded(job: Open) -> list[TaskId]:
    """Ready sub-tasks without a grant, in the plan's order; a restored job may have them in another one."""
    waiting = [task for task in job.ready if _grant(job, task) is None]
    return sorted(waiting, key=lambda task: ordinal_of(job, task)) if len(waiting) > 1 else waiting


def lacking(job: Open) -> Purse:
    """What the job's lease lacks for all that could go out now and for the synthesis.

    Less than nothing where there is more than is needed, None where there is no limit.
    """
    out, held = _held(job)
    room = max(0, job.submitted.goal.limits.concurrency - out)
    waiting = sum(not calls_no_model(job, task) for task in unfunded(job))
    last = ANSWER in job.states or (alone(job) and not job.steps)
    shares = min(room, waiting) + (not last)
    return less(times(likely(job), shares), less(lease_left(job), held))


def may_ask(job: Open) -> bool:
    """Whether the job's account may still give it more than it has, and it may spend that."""
    return job.decided.lease is not None and not job.decided.short and lease_binds(job)


def bound_by_its_own(job: Open, task: TaskId, grant: Grant, usage: Usage) -> bool:
    """Whether an attempt with this grant, which has just told its usage, had all of its own budget."""
    return _at_most(own_left(job, task), usage, grant)


def had_all(job: Open, grant: Grant | None, usage: Usage) -> bool:
    """Whether an attempt with this grant, which has just told its usage, had all that its job could give.

    Then no other attempt can be granted more than was too little for this one.
    """
    if grant is None or _held(job)[0] > 1 or may_ask(job):
        return False
    if any(isinstance(state, Suspended) and state.grant is not None for state in job.states.values()):
        return False
    return _at_most(left(job), usage, grant)


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


def calls_no_model(job: Open, task: TaskId) -> bool:
    """Whether a sub-task calls a tool and nothing else, or is put together by its lane."""
    if task == ANSWER:
        return job.submitted.goal.join.strategy in WITHOUT_A_MODEL
    node = job.nodes.get(owner(job, task) or task)
    return node is not None and node.task.tool is not None and not node.task.goal


def likely(job: Open) -> Purse:
    """What an attempt is likely to need, by what is known of those so far."""
    need: Purse = (None, None, None) if job.need is None else of(job.need)
    calls = CALLS_WITH_TOOLS if job.submitted.goal.tools else CALLS
    return max(calls, need[0] or 0), max(TOKENS, need[1] or 0), max(1, need[2] or 0)


def _rather_asks(job: Open, free: Purse) -> bool:
    """Whether so little is free of the lease that the job asks for more before it grants any of it."""
    return may_ask(job) and not covers(free, smaller(likely(job), budget_left(job)))


def _at_most(rest: Purse, usage: Usage, grant: Grant) -> bool:
    """Whether this grant was all that there was, when this is the rest after this usage of it."""
    return any(
        had is not None and left_ is not None and had >= left_ + (spent_ or 0)
        for left_, spent_, had in zip(rest, used(usage), of(grant), strict=True)
    )


def _held(job: Open) -> tuple[int, Purse]:
    """How many attempts are out, and what is granted to them and to those that are suspended."""
    out = calls = tokens = usd = 0
    for state in job.states.values():
        if not isinstance(state, Ready | Released | Running | Suspended):
            continue
        if (grant := state.grant) is not None:
            calls += grant.calls or 0
            tokens += grant.tokens or 0
            usd += billionths(grant.usd) if grant.usd else 0
            out += not isinstance(state, Suspended)
        elif isinstance(state, Released | Running):
            out += 1
    return out, (calls, tokens, usd)


def _held_of(job: Open, task: TaskId, granted: dict[TaskId, SubTaskState]) -> Purse:
    """What is granted to attempts that spend the same sub-task's own budget."""
    if job.submitted.goal.budget.subtask is None or (whose := owner(job, task)) is None:
        return NONE
    held = NONE
    for name in (whose, *(step for step in job.steps if owner(job, step) == whose)):
        grant = getattr(granted.get(name, job.states.get(name)), "grant", None)
        if grant is not None:
            calls, tokens, usd = of(grant)
            held = (
                (held[0] or 0) + (calls or 0),
                (held[1] or 0) + (tokens or 0),
                (held[2] or 0) + (usd or 0),
            )
    return held


def _grant(job: Open, task: TaskId) -> Grant | None:
    """That of a ready sub-task."""
    return _ready(job, task).grant


def _ready(job: Open, task: TaskId) -> Ready:
    state = job.states[task]
    assert isinstance(state, Ready)
    return state


def _share(job: Open, whole: Purse) -> tuple[Purse, Purse]:
    """What one attempt is to have, and what stays free for what comes after."""
    goal, total = job.submitted.goal, len(job.nodes)
    if PLAN in job.states:
        parts = 2
    elif ANSWER in job.states or (alone(job) and not job.steps):
        return whole, NONE
    else:
        steps = sum(not isinstance(job.states[name], Succeeded | Failed | Stopped) for name in job.steps)
        parts = 1 + min(goal.limits.concurrency, total - job.ended + steps)
    calls, tokens, usd = whole
    least = likely(job)
    if usd is not None and (job.need is None or job.need.usd is None):
        parts = min(parts, 1 + AT_FIRST)
    share = _part(calls, parts, least[0]), _part(tokens, parts, least[1]), _part(usd, parts, least[2])
    return share, share


def _part(whole: int | None, parts: int, least: int | None) -> int | None:
    return None if whole is None else max(whole // parts, least or 0)
