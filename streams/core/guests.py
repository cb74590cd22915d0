"""Guests: the jobs at a tenant's account, those that have a place and those that wait, however many.

A mapping that never changes: with one guest more, fewer or another it is a new one, which shares nearly all
of itself with the one before. So an event costs the same with a hundred thousand that wait as with ten, the
table finds what changed without looking at all of them, and the account as it was before is still there.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final
from zlib import crc32

from streams.core.line import EMPTY, Entry, Line, Order
from streams.core.purse import NONE, Purse, more, negative, of
from streams.core.values import Grant, JobId

PARTS: Final = 256
"""Into so many parts the mapping is cut; an event copies one."""

_NOBODY: Final[Mapping[JobId, "Guest"]] = MappingProxyType({})
_EMPTY: Final = (_NOBODY,) * PARTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """A job that has asked its tenant's account for a place.

    Attributes:
        asked: How often it has asked, of this revision.
        begun: It has a place.
        lease: What was given to it and is not returned, of the day's money.
        want: What it asks for now, where it waits.
        gave: What the last asking that was answered has brought, so that it can be answered again.
        reason: Why that was less than was asked for.
        parent: The job that waits for it.
        inside: It has its parent's place, and takes none of its own.
    """

    job: JobId
    revision: int
    priority: int
    since: int
    asked: int = 1
    begun: bool = False
    lease: Grant | None = None
    want: Grant | None = None
    gave: Grant | None = None
    reason: str = ""
    parent: JobId | None = None
    inside: bool = False

    @property
    def asks(self) -> bool:
        """It has a place, and waits for more money."""
        return self.begun and self.want is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guests(Mapping[JobId, Guest]):
    """Guests by job.

    Attributes:
        count: How many there are.
        begun: How many have a place.
        places: How many places those take.
        holding: How many have a lease, if only of nothing.
        leased: What is leased to all of them together.
        asking: Those who have a place and wait for more money, in no order.
        line: Those who wait for a place.
    """

    parts: tuple[Mapping[JobId, Guest], ...] = _EMPTY
    count: int = 0
    begun: int = 0
    places: int = 0
    holding: int = 0
    leased: Purse = NONE
    asking: Mapping[JobId, Guest] = field(default_factory=lambda: _NOBODY)
    line: Line = EMPTY

    @classmethod
    def of(cls, guests: Iterable[Guest]) -> "Guests":
        """These."""
        parts: list[dict[JobId, Guest]] = [{} for _ in range(PARTS)]
        for guest in guests:
            parts[_part_of(guest.job)][guest.job] = guest
        everybody = [guest for part in parts for guest in part.values()]
        leased = NONE
        for guest in everybody:
            leased = more(leased, _lease(guest))
        waiting = ((g.job, g.revision, g.priority, g.since) for g in everybody if not g.begun)
        return cls(
            parts=tuple(part or _NOBODY for part in parts),
            count=len(everybody),
            begun=sum(map(_begun, everybody)),
            places=sum(map(_place, everybody)),
            holding=sum(map(_holds, everybody)),
            leased=leased,
            asking={guest.job: guest for guest in everybody if guest.asks},
            line=Line.of(waiting),
        )

    def __getitem__(self, job: JobId) -> Guest:
        return self.parts[_part_of(job)][job]

    def __iter__(self) -> Iterator[JobId]:
        for part in self.parts:
            yield from part

    def __len__(self) -> int:
        return self.count

    def __eq__(self, other: object) -> bool:
        return Mapping.__eq__(self, other)  # the line may have another shape, and be the same

    def __hash__(self) -> int:
        return hash(self.count)

    def with_(self, guest: Guest) -> "Guests":
        """With this guest, in place of the one of the same job.

        Of the same revision it has the same priority and the same age.
        """
        before = self.get(guest.job)
        after = self._put(guest.job, before, guest)
        if not guest.begun and (before is None or before.begun or before.revision != guest.revision):
            line = after.line.joined(guest.job, guest.revision, priority=guest.priority, since=guest.since)
            after = replace(after, line=line)
        return after

    def without(self, job: JobId) -> "Guests":
        """Without the guest of this job."""
        return self._put(job, self.get(job), None)

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return self.count - self.begun

    def first(self, order: Order) -> "tuple[Guest | None, Guests]":
        """Who waits for a place and comes first in this order; and the same guests, with a shorter line."""
        entry, line = self.line.swept(self.waiting, self._in_line).first(order, self._waits)
        after = self if line is self.line else replace(self, line=line)
        return (None if entry is None else self[entry.job]), after

    def changed(self, before: "Guests") -> Iterator[tuple[JobId, Guest | None]]:
        """What differs from *before*: by job the guest, None where it left."""
        for was, now in zip(before.parts, self.parts, strict=True):
            if was is not now:
                for job in {**was, **now}:
                    if was.get(job) is not now.get(job):
                        yield job, now.get(job)

    def _waits(self, entry: Entry) -> bool:
        guest = self.get(entry.job)
        return guest is not None and not guest.begun and guest.revision == entry.revision

    def _in_line(self) -> Iterator[tuple[JobId, int, int, int]]:
        for guest in self.values():
            if not guest.begun:
                yield guest.job, guest.revision, guest.priority, guest.since

    def _put(self, job: JobId, before: Guest | None, after: Guest | None) -> "Guests":
        at = _part_of(job)
        part = dict(self.parts[at])
        asking = self.asking
        if after is None:
            part.pop(job, None)
        else:
            part[job] = after
        if (before is not None and before.asks) or (after is not None and after.asks):
            asking = {name: guest for name, guest in asking.items() if name != job}
            if after is not None and after.asks:
                asking[job] = after
        return replace(
            self,
            parts=(*self.parts[:at], part or _NOBODY, *self.parts[at + 1 :]),
            count=self.count + (after is not None) - (before is not None),
            begun=self.begun + _begun(after) - _begun(before),
            places=self.places + _place(after) - _place(before),
            holding=self.holding + _holds(after) - _holds(before),
            leased=more(more(self.leased, _lease(after)), negative(_lease(before))),
            asking=asking,
        )


def _part_of(job: JobId) -> int:
    return crc32(job.encode()) % PARTS


def _begun(guest: Guest | None) -> int:
    return guest is not None and guest.begun


def _place(guest: Guest | None) -> int:
    return guest is not None and guest.begun and not guest.inside


def _holds(guest: Guest | None) -> int:
    return guest is not None and guest.lease is not None


def _lease(guest: Guest | None) -> Purse:
    if guest is None or guest.lease is None:
        return NONE
    calls, tokens, usd = of(guest.lease)
    return calls or 0, tokens or 0, usd or 0
