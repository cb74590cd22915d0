"""Waiting for the answers of many jobs with one reader of ``answers``."""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from streams.claims import Resolver, ValueLost
from streams.core.commands import Answer
from streams.core.values import JobId
from streams.following import readable
from streams.log import Log, LogUnavailable, Record, RecordRefused
from streams.topics import ANSWERS, partition_of
from streams.wire.answers import read_answer


class NotAnswered(TimeoutError):
    """There was no answer in time. The job goes on: wait again, with the same id.

    Attributes:
        job: The job, ``tenant/id``.
    """

    def __init__(self, job: JobId, within_s: float) -> None:
        super().__init__(
            f"no answer to {job} within {within_s:g} s; it goes on where a worker runs (`anabranch worker`): "
            f"`anabranch watch {job}` shows how far it is, `swarm.wait({job!r})` waits on"
        )
        self.job = job


class AnswerReader:
    """Hands each answer to whoever expects it. To be made inside the running loop.

    Args:
        lanes: Partitions of the system.
    """

    def __init__(self, log: Log, resolver: Resolver, *, lanes: int) -> None:
        self._log, self._resolver, self._lanes = log, resolver, lanes
        self._expected: dict[JobId, dict[asyncio.Future[Answer], int]] = {}
        self._following: asyncio.Task[None] | None = None
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sought: dict[int, set[JobId]] = defaultdict(set)
        self._scans: dict[int, asyncio.Task[None]] = {}
        self._deliveries: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        """Every answer published after this is seen.

        Raises:
            LogUnavailable: the log cannot be read.
        """
        if self._following is None or self._following.done():
            self._begun = asyncio.get_running_loop().create_future()
            self._following = asyncio.create_task(self._follow(self._begun))
        await asyncio.shield(self._begun)

    @contextmanager
    def expecting(self, job: JobId, revision: int = 1) -> Iterator[asyncio.Future[Answer]]:
        """The job's answer of this revision or a newer, once it comes; nobody waits after this is left.

        The future raises LogUnavailable where the log could not be read, ValueLost where the
        answer's text is past its retention. A record that is no answer is passed over.
        """
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._expected.setdefault(job, {})[answer] = revision
        try:
            yield answer
        finally:
            waiting = self._expected[job]
            del waiting[answer]
            if not waiting:
                del self._expected[job]
            if not answer.cancel() and not answer.cancelled():
                answer.exception()  # seen, though whoever waited may have left

    def look_back(self, job: JobId) -> None:
        """Look for an answer that is there already.

        One pass over a partition looks for all jobs of it that were asked for before it began.
        """
        partition = partition_of(job, self._lanes)
        self._sought[partition].add(job)
        if partition not in self._scans:
            self._scans[partition] = asyncio.create_task(self._scan(partition))

    async def close(self) -> None:
        """Stop reading; whoever still waits is cancelled."""
        tasks = [*self._scans.values(), *self._deliveries]
        if self._following is not None:
            tasks.append(self._following)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for waiting in self._expected.values():
            for answer in waiting:
                answer.cancel()

    async def _follow(self, begun: "asyncio.Future[None]") -> None:
        try:
            async with self._log.follow(ANSWERS, range(self._lanes)) as coming:
                begun.set_result(None)
                async for records in coming:
                    for record in records:
                        self._take(record)
        except (LogUnavailable, RecordRefused) as error:
            if not begun.done():
                begun.set_exception(error)
            self._fail(list(self._expected), error)
        finally:
            begun.cancel()

    async def _scan(self, partition: int) -> None:
        try:
            while sought := self._sought.pop(partition, None):
                keys = {job.encode() for job in sought}
                found: dict[bytes, Record] = {}
                try:
                    async for records in self._log.read(ANSWERS, partition):
                        for each in records:
                            if each.key in keys and readable(read_answer, each) is not None:
                                found[each.key] = each
                except LogUnavailable as error:
                    self._fail(sought, error)
                for record in found.values():  # the newest revision of each
                    self._take(record)
        finally:
            del self._scans[partition]

    def _take(self, record: Record) -> None:
        job = (record.key or b"").decode(errors="replace")
        if job in self._expected:
            self._start(self._deliver(job, record))

    def _start(self, delivery: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(delivery)
        self._deliveries.add(task)
        task.add_done_callback(self._deliveries.discard)

    async def _deliver(self, job: JobId, record: Record) -> None:
        if (answer := readable(read_answer, record)) is None:
            return  # somebody else's: the answer is still to come
        try:
            answer = await self._resolver.resolve_answer(answer)
        except (ValueLost, LogUnavailable) as error:
            self._fail([job], error)
            return
        for waiting, revision in self._expected.get(job, {}).items():
            if not waiting.done() and answer.revision >= revision:
                waiting.set_result(answer)

    def _fail(self, jobs: "list[JobId] | set[JobId]", error: Exception) -> None:
        for job in jobs:
            for waiting in self._expected.get(job, ()):
                if not waiting.done():
                    waiting.set_exception(error)
