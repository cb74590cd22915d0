"""The table of a partition rebuilt from its log, where the topic ``jobs`` holds no position of it.

That is so until the first event is folded, and after the topic was lost. The log is folded from its
beginning to its end; nothing is released meanwhile, since most of what would be was done long ago.
What the events ask of the world was mostly given, too: an answer that stands on ``answers`` is not
given again, and what stands on ``dead-letters`` is not buried again. The rows land in parts, the
position with the last of them; a crash before that begins anew.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import structlog

from streams import dead_letters
from streams.core.commands import Answer, Bury, Effect, Tell
from streams.core.events import Event
from streams.core.job import COULD_NOT, absorb, break_by
from streams.core.states import Succeeded
from streams.core.values import INLINE_BYTES, JobId
from streams.effects import REFUSED, Sending, land, last_word, read_here, record_of, row_of
from streams.gaps import awaits
from streams.log import Log, Record, RecordRefused, Transactions
from streams.table import Table
from streams.topics import ANSWERS, DEAD_LETTERS, JOB_EVENTS, partition_of
from streams.wire.answers import read_answer
from streams.wire.envelope import NewerVersion, Unreadable
from streams.wire.events import write_event
from streams.wire.rows import GoalRow, Row, SubTaskRow

LAND_BYTES: Final = 1_048_576
"""Records of one transaction at most; a larger one has a transaction of its own."""

NOBODY: Final = -1
"""In place of an event's offset: no single event is answerable for a record."""

Owed: TypeAlias = tuple[int, Sending]
"""A record to land, and the offset of the event answerable for its size."""


@dataclass(slots=True, kw_only=True)
class Given:
    """What a partition's events have asked for and was given already, as it stands on the topics.

    Attributes:
        answers: Job and revision of every answer.
        since: Broker time of the oldest answer, milliseconds since 1970, where older ones are past
            their retention: what an event before it asked for was given.
        buried: Reason by the event's offset.
    """

    answers: set[tuple[JobId, int]] = field(default_factory=set)
    since: int = 0
    buried: dict[int, str] = field(default_factory=dict)

    def has(self, event: Record, effect: Effect) -> bool:
        """Whether this effect of this event was given."""
        if event.timestamp < self.since:
            return True
        return isinstance(effect, Answer) and (effect.job, effect.revision) in self.answers


async def read_given(log: Log, partition: int) -> Given:
    """What was given; read after the producer's start, so that nobody else gives any more.

    Raises:
        LogUnavailable: the log does not say in time.
    """
    given = Given()
    async for records in log.read(ANSWERS, partition):
        for record in records:
            try:
                answer = read_answer(record)
            except Unreadable:
                continue  # not of ours: the topic is public
            if not given.answers and record.offset > 0:
                given.since = answer.answered_at
            given.answers.add((answer.job, answer.revision))
        await asyncio.sleep(0)
    async for records in log.read(DEAD_LETTERS, partition):
        for letter in map(dead_letters.read, records):
            if (letter.place.topic, letter.place.partition) == (JOB_EVENTS, partition):
                given.buried.setdefault(letter.place.offset, letter.reason)
    return given


class Rebuilding:
    """The rebuilding of one partition's table.

    Args:
        table: Restored, without a position.
        lanes: Partitions of the system.
        batch: Records of one transaction, and events folded without a pause, at most.
        condemned: Offsets of events for which something was refused before, for its size; kept by
            the caller from try to try.
    """

    def __init__(
        self,
        table: Table,
        log: Log,
        transactions: Transactions,
        partition: int,
        *,
        lanes: int,
        batch: int,
        condemned: set[int],
    ) -> None:
        self._table, self._log, self._transactions, self._lanes = table, log, transactions, lanes
        self._partition, self._batch, self._condemned = partition, batch, condemned

    async def run(self) -> None:
        """Fold the log to its end into the table, and land the rows and what was never given.

        Raises:
            GapInLog: an event is missing.
            Fenced, LogUnavailable, RecordRefused: begin anew, with a new producer.
        """
        given: Given | None = None
        owed: list[Owed] = []
        events = late = 0
        async for records in self._log.read(JOB_EVENTS, self._partition):
            given = given or await read_given(self._log, self._partition)
            for record in records:
                if not await awaits(self._table, record, self._log):
                    continue
                effects = await self._fold(record, given)
                await self._tell(effects)
                owed += [
                    (record.offset, record_of(each, record, lanes=self._lanes))
                    for each in effects
                    if isinstance(each, Answer | Bury)
                ]
                self._table.passed(record)
                events += 1
                if events % self._batch == 0:
                    late += len(owed)
                    await self._land(owed)
                    owed = []
                    await asyncio.sleep(0)  # others live on this loop as well
        late += len(owed)
        await self._land(owed)
        await self._land(self._rows())
        self._table.committed()
        if events:
            log = structlog.get_logger().bind(part="orchestrator", partition=self._partition)
            log.info("table_rebuilt", events=events, finished=self._table.finished, given_late=late)

    async def _fold(self, record: Record, given: Given) -> tuple[Effect, ...]:
        """Fold one event; what it asks for and was never given."""
        if record.offset in given.buried:
            return fold_past(self._table, record, given, self._lanes)
        if record.offset in self._condemned:
            await self._say_last_word(record)
            return (Bury(reason=REFUSED),)
        effects: tuple[Effect, ...]
        try:
            event = read_here(record, self._lanes)
        except Unreadable as error:
            effects = (Bury(reason=str(error)),)
            if isinstance(error, NewerVersion):
                await self._say_last_word(record)
        else:
            self._table[event.job], effects = absorb(self._table[event.job], event)
        return tuple(effect for effect in effects if not given.has(record, effect))

    async def _tell(self, effects: Iterable[Effect]) -> None:
        """What the end of a job is told to others, where its answer was never given: then that was not.

        Whatever else was to be told is asked for again by whoever waits for it.
        """
        if any(isinstance(each, Answer) for each in effects):
            for each in effects:
                if isinstance(each, Tell):
                    await self._say(each.event)

    async def _say_last_word(self, record: Record) -> None:
        """As the orchestrator does before it buries an event: nobody would know of its job any more."""
        if word := last_word(record, self._table.__getitem__):
            await self._say(word)

    async def _say(self, event: Event) -> None:
        delivery = await self._log.producer.send(
            JOB_EVENTS,
            write_event(event),
            key=event.job.encode(),
            partition=partition_of(event.job, self._lanes),
        )
        await delivery

    def _rows(self) -> Iterator[Owed]:
        """What makes the topic's rows those of the table; the position last."""
        left = set(self._table.leftovers)
        rows = list(self._table.changes())
        left.difference_update(name for name, _ in rows)
        for name in left:
            yield NOBODY, row_of(self._partition, name, None)
        for name, row in rows:
            yield answerable(row), row_of(self._partition, name, row)

    async def _land(self, owed: Iterable[Owed]) -> None:
        for part in parts(owed, self._batch):
            try:
                await land(self._transactions, [sending for _, sending in part])
            except RecordRefused:
                offset, largest = max(part, key=lambda each: size_of(each[1]))
                if offset != NOBODY and size_of(largest) > INLINE_BYTES:
                    self._condemned.add(offset)
                raise


def fold_past(table: Table, record: Record, given: Given, lanes: int) -> tuple[Effect, ...]:
    """Fold an event as it was folded then, and say what it asked for; nothing where it was buried.

    One that was buried was not folded, though it might be read or land by now. One that the rules of
    then broke on did end its job, though those of now may be mended.
    """
    reason = given.buried.get(record.offset)
    if reason is not None and COULD_NOT not in reason:
        return ()
    try:
        event = read_here(record, lanes)
    except Unreadable:
        return ()
    if reason is None:
        table[event.job], effects = absorb(table[event.job], event)
        return effects
    table[event.job], _ = break_by(table[event.job], event, reason)
    return ()  # what it asked for landed with the dead letter


def answerable(row: Row | None) -> int:
    """The offset of the event that made this row as large as it is."""
    match row:
        case GoalRow(submitted=submitted):
            return submitted.offset
        case SubTaskRow(state=Succeeded(offset=offset)):
            return offset
        case _:
            return NOBODY


def size_of(sending: Sending) -> int:
    """Bytes of key and value."""
    _, _, (key, value, _) = sending
    return len(key) + len(value or b"")


def parts(owed: Iterable[Owed], count: int) -> Iterator[list[Owed]]:
    """In their order, at most *count* and :data:`LAND_BYTES` a part."""
    part: list[Owed] = []
    size = 0
    for each in owed:
        more = size_of(each[1])
        if part and (len(part) == count or size + more > LAND_BYTES):
            yield part
            part, size = [], 0
        part.append(each)
        size += more
    if part:
        yield part
