"""Lanes: run the commands of a partition, a few at a time, none lost and none paid for twice.

A lane pulls everything on its partition. What it pulled waits for a slot, in turns among jobs;
it is acknowledged once its event is on the log, and in delivery order. What is delivered again
while it still runs here, or has just finished, is joined and not run twice; what was begun
elsewhere goes on from its journal.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from functools import partial
from random import random
from typing import Any

import structlog

from agents.ports import Crew, GaveUp
from streams import dead_letters
from streams.attempt import EndedElsewhere, LaneMoved, RunningAttempt
from streams.attempts import Attempts, Begun
from streams.caps import Caps
from streams.claims import Resolver, ValueLost
from streams.core.commands import Command, StopAttempt
from streams.core.values import JobId
from streams.delivery import Sender
from streams.entry import Entry, NotAdmitted
from streams.journal import Journal
from streams.lane import Lane
from streams.log import Delivery, Log, LogUnavailable, Record, RecordRefused
from streams.outcome import Ended, Outcomes, stopped, unreadable
from streams.past import NO_PAST, Past
from streams.redaction import redactor
from streams.settings import Settings
from streams.standing import Standing
from streams.stops import AttemptStopped
from streams.suspension import AttemptSuspended, resume_of, run_key, with_journal
from streams.takeover import TakeOver
from streams.topics import GOALS, SUBTASKS, partition_of
from streams.transcript import attempt_key
from streams.wire.commands import read_command
from streams.wire.envelope import Unreadable, Unwritable

JOURNALED_S = 1.0
"""Seconds that replies of the last moment of a drain get to reach the journal."""

FLUSH_S = 10.0
"""Seconds that a rebalance waits for the journal at most; the group waits for 30."""

AGAIN_S = 1.0


class LaneStalled(Exception):
    """A lane has work and makes no progress; the worker must be started again."""


class Lanes:
    """The lanes of one process; also a :class:`streams.log.Member` of their group.

    Args:
        sender: The process's one sender.
        run: The process's own name for its life, new at every start.
        chance: Numbers between 0 and 1, for the jitter of backoffs.
        monotonic: Seconds on the clock of :meth:`heard`; None: the event loop's.
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
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        self._kafka, self._sender = log, sender
        self._settings, self._crew, self._run, self._chance = settings, crew, run, chance
        self._resolver = Resolver(log)
        self._entry = Entry(settings.configuration.entry)
        self._outcomes = Outcomes(
            sender, lanes=settings.lanes, run=run, chance=chance, hide=redactor(settings.secrets).text
        )
        self._lanes: dict[Lane, None] = {}
        self._attempts = Attempts(lambda task: any(task in lane.held for lane in self._lanes))
        self._ends: dict[int, asyncio.Task[Mapping[int, int]]] = {}
        self._time = asyncio.get_running_loop().time
        self._standing = Standing(settings.session_timeout_s, monotonic or self._time, self._pump)
        self.caps = Caps(settings, self._standing, self._elsewhere, self._elsewhere_of)
        self._log = structlog.get_logger().bind(part="lanes")

    def _elsewhere(self, partition: int) -> int:
        return sum(lane.takeover.elsewhere for lane in self._lanes if lane.partition == partition)

    def _elsewhere_of(self, partition: int, tenant: str) -> int:
        return sum(lane.takeover.elsewhere_of(tenant) for lane in self._lanes if lane.partition == partition)

    def _pump(self) -> None:
        self.caps.pump()

    async def let_go(self) -> None:
        """Begin no call, and journal what is under way: whoever gets a lane goes on from there."""
        sure = self._standing.sure
        self._standing.hold()
        self._attempts.unsettled()
        attempts = [run.attempt for run in self._attempts.begun.values()]
        await self._journal([each.hand_over() if sure else each.recorded() for each in attempts], FLUSH_S)

    async def _journal(self, writing: Sequence[Coroutine[Any, Any, None]], within_s: float) -> None:
        """Wait for what is on its way to the journal, an attempt each; one that fails tells so itself."""
        try:
            async with asyncio.timeout(within_s):
                await asyncio.gather(*writing, return_exceptions=True)
        except TimeoutError:
            self._log.warning("journal_late", attempts=len(writing), waited_s=within_s)

    def take(self, partitions: Sequence[int], generation: int) -> None:
        """These lanes are ours, and no others; those that are new to us are read up on."""
        lost, new = self._standing.take(partitions, generation)
        self._attempts.unsettled()
        if new:
            ends = asyncio.create_task(self._where_they_end(sorted(new)))
            self._ends.update(dict.fromkeys(new, ends))
        for lane in self._lanes:
            if lane.partition in lost:
                self._attempts.cancel(lane.held)
                lane.lost()
        for run in self._attempts.begun.values():
            if run.lane in lost:
                run.attempt.move()
            else:
                run.attempt.keep()
        self._crew.share(len(partitions) / self._settings.lanes)
        self.caps.pump()
        self._log.info("lanes_owned", lanes=sorted(partitions), capacity=self.caps.capacity)

    def heard(self, at: float) -> None:
        """The group took us for a member at *at*."""
        self._standing.heard(at)

    async def _where_they_end(self, partitions: Sequence[int]) -> Mapping[int, int]:
        while True:
            try:
                return await self._kafka.ends(SUBTASKS, partitions)
            except LogUnavailable as error:
                self._log.warning("lanes_wait_for_log", lanes=list(partitions), reason=str(error))
                await asyncio.sleep(AGAIN_S)

    async def lane(self, partition: int, deliveries: AsyncIterator[Delivery]) -> None:
        """Run the commands of one partition until it is lost."""
        lane: Lane | None = None
        try:
            async for delivery in deliveries:
                ends = self._ends[partition]
                if lane is None or lane.takeover.ends is not ends:
                    # For the first time, or after the group went on without us for a while.
                    if lane is not None:
                        self._leave(lane)
                    lane = self._begin(partition, ends, delivery.record)
                task = self._task_for(lane, delivery.record)
                if task is not None:
                    lane.add(delivery, task)
        finally:
            if lane is not None:
                self._leave(lane)

    def _begin(self, partition: int, ends: "asyncio.Task[Mapping[int, int]]", first: Record) -> Lane:
        takeover = TakeOver(self._kafka, partition, ends=ends, first=first, lanes=self._settings.lanes)
        takeover.reading.add_done_callback(self._read_up)
        lane = Lane(partition, takeover)
        self._lanes[lane] = None
        return lane

    def _leave(self, lane: Lane) -> None:
        self._lanes.pop(lane, None)
        self._attempts.cancel(lane.held)
        lane.takeover.reading.cancel()

    def _read_up(self, reading: "asyncio.Task[None]") -> None:
        if not reading.cancelled() and (error := reading.exception()) is not None:
            self._attempts.broken = error

    def _task_for(self, lane: Lane, record: Record) -> "asyncio.Task[bool] | None":
        """The task that runs this command: one that runs or has just finished here, or a new one.

        None in a drain, where nothing begins; stops are heard even then.
        """
        work: Callable[[], Coroutine[Any, Any, bool]]
        try:
            command = read_command(record)
        except Unreadable as error:
            # Known by its place: whoever wrote it may give many records the same key, or none.
            key, work = b"%d-%d" % (record.partition, record.offset), partial(self._bury, record, str(error))
        else:
            key = attempt_key(command.job, command.task, command.attempt)
            if isinstance(command, StopAttempt):
                self._stop(command, key)
                key, work = b"stop-%d-%d" % (record.partition, record.offset), _heard
            else:
                work = partial(self._perform, command, record, key, lane.takeover)
                key = run_key(command, key)
        return None if self._attempts.draining else self._attempts.task(key, work)

    async def _perform(self, command: Command, record: Record, key: bytes, takeover: TakeOver) -> bool:
        """Run one command to its event on the log; False where it goes on elsewhere."""
        try:
            past = await takeover.past(record, key)
            if past is None or await self._attempts.ended_here(run_key(command, key)):
                return True
            resume = resume_of(command)
            number = 0 if resume is None else resume.number
            if (event := past.over(number)) is not None:
                await self._outcomes.send(event)  # whoever journaled it may have died before telling it
                return True
            if why := takeover.stopped(record) or self._attempts.stops.why():
                await self._outcomes.tell_stopped(command, why, past.usage)
                return True
            if resume is not None:
                past = Past() if past is NO_PAST else past
                try:
                    await with_journal(self._kafka, past, resume, record.partition)
                except ValueLost as error:
                    await self._outcomes.tell_lost(command, str(error), past.usage)
                    return True
            slots = self.caps.slots(record.partition)
            slots.pump()
            journal = Journal(self._sender, command, partition=record.partition, run=self._run)
            attempt = RunningAttempt(
                command,
                journal,
                slots,
                self._standing,
                past=past,
                resolver=self._resolver,
                chance=self._chance,
                tell=self._outcomes.send,
                submit=self._submit,
                redactor=redactor(self._settings.secrets),
            )
            try:
                with self._attempts.stops.cut_short():
                    await attempt.take()
                return await self._run_attempt(command, attempt, key, record)
            except AttemptStopped as stop:
                await self._outcomes.tell_stopped(command, str(stop), past.usage)
                return True
            except EndedElsewhere:
                event = past.over(number)
                assert event is not None
                await self._outcomes.send(event)
                return True
        finally:
            takeover.over(key)

    async def _run_attempt(
        self, command: Command, attempt: RunningAttempt, key: bytes, record: Record
    ) -> bool:
        """From here on the attempt outlives its lane: what is paid for is journaled, or told to its job."""
        self._attempts.begin(Begun(key=run_key(command, key), lane=record.partition, attempt=attempt))
        attempt.begin()
        began = self._time()
        outcome: Ended | AttemptSuspended
        telling = self._outcomes.tell_start_later(command)
        try:
            with self._attempts.stops.cut_short():
                outcome = await self._outcomes.run(command, attempt, self._crew, self._resolver)
        except AttemptStopped as stop:
            outcome = stopped(str(stop), attempt.usage, cut_off=attempt.cut_off)
        except AttemptSuspended as wait:
            outcome = wait
        except LaneMoved:
            self._log.info("attempt_handed_over", job=command.job, task=command.task, attempt=command.attempt)
            return False
        finally:
            telling.cancel()
            attempt.give_back()
            self._attempts.step()  # telling its end is work of its own
        ran_s = self._time() - began
        if isinstance(outcome, AttemptSuspended):
            try:
                event = await attempt.suspend(outcome, ran_ms=round(ran_s * 1000))
            except (RecordRefused, Unwritable) as error:
                reason = f"what it waits for does not fit on the journal: {error}"
                outcome = GaveUp(kind="too_large", reason=reason, final=True, usage=attempt.usage)
            else:
                await self._outcomes.send(event)
                return True
        await self._outcomes.tell(command, attempt, outcome, ran_s=ran_s, key=key, partition=record.partition)
        try:
            # Nothing is acknowledged whose journal is not written: a crash would make its calls again.
            await attempt.end()
        except (RecordRefused, Unwritable) as error:
            reason = f"the journal of {key.decode()} could not be written whole: {error}"
            self._log.error("journal_refused", lane=record.partition, attempt=key.decode(), reason=reason)
            await dead_letters.bury(self._sender, record, reason)
        return True

    async def _submit(self, job: JobId, value: bytes) -> None:
        """Put a goal of a sub-agent on its topic, and wait until it is there.

        Raises:
            RecordRefused: it would not be let in, or the log does not take it.
        """
        key, partition, headers = (
            job.encode(),
            partition_of(job, self._settings.lanes),
            self._entry.sign(value),
        )
        record = Record(GOALS, partition, -1, 0, key, value, headers)
        let_in = self._entry.admitted(record, job.partition("/")[0], only_workers=True)
        if isinstance(let_in, NotAdmitted):  # nobody would tell the attempt that waits
            raise RecordRefused(let_in.reason)
        await self._sender.deliver(GOALS, value, key=key, partition=partition, headers=headers)

    def _stop(self, order: StopAttempt, key: bytes) -> None:
        """Nobody needs this attempt any more. It stands before its stop, so one not known here has ended."""
        if self._attempts.stop(key, order.reason):
            names = {"job": order.job, "task": order.task, "attempt": order.attempt}
            self._log.info("attempt_stopped", **names, reason=order.reason)

    async def _bury(self, record: Record, reason: str) -> bool:
        """A command that cannot be read: a dead letter, and word to its job where the key names it."""
        self._log.warning("command_unreadable", lane=record.partition, offset=record.offset, reason=reason)
        await dead_letters.bury(self._sender, record, reason)
        if event := unreadable(record.key, reason):
            await self._outcomes.send(event)
        return True

    async def watch(self) -> None:
        """Until cancelled, look for lanes that have work and make no progress.

        Raises:
            LaneStalled: no attempt began or ended for ``stall_s`` though slots are free, an
                attempt goes on that long after its time is over, or one ended without an event.
        """
        stall = self._settings.stall_s
        while True:
            await asyncio.sleep(min(1.0, stall / 4))
            if self._attempts.broken is not None:
                raise LaneStalled("an attempt ended without an event") from self._attempts.broken
            if not self._standing.sure:
                self._attempts.step()  # nothing may begin, and a stuck attempt blocks nobody
                self._attempts.unsettled()
                continue
            if not self.caps.stuck:
                busy = self._outcomes.longest_overdue()
                if busy is not None and busy[1] > stall:
                    raise LaneStalled(f"attempt {busy[0]} goes on {busy[1]:.0f} s after its time was over")
                if self.caps.taken or busy is not None:
                    continue  # one that waits within its time has no slot
                elsewhere = any(lane.takeover.elsewhere for lane in self._lanes)  # and is waited for
                if self._sender.away or elsewhere or not any(lane.delivered for lane in self._lanes):
                    self._attempts.step()
                    continue
            if self._time() - self._attempts.moved > stall:
                where = ", ".join(lane.where() for lane in self._lanes if lane.delivered)
                raise LaneStalled(f"no progress for {stall:g} s with work delivered: {where}")

    async def drain(self) -> None:
        """Begin nothing more; give calls under way ``drain_s`` seconds to end and be acknowledged.

        Replies that are here by then get :data:`JOURNALED_S` seconds to reach the journal.

        An attempt that would need another call is handed over: whoever has its lane next goes on
        from its journal.
        """
        self._attempts.draining = True
        for lane in self._lanes:
            self._attempts.cancel(lane.held)
        for run in self._attempts.begun.values():
            run.attempt.move()
        running = list(self._attempts.begun)
        if running:
            attempts = [self._attempts.begun[task].attempt for task in running]
            _, late = await asyncio.wait(running, timeout=self._settings.drain_s)
            for task in late:
                task.cancel()
            # Replies that came in the last moment are paid for: their way to the journal is worth another.
            await self._journal([each.recorded() for each in attempts], JOURNALED_S)
            self._log.info("lanes_drained", finished=len(running) - len(late), given_up=len(late))


async def _heard() -> bool:
    """A stop is done once it is heard."""
    return True
