"""Amounts of calls, tokens and dollars together, in whole numbers, so that sums of them are exact."""

from typing import TypeAlias

from streams.core.goal import Budget
from streams.core.values import Grant, Usage

Purse: TypeAlias = tuple[int | None, int | None, int | None]
"""Calls, tokens, and billionths of a US dollar; None where there is no limit."""

NONE: Purse = (0, 0, 0)
LEAST: Purse = (1, 1, 1)

_BILLION = 1_000_000_000


def billionths(usd: float) -> int:
    """Billionths of a dollar."""
    return round(usd * _BILLION)


def of(limits: Budget | Grant) -> Purse:
    """What there is."""
    usd = limits.usd
    return limits.calls, limits.tokens, None if usd is None else billionths(usd)


def used(usage: Usage) -> Purse:
    """What is spent."""
    return usage.calls, usage.tokens, billionths(usage.usd)


def grant_of(purse: Purse) -> Grant:
    """The grant of so much."""
    calls, tokens, usd = purse
    return Grant(calls=calls, tokens=tokens, usd=None if usd is None else usd / _BILLION)


def less(whole: Purse, part: Purse) -> Purse:
    """What is left; below zero where it is less than nothing."""
    a, b, c = whole
    x, y, z = part
    return (
        None if a is None else a - (x or 0),
        None if b is None else b - (y or 0),
        None if c is None else c - (z or 0),
    )


def covers(whole: Purse, part: Purse) -> bool:
    """Whether there is enough of everything that is limited."""
    return all(a is None or a >= (b or 0) for a, b in zip(whole, part, strict=True))


def times(purse: Purse, factor: int) -> Purse:
    """So many times as much of everything that is limited."""
    a, b, c = purse
    return (
        None if a is None else a * factor,
        None if b is None else b * factor,
        None if c is None else c * factor,
    )


def larger(one: Purse, other: Purse) -> Purse:
    """Of everything the larger amount; what only one of them limits is limited."""
    a, b, c = one
    x, y, z = other
    return _larger(a, x), _larger(b, y), _larger(c, z)


def _larger(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)


def more(whole: Purse, part: Purse) -> Purse:
    """Both together; where one has no limit there is none."""
    a, b, c = whole
    x, y, z = part
    return (
        None if a is None or x is None else a + x,
        None if b is None or y is None else b + y,
        None if c is None or z is None else c + z,
    )


def negative(purse: Purse) -> Purse:
    """What takes so much away when it is added."""
    a, b, c = purse
    return None if a is None else -a, None if b is None else -b, None if c is None else -c


def smaller(one: Purse, other: Purse) -> Purse:
    """Of everything the smaller amount; what only one of them limits is limited."""
    a, b, c = one
    x, y, z = other
    return _smaller(a, x), _smaller(b, y), _smaller(c, z)


def some(purse: Purse) -> Purse:
    """The same, with nothing in place of what is less than nothing."""
    a, b, c = purse
    return (
        None if a is None else max(a, 0),
        None if b is None else max(b, 0),
        None if c is None else max(c, 0),
    )


def _smaller(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)
