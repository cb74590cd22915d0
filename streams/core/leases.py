"""Leases: how much of a tenant's day a job is given at once, and how much it asks for.

A lease is large enough that a job seldom asks, and small enough that many can begin: a :data:`PART` of the
day, and no more than the job may spend by its own budget.
"""

from typing import Final

from streams.core.goal import Goal
from streams.core.purse import Purse, covers, grant_of, larger, less, of, smaller, some, used
from streams.core.states import Account
from streams.core.values import Grant

PART: Final = 16
"""Into so many leases a day is cut at first."""

TO_BEGIN: Final = (2, 8_000)
"""Calls and tokens without which no job begins: a plan that is made, or a sub-task and the synthesis."""

TO_GO_ON: Final = (1, 2_000)
"""Calls and tokens without which it makes no sense to go on."""

DOLLARS_TO_BEGIN, DOLLARS_TO_GO_ON = 64, 256
"""Such parts of the day's dollars, likewise: nobody here knows what a call costs."""

ANY: Final[Purse] = (None, None, None)


def first_want(goal: Goal) -> Grant | None:
    """What a job asks for to begin with, at most: its own budget, of what its tenant's day limits."""
    if goal.rules.day is None:
        return None
    return grant_of(_masked(of(goal.rules.day), of(goal.budget)))


def part_of(day: Grant) -> Purse:
    """A usual lease."""
    limit = of(day)
    calls, tokens, usd = limit
    parts = _each(calls), _each(tokens), _each(usd)
    return smaller(larger(parts, _masked(limit, (*TO_BEGIN, 1))), limit)


def free(account: Account) -> Purse:
    """What of the day is neither spent nor leased; less than nothing where a limit was lowered."""
    assert account.limit is not None
    return less(less(of(account.limit), used(account.spent)), account.guests.leased)


def to_begin(account: Account, want: Grant | None) -> Purse | None:
    """The lease of a job that asks for so much at most; None where too little is left for it to begin.

    Where the account has a limit.
    """
    assert account.limit is not None
    limit, there = of(account.limit), some(free(account))
    wanted = smaller(_masked(limit, of(want) if want else ANY), part_of(account.limit))
    least = smaller(wanted, _least(limit, TO_BEGIN, DOLLARS_TO_BEGIN))
    return smaller(wanted, there) if covers(there, least) else None


def what_is_left(account: Account, want: Grant | None) -> Purse:
    """As :func:`to_begin`, if only nothing."""
    assert account.limit is not None
    wanted = smaller(_masked(of(account.limit), of(want) if want else ANY), part_of(account.limit))
    return smaller(wanted, some(free(account)))


def to_go_on(account: Account, want: Grant) -> Purse | None:
    """What a job is given that asks for so much more; None where too little is left for it to go on."""
    assert account.limit is not None
    limit, there = of(account.limit), some(free(account))
    wanted = _masked(limit, of(want))
    least = smaller(wanted, _least(limit, TO_GO_ON, DOLLARS_TO_GO_ON))
    return smaller(wanted, there) if covers(there, least) else None


def nothing(account: Account) -> Grant:
    """Nothing of all that is limited."""
    assert account.limit is not None
    return grant_of(_masked(of(account.limit), (0, 0, 0)))


def why_short(account: Account) -> str:
    """What has become of the day, for a person."""
    assert account.limit is not None
    names = ("model calls", "tokens", "billionths of a US dollar")
    parts = []
    for name, whole, spent, leased in zip(
        names, of(account.limit), used(account.spent), account.guests.leased, strict=True
    ):
        if whole is None:
            continue
        numbers = (whole, spent or 0, leased or 0)
        if name == names[2]:
            name = "US dollars"  # noqa: PLW2901 - said as people say it
            shown = tuple(f"{each / 1e9:g}" for each in numbers)
        else:
            shown = tuple(map(str, numbers))
        parts.append(f"{shown[1]} of {shown[0]} {name} are spent and {shown[2]} promised to jobs under way")
    return f"of the tenant's day {'; '.join(parts)}"


def _each(whole: int | None) -> int | None:
    return None if whole is None else whole // PART


def _least(limit: Purse, counts: tuple[int, int], part: int) -> Purse:
    usd = limit[2]
    return smaller(_masked(limit, (*counts, None if usd is None else max(1, usd // part))), limit)


def _masked(limit: Purse, purse: Purse) -> Purse:
    """Only of what is limited."""
    a, b, c = limit
    x, y, z = purse
    return None if a is None else x, None if b is None else y, None if c is None else z
