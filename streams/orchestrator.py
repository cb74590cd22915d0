"""The orchestrator: folds each partition of ``job-events`` into the table, and says what comes next.

One transaction holds a batch's changed rows, commands, answers and the position, so all of them
land or none. After a failed transaction, or one whose outcome is unknown, nothing here is
trusted: the owner ends, and a new one begins from the rows.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence

import structlog

from streams.core.commands import Bury, Command, Effect, Tell
from streams.core.events import Event, HedgeDue, JobBroken
from streams.core.job import absorb
from streams.core.pacing import Pacing
from streams.core.release import lane_of
from streams.core.states import Job, New, Open
from streams.core.values import JobId
from streams.effects import (
    COMMAND_BYTES,
    REFUSED,
    Sending,
    land,
    last_word,
    read_here,
    record_of,
    row_of,
)
from streams.gaps import awaits
from streams.hedges import HedgeTimers, MayRepeat, RunTimes, without_tools
from streams.log import (
    Claim,
    Fenced,
    Log,
    LogUnavailable,
    Producer,
    Reader,
    Record,
    RecordRefused,
    Transactions,
)
from streams.mending import Mending
from streams.rebuilding import Rebuilding
from streams.settings import Settings
from streams.suspect import Suspect, failed, parts
from streams.table import GapInLog, Table
from streams.timers import Timers
from streams.topics import JOB_EVENTS, SUBTASKS, partition_of
from streams.transcript import attempt_key
from streams.wire.commands import write_command
from streams.wire.envelope import NewerVersion, Unreadable, Unwritable
from streams.wire.events import write_event

STAGED_EVENTS = 400
"""A batch that asks for nothing waits for one that does; not beyond this many events."""

TICK_S = 0.001

TWICE = 2
"""Sub-tasks of one partition that are out at once for each slot of the system, at most: one at work, and one
to go on with at once. All slots may be needed by the jobs of one partition."""

GATHER_S = 0.002
"""After a batch that asked for nothing the next one may gather for so long: in a burst of results that
wait for others, a batch of twenty costs hardly more than one of a single event."""


class Orchestrator:
    """Owns partitions of ``job-events``, as many as its group gives it.

    Args:
        chance: Numbers between 0 and 1, for the jitter of backoffs.
        may_repeat: Of the tools of a sub-task, whether it may run twice at once.
    """

    def __init__(
        self,
        log: Log,
        settings: Settings,
        *,
        chance: Callable[[], float] = random.random,
        may_repeat: MayRepeat = without_tools,
    ) -> None:
        self._log, self._settings, self._chance = log, settings, chance
        self._times, self._may_repeat = RunTimes(), may_repeat
        self._suspects: dict[int, Suspect] = {}
        self._condemned: dict[int, set[int]] = {}

    async def run(self) -> None:
        """Fold until cancelled."""
        await self._log.own(JOB_EVENTS, "orchestrator", self.lead)

    async def lead(self, claim: Claim) -> None:
        """Own one partition until cancelled.

        The order matters: fence the old owner, then read what it committed, then go on from there.
        """
        number = claim.partition
        async with self._log.transactions(f"orchestrator-{number}") as transactions:
            table = await Table.restore(self._log, number)
            lanes, batch = self._settings.lanes, self._settings.batch
            if table.damage:
                await Mending(table, self._log, transactions, number, lanes=lanes, batch=batch).run()
            if table.position is None:
                await Rebuilding(
                    table,
                    self._log,
                    transactions,
                    number,
                    lanes=lanes,
                    batch=batch,
                    condemned=self._condemned.setdefault(number, set()),
                ).run()
            timers = Timers(
                monotonic=asyncio.get_running_loop().time,
                chance=self._chance,
                grace_s=self._settings.overdue_grace_s,
            )
            partition = Partition(
                claim,
                transactions,
                producer=self._log.producer,
                reader=self._log,
                table=table,
                timers=timers,
                times=self._times,
                hedges=HedgeTimers(self._times, self._may_repeat),
                settings=self._settings,
            )
            suspect = self._suspects.pop(number, None)
            try:
                await partition.run(suspect)
            except (asyncio.CancelledError, Fenced, LogUnavailable, GapInLog):
                raise  # no event is at fault; least of all the one after a gap
            except Exception:
                # Something in this batch cannot be committed; the next owner narrows it down.
                self._suspects[number] = failed(partition.began, partition.size, suspect)
                raise


class Partition:
    """One partition of the log while this process owns it.

    Attributes:
        began, size: Offset and number of events of the batch in hand.
    """

    def __init__(
        self,
        claim: Claim,
        transactions: Transactions,
        *,
        producer: Producer,
        reader: Reader,
        table: Table,
        timers: Timers,
        times: RunTimes,
        hedges: HedgeTimers,
        settings: Settings,
    ) -> None:
        self._claim, self._transactions = claim, transactions
        self._producer, self._reader = producer, reader
        self._table, self._timers, self._settings = table, timers, settings
        self._times, self._hedges = times, hedges
        # No more than keeps every slot busy: what is out when its job ends is run for nothing.
        self._pacing = Pacing(min(settings.window, TWICE * settings.concurrency))
        self._monotonic = asyncio.get_running_loop().time
        self._staged_since: float | None = None
        self._staged = 0
        self._words: list[Event] = []  # last ones, that jobs must hear before the next commit
        self._refused = False
        self.began, self.size = table.position or 0, 0
        self._log = structlog.get_logger().bind(part="orchestrator", partition=claim.partition)

    async def run(self, suspect: Suspect | None) -> None:
        """Fold batch after batch. *suspect* are events that failed before."""
        self._timers.seen(self._table.at)
        for job in self._table.open_jobs():
            self._pacing.touch(New(), job)
        for job in self._table.open_jobs():
            self._timers.arm(New(), job, ahead=self._ahead())
            self._hedges.arm(New(), job)
        for account in self._table.accounts():
            self._timers.arm(New(), account)
        self._log.info("partition_owned", position=self._table.position, finished=self._table.finished)
        # Without a position the log is empty; whatever the group committed, its first event is the next.
        self._claim.seek(self._table.position or 0)
        if self._table.position is not None:
            # The owner before may have ended between its last commit and telling the group of it.
            self._claim.done(self._table.position)
        await self.step(())  # what became ready and was not yet released
        while True:
            if self._staged_since is not None:
                await asyncio.sleep(GATHER_S)
            records = await self._claim.batch(self._patience())
            for part in parts(records, self._settings.batch, suspect):
                if suspect is not None and suspect.condemned and part[0].offset == suspect.offset:
                    await self._bury(part[0])
                else:
                    # Up to the suspect's end nothing is staged: the next owner begins where this fails.
                    await self.step(part, staging=suspect is None or part[0].offset >= suspect.end)
            for event in (
                *self._timers.due(self._table.__getitem__),
                *self._hedges.due(self._table.__getitem__, self._timers.now()),
            ):
                await self._tell(event)
            if self._stage_is_over():
                await self.step((), staging=False)

    def _ahead(self) -> float:
        """Attempts that a command just released may have to wait for, one after the other.

        All partitions are thought to be as full as this one, and all slots to be busy.
        """
        return self._pacing.outstanding * self._settings.lanes / self._settings.concurrency

    def _stage_is_over(self) -> bool:
        since = self._staged_since
        return since is not None and self._monotonic() >= since + self._settings.stage_s

    def _patience(self) -> float | None:
        """Seconds to wait for events: until the staged ones must land, or a timer is due."""
        timers = self._timers.wait(), self._hedges.wait(self._timers.now())
        waits = [wait for wait in timers if wait is not None]
        if self._staged_since is not None:
            waits.append(self._staged_since + self._settings.stage_s - self._monotonic())
        # A clock need not move in less than a millisecond: to wait for less could wait for ever.
        return max(TICK_S, min(waits)) if waits else None

    async def step(self, records: Sequence[Record], *, staging: bool = True) -> None:
        """Fold a batch; what it asks for, its rows and our position land together or not at all.

        Raises:
            GapInLog: events may be missing between the last batch and this one.
        """
        self.began, self.size = self._table.position or 0, len(records)
        self._words.clear()
        touched: dict[JobId, Job] = {}
        asked: list[tuple[Record, Effect]] = []
        for record in records:
            if await awaits(self._table, record, self._reader):
                asked.extend((record, effect) for effect in self._fold(record, touched))
                self._table.passed(record)
        if records:
            self._timers.seen(self._table.at)
        for job, before in touched.items():
            self._pacing.touch(before, self._table[job])
        released = self._pacing.release(self._table.__getitem__, self._timers.now())
        for after, _ in released:
            touched.setdefault(after.submitted.job, self._table[after.submitted.job])
            self._table[after.submitted.job] = after
        for job, before in touched.items():
            self._timers.arm(before, self._table[job], ahead=self._ahead())
            self._hedges.arm(before, self._table[job])
        self._staged += len(records)
        commands = [command for _, given in released for command in given]
        if staging and not commands and not asked and self._staged < STAGED_EVENTS:
            if self._staged_since is None and records:
                self._staged_since = self._monotonic()
            return
        if self._staged or commands:
            orders = [order for command in commands if (order := self._order(command)) is not None]
            # Behind the commands: a stop stands behind what it stops.
            lanes = self._settings.lanes
            effects = [
                record_of(each, record, lanes=lanes) for record, each in asked if not isinstance(each, Tell)
            ]
            told = (effect.event for _, effect in asked if isinstance(effect, Tell))
            await self._say(*told, *self._words)
            await self._commit([*orders, *effects])

    def _fold(self, record: Record, touched: dict[JobId, Job]) -> tuple[Effect, ...]:
        try:
            event = read_here(record, self._settings.lanes)
        except Unreadable as error:
            self._log.warning("event_unreadable", offset=record.offset, reason=str(error))
            if isinstance(error, NewerVersion) and (word := last_word(record, self._table.__getitem__)):
                self._words.append(word)
            return (Bury(reason=str(error)),)
        before = self._table[event.job]
        self._times.learn(before, event)
        after, effects = absorb(before, event)
        if after is not before:
            touched.setdefault(event.job, before)
            self._table[event.job] = after
            if isinstance(event, HedgeDue):
                names = {"job": event.job, "task": event.task, "attempt": event.attempt}
                self._log.info("hedge_begun", **names, after_ms=event.after_ms)
        return effects

    def _order(self, command: Command) -> Sending | None:
        """The record of a command; None of one that no record can hold, which ends its job.

        It is here and not as a batch that fails: pacing lets a command go in a batch of other events,
        none of which is at fault.
        """
        key = attempt_key(command.job, command.task, command.attempt)
        lane = lane_of(command.job, command.ordinal, command.attempt, self._settings.lanes)
        try:
            value = write_command(command)
            why = f"it has {len(value)} bytes" if len(value) > COMMAND_BYTES else ""
        except Unwritable as error:
            value, why = b"", str(error)
        if not why:
            return SUBTASKS, lane, (key, value, ())
        job, reason = self._table[command.job], f"the command to run {command.task} cannot be given: {why}"
        revision = job.revision.number if isinstance(job, Open) else 1
        self._words.append(JobBroken(job=command.job, reason=reason, revision=revision))
        return None

    async def _commit(self, sendings: Iterable[Sending]) -> None:
        """One transaction: these records, the changed rows, our position."""
        rows = [row_of(self._claim.partition, name, row) for name, row in self._table.changes()]
        await land(self._transactions, [*sendings, *rows])
        self._table.committed()
        self._staged, self._staged_since = 0, None
        if self._table.position is not None:
            self._claim.done(self._table.position)

    async def _bury(self, record: Record) -> None:
        """What this event asks for cannot be committed: bury it, and let its job end with the reason."""
        # First, and awaited: after the commit below nobody would know of the job any more.
        if event := last_word(record, self._table.__getitem__):
            await self._say(event)
        else:
            self._log.error("event_buried_without_a_word", offset=record.offset)
        self._table.passed(record)
        await self._commit([record_of(Bury(reason=REFUSED), record, lanes=self._settings.lanes)])

    async def _say(self, *events: Event) -> None:
        """Put events of our own on the logs of their jobs, in their order, and wait until they are there.

        One that the log will never take is left out: the partition must go on.

        Raises:
            LogUnavailable: they may not all be there.
        """
        sent: list[tuple[Event, asyncio.Future[int]]] = []
        for event in events:
            try:
                sent.append((event, await self._send(event)))
            except RecordRefused as error:
                self._refuse(event, error)
        # All of them are waited for, whatever becomes of one.
        for (event, _), came in zip(
            sent, await asyncio.gather(*(each for _, each in sent), return_exceptions=True), strict=True
        ):
            if isinstance(came, RecordRefused):
                self._refuse(event, came)
            elif isinstance(came, BaseException):
                raise came

    def _refuse(self, event: Event, error: RecordRefused) -> None:
        self._log.error("event_refused", job=event.job, kind=type(event).__name__, reason=str(error))

    async def _tell(self, event: Event) -> None:
        """Put an event of our own on this partition's log; one that gets lost comes again."""
        try:
            delivery = await self._send(event)
        except LogUnavailable:
            return
        except RecordRefused as error:
            self._told(error)
            return
        delivery.add_done_callback(lambda done: self._told(None if done.cancelled() else done.exception()))

    def _told(self, error: BaseException | None) -> None:
        """Our timers come again each second: that the log takes none of them is said once."""
        if isinstance(error, RecordRefused) and not self._refused:
            self._log.error("timers_refused", reason=str(error))
        self._refused = isinstance(error, RecordRefused)

    async def _send(self, event: Event) -> "asyncio.Future[int]":
        return await self._producer.send(
            JOB_EVENTS,
            write_event(event),
            key=event.job.encode(),
            partition=partition_of(event.job, self._settings.lanes),
        )
