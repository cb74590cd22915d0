"""Shares of a list input: which are possible, what they leave out, and how to cut even ones."""

from collections.abc import Iterable, Iterator
from typing import Final, Literal

from streams.core.plan import InputShare

_RANGES_SHOWN: Final = 5


def share_fault(share: InputShare | Literal["each"], items: int | None, *, known: bool = True) -> str:
    """Why *share* cannot be of an input, or the empty string where it can.

    Args:
        items: How many items the input has; None where it is no list.
        known: Without it nothing is known of the input, and only the share itself is judged.
    """
    if share is None or share == "all":
        return ""
    if share == "each":
        if not items:
            what = "no list" if items is None else "an empty list"
            return f'input is "each", but the goal\'s input is {what}'
        return ""
    first, last = share
    if not 0 <= first <= last:
        return f"input [{_number(first)}, {_number(last)}] must be [first, last], counted from 0"
    if known and items is None:
        return f"input [{_number(first)}, {_number(last)}], but the goal's input is no list"
    if known and last >= (items or 0):
        have = f"has items 0 to {items - 1}" if items else "is an empty list"
        return f"input [{_number(first)}, {_number(last)}], but the goal's input {have}"
    return ""


def missing_items(shares: Iterable[tuple[int, int]], items: int) -> str:
    """The items that are in no share, for a person: ``items 3, 7 to 9``; empty where there are none."""
    gaps = [_range(first, last) for first, last in _gaps(shares, items)]
    if not gaps:
        return ""
    more = len(gaps) - _RANGES_SHOWN
    return f"items {', '.join(gaps[:_RANGES_SHOWN])}" + (f" and {more} more ranges" if more > 0 else "")


def chunks(items: int, places: int) -> tuple[tuple[int, int], ...]:
    """Cut *items* into at most *places* runs of consecutive items, none longer than another by two."""
    size, longer = divmod(items, min(items, places))
    found: list[tuple[int, int]] = []
    first = 0
    while first < items:
        end = first + size + (len(found) < longer)
        found.append((first, end - 1))
        first = end
    return tuple(found)


def _gaps(shares: Iterable[tuple[int, int]], items: int) -> Iterator[tuple[int, int]]:
    following = 0
    for first, last in sorted(shares):
        if first > following:
            yield following, first - 1
        following = max(following, last + 1)
    if following < items:
        yield following, items - 1


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _number(value: int) -> str:
    # Python refuses to print integers of more than 4,300 digits, and nobody would read them.
    return str(value) if abs(value) < 10**20 else f"{'-' if value < 0 else ''}(over 20 digits)"
