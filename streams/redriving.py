"""Dead letters go back to where they came from, or are dropped: each once, whoever does it and how often.

What is sent and the mark that says so land in one transaction. Its producer has one identity for each
partition of ``dead-letters``, so that whoever begins fences whoever was at it, and then reads what that
one has marked: the fence is the lock. Only ``job-events`` takes no transactions: there the record goes
first and its mark after it, and an event that is on the log twice changes nothing.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, cast

from streams import dead_letters, letters
from streams.dead_letters import DeadLetter
from streams.letters import Letter, Place
from streams.log import Fenced, Log, Record, RecordRefused, Transactions
from streams.reopening import Refused, Reopening, Way
from streams.topics import DEAD_LETTERS, GOALS, JOB_EVENTS, JOBS, SUBTASKS
from streams.wire.marks import Dropped, Mark, Redriven, is_mark, write_mark

BACK: Final = frozenset({GOALS, SUBTASKS, JOB_EVENTS})
"""Topics whose records are read again."""

AT_ONCE: Final = 500
"""Dead letters whose jobs are looked at together: their events are in memory meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A dead letter is redriven or dropped.

    Attributes:
        again: It was so before, and nothing was done.
    """

    place: Place
    mark: Mark
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NotDone:
    """A dead letter stays as it is, for this reason."""

    place: Place
    reason: str


Outcome = Done | NotDone

Act = Callable[[Transactions, DeadLetter], Awaitable[Mark]]


async def redrive(
    log: Log, chosen: Iterable[Letter], *, lanes: int, by: str
) -> AsyncGenerator[Outcome, None]:
    """Send dead letters back, and open the jobs again that ended for want of them; each outcome as it comes.

    Args:
        chosen: Those of one job open it once.
        lanes: Partitions of the system.
        by: Who asks, for the marks.

    Raises:
        LogUnavailable: the log went away, and it may not be known whether the last one was done. To do
            it again is safe, and says so.
    """
    by_job = sorted(chosen, key=lambda letter: letter.job or "")
    for start in range(0, len(by_job), AT_ONCE):
        part = by_job[start : start + AT_ONCE]
        act = _redriving(log, Reopening(log, lanes=lanes, by=by, chosen=part), lanes=lanes, by=by)
        async with aclosing(_each(log, part, act)) as outcomes:
            async for outcome in outcomes:
                yield outcome


def _redriving(log: Log, reopening: Reopening, *, lanes: int, by: str) -> Act:
    """What it takes to redrive one dead letter."""

    async def act(transactions: Transactions, dead: DeadLetter) -> Mark:
        original = await whole(log, dead, lanes=lanes)
        way = await _way(reopening, original)
        to: int | None = None
        if way.goes and original.topic == JOB_EVENTS:
            to = await _sent(log, original)
        async with transactions.transaction():
            if way.goes and to is None:
                to = await _send(transactions, original)
            mark = Redriven(
                letter=dead.offset,
                by=by,
                topic=original.topic,
                partition=original.partition,
                to=to,
                job=way.job,
                revision=way.revision,
            )
            await _mark(transactions, dead, mark)
        return mark

    return act


async def drop(log: Log, chosen: Iterable[Letter], *, reason: str, by: str) -> AsyncGenerator[Outcome, None]:
    """Mark dead letters as done with; each outcome as it comes. Nothing is deleted.

    Raises:
        LogUnavailable: as of :func:`redrive`.
    """

    async def act(transactions: Transactions, dead: DeadLetter) -> Mark:
        mark = Dropped(letter=dead.offset, by=by, reason=reason)
        async with transactions.transaction():
            await _mark(transactions, dead, mark)
        return mark

    async with aclosing(_each(log, chosen, act)) as outcomes:
        async for outcome in outcomes:
            yield outcome


async def whole(log: Log, dead: DeadLetter, *, lanes: int) -> Record:
    """The record that was buried; one that was too large for its dead letter is read from its topic.

    Raises:
        Refused: it is not there any more, or never came from a topic of ours.
        LogUnavailable: the log cannot be read.
    """
    place = dead.place
    if place.topic == JOBS:
        raise Refused("it was a row of the table, which was mended from the log: there is nothing to send")
    if place.topic not in BACK or not 0 <= place.partition < lanes:
        raise Refused("it came from no topic that is read again; somebody else put it here")
    if dead.lost_bytes is None:
        return letters.original_of(dead)
    async with aclosing(_records(log, place.topic, place.partition, (place.offset,))) as records:
        async for record in records:
            if sha256(record.value or b"").hexdigest() == dead.lost_digest:
                return record
    raise Refused(
        f"its value of {dead.lost_bytes} bytes was left out here, and is not at "
        f"{place.topic}[{place.partition}]@{place.offset} any more"
    )


async def _way(reopening: Reopening, original: Record) -> Way:
    if original.topic == SUBTASKS:
        return await reopening.of_command(original)
    if original.topic == JOB_EVENTS:
        return await reopening.of_event(original)
    return Way()


async def _each(log: Log, chosen: Iterable[Letter], act: Act) -> AsyncGenerator[Outcome, None]:
    """Do something with each dead letter that has no mark, behind the fence of its partition."""
    by_partition: dict[int, list[int]] = {}
    for letter in chosen:
        by_partition.setdefault(letter.place[0], []).append(letter.place[1])
    for partition, offsets in sorted(by_partition.items()):
        left = sorted(set(offsets))
        try:
            while left:
                async with (
                    log.transactions(f"redrive-{partition}") as transactions,
                    aclosing(_group(log, transactions, partition, tuple(left), act)) as outcomes,
                ):
                    async for outcome in outcomes:
                        left.remove(outcome.place[1])
                        yield outcome
        except Fenced:
            for offset in left:
                yield NotDone(
                    place=(partition, offset),
                    reason="somebody else has begun to redrive or drop dead letters of this partition",
                )


async def _group(
    log: Log, transactions: Transactions, partition: int, offsets: Sequence[int], act: Act
) -> AsyncGenerator[Outcome, None]:
    """Those of one partition; ends early where the producer is of no use any more."""
    marks = await _marks(log, partition, offsets[0])
    wanted = set(offsets)
    async with aclosing(_records(log, DEAD_LETTERS, partition, offsets)) as records:
        async for record in records:
            if is_mark(record):
                continue
            place = partition, record.offset
            wanted.discard(record.offset)
            if mark := marks.get(record.offset):
                yield Done(place=place, mark=mark, again=True)
                continue
            try:
                yield Done(place=place, mark=await act(transactions, dead_letters.read(record)))
            except Refused as error:
                yield NotDone(place=place, reason=str(error))
            except RecordRefused as error:
                yield NotDone(place=place, reason=f"the log does not take it: {error}")
                return
    for offset in sorted(wanted):
        yield NotDone(place=(partition, offset), reason="there is no dead letter")


async def _marks(log: Log, partition: int, since: int) -> dict[int, Mark]:
    """The first mark of each dead letter from an offset on."""
    marks: dict[int, Mark] = {}
    async for records in log.read(DEAD_LETTERS, partition, offset=since):
        for record in filter(is_mark, records):
            if mark := letters.readable_mark(record):
                marks.setdefault(mark.letter, mark)
    return marks


async def _records(
    log: Log, topic: str, partition: int, offsets: Sequence[int]
) -> AsyncGenerator[Record, None]:
    """The records at these offsets, of which some may be there no more."""
    wanted = set(offsets)
    reading = cast("AsyncGenerator[list[Record], None]", log.read(topic, partition, offset=offsets[0]))
    async with aclosing(reading) as batches:
        async for records in batches:
            for record in records:
                if record.offset in wanted:
                    yield record
            if records[-1].offset >= offsets[-1]:
                return


async def _sent(log: Log, original: Record) -> int:
    """Send without a transaction; the record's offset."""
    return await (
        await log.producer.send(
            original.topic,
            original.value,
            key=original.key,
            partition=original.partition,
            headers=original.headers,
        )
    )


async def _send(transactions: Transactions, original: Record) -> int:
    return await (
        await transactions.send(
            original.topic,
            original.value,
            key=original.key,
            partition=original.partition,
            headers=original.headers,
        )
    )


async def _mark(transactions: Transactions, dead: DeadLetter, mark: Mark) -> None:
    value, headers = write_mark(mark)
    key = f"{DEAD_LETTERS}-{dead.partition}-{dead.offset}".encode()
    await transactions.send(DEAD_LETTERS, value, key=key, partition=dead.partition, headers=headers)
