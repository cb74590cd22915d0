"""Who uses the system of a life: sends goals, reads answers all along, and may be a stranger."""

import asyncio
from contextlib import suppress

import orjson

from streams.chaos.scenarios import Job, Poison
from streams.log import Fenced, LogUnavailable, Record
from streams.memory_log import MemoryLog
from streams.topics import ANSWERS, GOALS
from streams.wire.outside import write_word

AGAIN_S = 1.0


def goal_value(job: Job) -> bytes:
    """The value of a goal's record."""
    goal = dict(job.goal)
    if job.padding:
        goal["input"] = {"given": goal.get("input"), "padding": "x" * job.padding}
    return orjson.dumps(goal)


class Outside:
    """One connection that belongs to no worker.

    Args:
        lanes: Partitions of the system.

    Attributes:
        seen: The answers in the order in which they were read.
        answered: The jobs that have one.
    """

    def __init__(self, log: MemoryLog, lanes: int) -> None:
        self._log, self._lanes = log, lanes
        self.seen: list[Record] = []
        self.answered: set[str] = set()

    async def send_job(self, job: Job) -> None:
        """Send a goal."""
        await self._send(GOALS, goal_value(job), b"", job.partition)

    async def send_word(self, verb: str, job: Job) -> None:
        """Say something of a job, on another partition than its goal's: nothing orders the two."""
        await self._send(GOALS, write_word(verb, job.name, by="ada"), b"", job.partition + 1)

    async def approve(self, job: Job) -> None:
        """Let go on what waits of it, until it is answered."""
        while job.name not in self.answered:
            await asyncio.sleep(job.approved_s)
            await self.send_word("approve", job)

    async def send_poison(self, poison: Poison) -> None:
        """Send what nobody can read."""
        value: bytes | None = None
        if poison.value is not None:
            value = bytes.fromhex(poison.value) if poison.binary else poison.value.encode()
        await self._send(poison.topic, value, (poison.key or "").encode(), poison.partition)

    async def _send(self, topic: str, value: bytes | None, key: bytes, partition: int) -> None:
        """Again and again until the log says that it has it, as any producer does."""
        number = partition % self._lanes
        while True:
            try:
                await (await self._log.producer.send(topic, value, key=key, partition=number))
            except LogUnavailable:
                await asyncio.sleep(AGAIN_S)
            else:
                return

    async def watch(self) -> None:
        """Read answers until cancelled."""
        while True:
            try:
                async with self._log.follow(ANSWERS, range(self._lanes), since=0) as batches:
                    async for records in batches:
                        self.seen.extend(records)
                        self.answered.update((record.key or b"").decode() for record in records)
            except LogUnavailable:  # before the first one
                self.seen.clear()

    async def take_over(self, partition: int, *, seconds: float, patience_s: float) -> None:
        """Be a stranger that takes an orchestrator's identity, and aborts what it began."""
        number = partition % self._lanes
        within, identity = (
            asyncio.timeout(seconds + patience_s),
            self._log.transactions(f"orchestrator-{number}"),
        )
        with suppress(_Aborted, Fenced, LogUnavailable, TimeoutError):
            async with within, identity as stranger, stranger.transaction():
                await stranger.send(ANSWERS, b"{}", key=b"default/nobody", partition=number)
                await asyncio.sleep(seconds)
                raise _Aborted


class _Aborted(Exception):
    """The stranger's transaction does not commit."""
