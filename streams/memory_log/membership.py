"""A process's place in a consumer group, kept until it is cancelled."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from streams.log import LogUnavailable
from streams.memory_log.group import Group, Member
from streams.memory_log.reach import Reach


class Work(Protocol):
    """What a member does with its partitions."""

    def joined(self, group: Group, member: Member) -> None:
        """*member* stands for us in *group* from now on."""

    def take(self, generation: int, partitions: Sequence[int]) -> None:
        """Begin with these partitions."""

    async def let_go(self) -> None:
        """Give up every partition, since a rebalance begins."""

    def heard(self, at: float) -> None:
        """A heartbeat that went out at *at* was answered."""

    async def end(self) -> None:
        """Give up everything for good."""


class Membership:
    """Joins, works, and joins again after the group went on without this process."""

    def __init__(
        self, reach: Reach, group: Group, name: str, work: Work, *, static: bool, beats: bool
    ) -> None:
        self._reach = reach
        self._group = group
        self._name = name
        self._work = work
        self._static = static
        self._beats = beats
        self._member: Member | None = None
        self._joins = 0
        self._expiry: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Be a member until cancelled."""
        self._task = asyncio.current_task()
        beating = asyncio.create_task(self._beat()) if self._beats else None
        try:
            while True:
                member = await self._join()
                await member.removed.wait()
                await self._work.let_go()
        finally:
            if beating is not None:
                beating.cancel()
            if not self._reach.process.dead:
                try:
                    await self._work.end()
                    if self._member is not None and not self._static:
                        member = self._member
                        self._reach.call("group", f"leave of {member.id}", lambda: self._group.leave(member))
                finally:
                    self.silent()  # also a goodbye may get lost, or never be said

    async def _beat(self) -> None:
        """Ask now and then whether the group still counts us in."""
        time = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(self._reach.cluster.limits.heartbeat_s)
            began = time()
            with suppress(LogUnavailable):
                if await self._reach.call("heartbeat", "heartbeat", self._counts):
                    self._work.heard(began)

    def _counts(self) -> bool:
        return self._member is not None and self._group.has(self._member)

    async def end(self) -> None:
        """Leave, and be done when that is done."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
            await asyncio.sleep(0)  # the goodbye goes out

    def silent(self) -> None:
        """No more heartbeats: the group goes on without us after the session timeout."""
        if self._expiry is None and self._member is not None:
            limits = self._reach.cluster.limits
            since_last = self._reach.cluster.chance.uniform(0, limits.heartbeat_s)
            self._expire_in(limits.session_timeout_s - since_last)

    def heard(self) -> None:
        """Heartbeats again."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    def _expire_in(self, seconds: float) -> None:
        self._expiry = asyncio.get_running_loop().call_later(seconds, self._expire)

    def _expire(self) -> None:
        back = self._reach.away_until()
        if back is not None:  # sessions begin anew when the broker is back
            now = asyncio.get_running_loop().time()
            self._expire_in(back - now + self._reach.cluster.limits.session_timeout_s)
        elif self._member is not None:
            self._group.leave(self._member)

    async def _join(self) -> Member:
        self._joins += 1
        member = Member(
            id=self._name if self._static else f"{self._name}-{self._joins}",
            static=self._static,
            let_go=self._let_go,
            take=self._work.take,
        )
        self._work.joined(self._group, member)
        self._member = member  # from here on: the request may land though its answer never comes
        while True:
            try:
                await self._reach.call("group", f"join of {member.id}", lambda: self._group.join(member))
            except LogUnavailable:
                continue
            return member

    async def _let_go(self) -> None:
        await self._reach.there()
        await self._work.let_go()
