"""The broker's side of consumer groups: members, generations, committed offsets."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True, kw_only=True)
class Member:
    """One process in a group.

    Attributes:
        id: A new one at each join, or for a static member always the same.
        let_go: Gives up every partition; done when nothing of it runs any more.
        take: Begins with the partitions of a new generation.
        removed: Told once the group has gone on without this member.
    """

    id: str
    static: bool
    let_go: Callable[[], Awaitable[None]]
    take: Callable[[int, Sequence[int]], None]
    removed: asyncio.Event = field(default_factory=asyncio.Event)


class Group:
    """Shares a topic's partitions among members, everyone letting go before anyone is given.

    Attributes:
        generation: Counts the rebalances; what an older one commits has no effect.
        committed: Next offset by partition.
        commits: All that was committed: loop time, partition, next offset.
    """

    def __init__(self, partitions: int, *, sticky: bool, rebalance_timeout_s: float) -> None:
        self._partitions = partitions
        self._sticky = sticky
        self._rebalance_timeout_s = rebalance_timeout_s
        self._members: dict[str, Member] = {}
        self._owners: dict[int, str] = {}
        self._rebalancing: asyncio.Task[None] | None = None
        self._again = False
        self.generation = 0
        self.committed: dict[int, int] = {}
        self.commits: list[tuple[float, int, int]] = []

    def owned(self, member: Member) -> tuple[int, ...]:
        """The partitions given to *member*."""
        return tuple(p for p, owner in sorted(self._owners.items()) if owner == member.id)

    def join(self, member: Member) -> None:
        """Take *member* in. A static one that comes back in time gets its partitions at once."""
        older = self._members.get(member.id)
        self._members[member.id] = member
        if older is None:
            self.rebalance()
            return
        older.removed.set()
        if self._rebalancing is None:
            asyncio.get_running_loop().call_soon(member.take, self.generation, self.owned(member))

    def leave(self, member: Member) -> None:
        """Go on without *member*: it said goodbye, or was silent for too long."""
        if self.has(member):
            del self._members[member.id]
            member.removed.set()
            self.rebalance()

    def has(self, member: Member) -> bool:
        """Whether *member* still counts."""
        return self._members.get(member.id) is member

    def commit(self, member: Member, generation: int, offsets: Mapping[int, int]) -> bool:
        """Keep the next offsets; without effect (False) when the generation is over."""
        if generation != self.generation or not self.has(member):
            return False
        self.committed.update(offsets)
        now = asyncio.get_running_loop().time()
        self.commits.extend((now, partition, offset) for partition, offset in offsets.items())
        return True

    def rebalance(self) -> None:
        """Begin a new generation, now or after the one that is being made."""
        self._again = True
        if self._rebalancing is None:
            # In a context of its own: the broker's work is part of no simulated process.
            self._rebalancing = asyncio.get_running_loop().create_task(self._rebalance(), context=Context())

    async def _rebalance(self) -> None:
        while self._again:
            self._again = False
            waits = [
                asyncio.create_task(_let_go(member), name=f"let go {member.id}")
                for member in self._members.values()
            ]
            members = dict(zip(waits, list(self._members.values()), strict=True))
            if waits:
                _, late = await asyncio.wait(waits, timeout=self._rebalance_timeout_s)
                for wait in [w for w in waits if w in late]:
                    wait.cancel()
                    self.leave(members[wait])
            if self._again:
                continue
            self.generation += 1
            self._owners = self._share()
            for member in list(self._members.values()):
                member.take(self.generation, self.owned(member))
        self._rebalancing = None

    def _share(self) -> dict[int, str]:
        names = sorted(self._members)
        if not names:
            return {}
        if not self._sticky:
            return {p: names[p % len(names)] for p in range(self._partitions)}
        most = -(-self._partitions // len(names))
        counts = dict.fromkeys(names, 0)
        owners: dict[int, str] = {}
        for partition, owner in sorted(self._owners.items()):
            full = sum(count == most for count in counts.values())
            spare = self._partitions - (most - 1) * len(names)  # so many members may hold the most
            if owner in counts and counts[owner] < (most if full < spare else most - 1):
                owners[partition] = owner
                counts[owner] += 1
        for partition in range(self._partitions):
            if partition not in owners:
                name = min(names, key=lambda each: counts[each])
                owners[partition] = name
                counts[name] += 1
        return owners


async def _let_go(member: Member) -> None:
    """Done when *member* has let go, or counts no more."""
    gone = asyncio.create_task(member.removed.wait())
    done = asyncio.ensure_future(member.let_go())
    try:
        await asyncio.wait([gone, done], return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        if member.removed.is_set():
            done.cancel()
