"""A line of those who wait: the first by priority, or the one who has waited longest, whoever is asked for.

Two heaps of nodes that never change: to join a line and to take from it costs the logarithm of its length,
and the line as it was before is still there. Who has left the line meanwhile is dropped when they come first,
and all of them once they are more than those who wait.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeAlias

from streams.core.values import JobId

Order: TypeAlias = Literal["priority", "age"]

SWEPT_FROM: Final = 64
"""Entries from which on those who have left are looked for."""


class Entry(NamedTuple):
    """Somebody in line; *key* says who comes first: the smaller."""

    key: tuple[int, int, JobId]
    job: JobId
    revision: int


class Node(NamedTuple):
    """A leftist heap: *rank* is the length of the way down its right side, the shorter one."""

    rank: int
    entry: Entry
    left: "Node | None"
    right: "Node | None"


def merged(one: Node | None, other: Node | None) -> Node | None:
    """Both heaps as one. The way down is as long as the logarithm of their sizes."""
    if one is None:
        return other
    if other is None:
        return one
    if other.entry < one.entry:
        one, other = other, one
    left, right = one.left, merged(one.right, other)
    if left is None or (right is not None and right.rank > left.rank):
        left, right = right, left
    return Node(1 + (right.rank if right else 0), one.entry, left, right)


def _heap(nodes: "deque[Node | None]") -> Node | None:
    """One heap of all of them, merged two by two."""
    while len(nodes) > 1:
        nodes.append(merged(nodes.popleft(), nodes.popleft()))
    return nodes.popleft() if nodes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Who waits.

    Attributes:
        entries: How many there are in each heap at most, those among them who have left the line.
    """

    by_priority: Node | None = None
    by_age: Node | None = None
    entries: int = 0

    @classmethod
    def of(cls, everybody: "Iterable[tuple[JobId, int, int, int]]") -> "Line":
        """A line of these: job, revision, priority and since of each. It costs as much as there are."""
        first, oldest = deque[Node | None](), deque[Node | None]()
        for job, revision, priority, since in everybody:
            first.append(Node(1, Entry((-priority, since, job), job, revision), None, None))
            oldest.append(Node(1, Entry((0, since, job), job, revision), None, None))
        entries = len(first)
        return cls(by_priority=_heap(first), by_age=_heap(oldest), entries=entries)

    def joined(self, job: JobId, revision: int, *, priority: int, since: int) -> "Line":
        """The line with one more.

        Args:
            priority: The higher comes first.
            since: As any number that grows with time; among equals the smaller comes first.
        """
        first, oldest = Entry((-priority, since, job), job, revision), Entry((0, since, job), job, revision)
        return Line(
            by_priority=merged(self.by_priority, Node(1, first, None, None)),
            by_age=merged(self.by_age, Node(1, oldest, None, None)),
            entries=self.entries + 1,
        )

    def first(self, order: Order, waits: Callable[[Entry], bool]) -> "tuple[Entry | None, Line]":
        """Who comes first in this order, and the line without those before them who have left it."""
        top = self.by_priority if order == "priority" else self.by_age
        while top is not None and not waits(top.entry):
            top = merged(top.left, top.right)
        line = replace(self, by_priority=top) if order == "priority" else replace(self, by_age=top)
        return (None if top is None else top.entry), line

    def swept(self, waiting: int, everybody: Callable[[], "Iterable[tuple[JobId, int, int, int]]"]) -> "Line":
        """The line without those who have left it, once they are most of it.

        Args:
            waiting: How many really wait.
            everybody: Job, revision, priority and since of each of those.
        """
        if self.entries < SWEPT_FROM or self.entries <= 2 * waiting:
            return self
        return Line.of(everybody())


EMPTY: Final = Line()
