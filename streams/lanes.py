"""Lanes: run the commands of a partition, a few at a time, none lost.

A lane pulls everything on its partition. What it pulled waits for a slot, in turns among jobs;
it is acknowledged once its event is on the log, and in delivery order. What is delivered again
while it still runs here, or has just finished, is joined and not run twice.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import partial
from random import random

import structlog

from agents.ports import Crew
from streams import dead_letters
from streams.attempt import RunningAttempt
from streams.claims import Resolver
from streams.core.commands import Command
from streams.delivery import Sender
from streams.journal import Journal
from streams.log import Delivery, Log, Record, RecordRefused
from streams.outcome import Outcomes, unreadable
from streams.settings import Settings
from streams.slots import Slots
from streams.topics import DEAD_LETTERS
from streams.transcript import attempt_key
from streams.wire.commands import read_command
from streams.wire.envelope import Unreadable, Unwritable

REMEMBER_S = 15.0
"""Seconds that a finished attempt is remembered, for deliveries that come again in a rebalance."""


class LaneStalled(Exception):
    """A lane has work and makes no progress; the worker must be started again."""


class Lanes:
    """The lanes of one process.

    Args:
        sender: The process's one sender.
        run: The process's own name for its life, new at every start.
        chance: Numbers between 0 and 1, for the jitter of backoffs.
    """

    def __init__(
        self,
        log: Log,
        sender: Sender,
        settings: Settings,
        crew: Crew,
        *,
        run: str,
        chance: Callable[[], float] = random,
    ) -> None:
        self._settings, self._crew, self._run, self._chance = settings, crew, run, chance
        self._sender = sender
        self._resolver = Resolver(log)
        self._outcomes = Outcomes(
            sender, lanes=settings.lanes, run=run, chance=chance, secret=settings.api_key
        )
        self._owned: set[Lane] = set()
        self._attempts: dict[bytes, asyncio.Task[None]] = {}
        self._begun: set[asyncio.Task[None]] = set()
        self._draining = False
        self.slots = Slots(self._capacity)
        self._time = asyncio.get_running_loop().time
        self._moved = self._time()
        self._broken: BaseException | None = None
        self._log = structlog.get_logger().bind(part="lanes")

    def _capacity(self) -> int:
        share = self._settings.concurrency * len(self._owned) / self._settings.lanes
        return max(1, round(share)) if self._owned else 0

    async def lane(self, partition: int, deliveries: AsyncIterator[Delivery]) -> None:
        """Run the commands of one partition until it is lost."""
        lane = Lane(partition)
        self._owned.add(lane)
        self.slots.pump()
        self._log.info("lane_owned", lane=partition, capacity=self._capacity())
        try:
            async for delivery in deliveries:
                if not self._draining:
                    lane.add(delivery, self._attempt_for(delivery.record))
        finally:
            self._owned.discard(lane)
            self._let_go(lane)
            self._log.info("lane_lost", lane=partition)

    def _let_go(self, lane: "Lane") -> None:
        """Cancel what has not begun; it is delivered again, here or elsewhere."""
        for task in lane.held - self._begun:
            task.cancel()

    def _attempt_for(self, record: Record) -> "asyncio.Task[None]":
        """The task that runs this command: one that runs or has just finished here, or a new one."""
        try:
            command = read_command(record)
        except Unreadable as error:
            # Known by its place: whoever wrote it may give many records the same key, or none.
            key, work = b"%d-%d" % (record.partition, record.offset), partial(self._bury, record, str(error))
        else:
            key = attempt_key(command.job, command.task, command.attempt)
            work = partial(self._perform, command, record.partition, key)
        task = self._attempts.get(key)
        if task is None or task.cancelled() or task.cancelling():
            task = asyncio.create_task(work(), name=key.decode())
            self._attempts[key] = task
            task.add_done_callback(lambda done: self._forget_later(key, done))
        return task

    def _forget_later(self, key: bytes, task: "asyncio.Task[None]") -> None:
        later = asyncio.get_running_loop().call_later

        def forget() -> None:
            if any(task in lane.held for lane in self._owned):
                later(REMEMBER_S, forget)  # behind a slow one: a rebalance delivers it again
            elif self._attempts.get(key) is task:
                del self._attempts[key]

        self._moved = self._time()
        if task.cancelled():
            if task in self._begun and not self._draining:
                self._broken = asyncio.CancelledError(f"{key.decode()} was cancelled by none of us")
            forget()
        elif (error := task.exception()) is not None:
            self._broken = error
            forget()
        else:
            later(REMEMBER_S, forget)

    async def _perform(self, command: Command, partition: int, key: bytes) -> None:
        """Run one command to its event on the log."""
        journal = Journal(self._sender, command, partition=partition, run=self._run)
        attempt = RunningAttempt(command, journal, self.slots, chance=self._chance)
        await attempt.take()
        self._has_begun()
        attempt.begin()
        began = self._time()
        telling = self._outcomes.tell_start_later(command)
        try:
            outcome = await self._outcomes.run(command, attempt, self._crew, self._resolver)
        finally:
            telling.cancel()
            attempt.give_back()
            self._moved = self._time()  # telling its end is work of its own
        ran_s = self._time() - began
        await self._outcomes.tell(command, outcome, ran_s=ran_s, key=key, partition=partition)
        try:
            # Nothing is acknowledged whose journal is not written: a crash would make its calls again.
            await attempt.end()
        except (RecordRefused, Unwritable) as error:
            self._log.error("journal_refused", lane=partition, attempt=key.decode(), reason=str(error))

    def _has_begun(self) -> None:
        """From here to its end the attempt outlives its lane: what it is paid for is told to its job."""
        self._moved = self._time()
        task = asyncio.current_task()
        assert task is not None
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)

    async def _bury(self, record: Record, reason: str) -> None:
        """A command that cannot be read: a dead letter, and word to its job where the key names it."""
        self._log.warning("command_unreadable", lane=record.partition, offset=record.offset, reason=reason)
        for write in (dead_letters.write, dead_letters.write_without_value):
            key, value, headers = write(record, reason)
            try:
                await self._sender.deliver(
                    DEAD_LETTERS, value, key=key, partition=record.partition, headers=headers
                )
                break
            except RecordRefused as error:
                self._log.warning("dead_letter_refused", lane=record.partition, reason=str(error))
        if event := unreadable(record.key, reason):
            await self._outcomes.send(event)

    async def watch(self) -> None:
        """Until cancelled, look for lanes that have work and make no progress.

        Raises:
            LaneStalled: no attempt began or ended for ``stall_s`` though slots are free, an
                attempt goes on that long after its time is over, or one ended without an event.
        """
        stall = self._settings.stall_s
        while True:
            await asyncio.sleep(min(1.0, stall / 4))
            if self._broken is not None:
                raise LaneStalled("an attempt ended without an event") from self._broken
            if not self.slots.waiting or self.slots.taken >= self._capacity():
                busy = self._outcomes.longest_overdue()
                if busy is not None and busy[1] > stall:
                    raise LaneStalled(f"attempt {busy[0]} goes on {busy[1]:.0f} s after its time was over")
                if self.slots.taken or busy is not None:
                    continue  # one that waits within its time has no slot
                if self._sender.away or not any(lane.delivered for lane in self._owned):
                    self._moved = self._time()
                    continue
            if self._time() - self._moved > stall:
                where = ", ".join(lane.where() for lane in self._owned if lane.delivered)
                raise LaneStalled(f"no progress for {stall:g} s with work delivered: {where}")

    async def drain(self) -> None:
        """Begin nothing more; give what runs ``drain_s`` seconds to end and be acknowledged."""
        self._draining = True
        for lane in self._owned:
            self._let_go(lane)
        running = list(self._begun)
        if running:
            _, late = await asyncio.wait(running, timeout=self._settings.drain_s)
            for task in late:
                task.cancel()
            self._log.info("lanes_drained", finished=len(running) - len(late), given_up=len(late))


class Lane:
    """One partition while this process owns it.

    Attributes:
        delivered: What was delivered in this generation of the group and is not acknowledged yet.
        held: The tasks of all that was delivered and is not acknowledged, in whichever generation.
    """

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.delivered: deque[tuple[Delivery, asyncio.Task[None]]] = deque()
        self.held: set[asyncio.Task[None]] = set()

    def add(self, delivery: Delivery, task: "asyncio.Task[None]") -> None:
        """A command was delivered; *task* runs it."""
        if self.delivered and delivery.record.offset <= self.delivered[-1][0].record.offset:
            # A rebalance: all that is not committed comes again, in order. The acknowledgements of
            # what came before have no effect any more, and must not be waited for.
            self.delivered.clear()
        self.delivered.append((delivery, task))
        self.held.add(task)
        task.add_done_callback(self._acknowledge)

    def _acknowledge(self, _: object) -> None:
        while self.delivered and (task := self.delivered[0][1]).done():
            if task.cancelled() or task.exception() is not None:
                return  # not done: it, and all behind it, is delivered again
            self.held.discard(task)
            self.delivered.popleft()[0].ack()

    def where(self) -> str:
        """The oldest command that is not acknowledged, for a person."""
        record = self.delivered[0][0].record
        return f"subtasks[{record.partition}]@{record.offset} {(record.key or b'').decode(errors='replace')}"
