"""Claim checks: values too large for a record stand on ``transcripts`` in chunks, and are read from there."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterable
from dataclasses import replace
from hashlib import sha256
from typing import Final, TypeVar, overload

import orjson

from streams.core.commands import Answer, Command, Judge, MakeAnswer, MakePlan, RunSubTask, TaskResult
from streams.core.events import ChildAnswered, SubTaskSucceeded
from streams.core.values import Inline, Json, Reference, Value
from streams.delivery import Sender
from streams.log import LogUnavailable, Reader, Record, RecordRefused
from streams.topics import JOB_EVENTS, TRANSCRIPTS
from streams.transcript import ValueChunk
from streams.wire.envelope import Unreadable
from streams.wire.events import read_event
from streams.wire.transcripts import read_transcript, write_transcript

T = TypeVar("T")

CHUNK_BYTES: Final = 480_000
"""Bytes of JSON in a chunk. As text inside of JSON it can double (a backslash before each quote and
backslash), and must then still fit the megabyte that Kafka's clients send by default."""

_CONTINUES, _BEGINS = 0x80, 0xC0
"""Bytes of UTF-8 from the first up to the second continue a character (RFC 3629)."""

RESOLVE_S: Final = 30.0
CACHE_BYTES: Final = 33_554_432
READS: Final = 16
"""Values read from the log at the same time."""


class ValueLost(Exception):
    """A claim check leads to nothing, or to something else: its record is past its retention."""


async def check_in(sender: Sender, value_json: bytes, *, key: bytes, partition: int, run: str) -> Reference:
    """Put a value on ``transcripts`` and wait until it is there, as long as it takes.

    Args:
        value_json: The value's JSON, as orjson writes it.
        key: Of the records: that of the attempt whose value it is.
        run: The worker's life.

    Raises:
        RecordRefused: the log does not take the chunks.
    """
    digest = sha256(value_json).hexdigest()
    pieces = list(_pieces(value_json))
    chunks = (
        ValueChunk(run=run, digest=digest, index=index, count=len(pieces), data=piece)
        for index, piece in enumerate(pieces)
    )
    offsets = await asyncio.gather(
        *(sender.deliver(TRANSCRIPTS, write_transcript(c), key=key, partition=partition) for c in chunks)
    )
    return Reference(
        topic=TRANSCRIPTS, partition=partition, offsets=tuple(offsets), size=len(value_json), digest=digest
    )


def _pieces(value_json: bytes) -> Iterable[str]:
    start = 0
    while start < len(value_json):
        end = min(start + CHUNK_BYTES, len(value_json))
        while end < len(value_json) and _CONTINUES <= value_json[end] < _BEGINS:
            end -= 1  # not inside of a character
        yield value_json[start:end].decode()
        start = end


class Resolver:
    """Reads what claim checks stand for. Safe to use from many tasks.

    Whoever asks for the same value at the same time shares one read. Values are shared as well,
    so nobody may change them.
    """

    def __init__(self, log: Reader, *, cache_bytes: int = CACHE_BYTES, within_s: float = RESOLVE_S) -> None:
        """Begin with nothing read.

        Args:
            cache_bytes: Bytes of JSON of the values kept; as Python objects they take several times that.
            within_s: Seconds one value may take to read.
        """
        self._log = log
        self._within_s = within_s
        self._cache_bytes = cache_bytes
        self._cached: OrderedDict[Reference, Json] = OrderedDict()
        self._cached_bytes = 0
        self._reads: dict[Reference, asyncio.Task[Json]] = {}
        self._slots = asyncio.Semaphore(READS)

    async def resolve(self, value: Value) -> Json:
        """The value itself.

        Raises:
            LogUnavailable: it could not be read in time.
            ValueLost: it is not there any more.
        """
        if isinstance(value, Inline):
            return value.value
        if value in self._cached:
            self._cached.move_to_end(value)
            return self._cached[value]
        read = self._reads.get(value)
        if read is None:
            read = self._reads[value] = asyncio.create_task(self._read(value))
            read.add_done_callback(lambda done: self._done(value, done))
        # Shielded: others wait for it too. Without them it ends by its own deadline.
        return await asyncio.shield(read)

    @overload
    async def resolve_command(self, command: MakePlan) -> MakePlan: ...
    @overload
    async def resolve_command(self, command: RunSubTask) -> RunSubTask: ...
    @overload
    async def resolve_command(self, command: MakeAnswer) -> MakeAnswer: ...
    @overload
    async def resolve_command(self, command: Judge) -> Judge: ...
    async def resolve_command(self, command: Command) -> Command:
        """The command with every value inline.

        Raises:
            LogUnavailable, ValueLost: as of :meth:`resolve`.
        """
        match command:
            case MakePlan(text=text, input=given, known=known):
                text, given = await self._inline(text), await self._inline_or_none(given)
                return replace(command, text=text, input=given, known=await self._results(known))
            case RunSubTask(input=given, dep=dep, text=text):
                goal = command.goal if text is None else str((await self._inline(text)).value)
                given, dep = await self._inline_or_none(given), await self._results(dep)
                return replace(command, goal=goal, text=None, input=given, dep=dep)
            case MakeAnswer(text=text, results=results) | Judge(text=text, results=results):
                return replace(command, text=await self._inline(text), results=await self._results(results))

    async def resolve_answer(self, answer: Answer) -> Answer:
        """The answer with its value inline.

        Raises:
            LogUnavailable, ValueLost: as of :meth:`resolve`.
        """
        return replace(answer, answer=await self._inline_or_none(answer.answer))

    async def _results(self, results: tuple[TaskResult, ...]) -> tuple[TaskResult, ...]:
        if not any(isinstance(result.result, Reference) for result in results):
            return results
        values = await asyncio.gather(*(self._inline_or_none(result.result) for result in results))
        return tuple(replace(result, result=value) for result, value in zip(results, values, strict=True))

    async def _inline_or_none(self, value: Value | None) -> Inline | None:
        return None if value is None else await self._inline(value)

    async def _inline(self, value: Value) -> Inline:
        return value if isinstance(value, Inline) else Inline(value=await self.resolve(value))

    async def _read(self, reference: Reference) -> Json:
        try:
            async with asyncio.timeout(self._within_s), self._slots:
                records = await self._records(reference)
        except TimeoutError:
            raise LogUnavailable(f"{_place(reference)}: not read within {self._within_s:g} s") from None
        except RecordRefused as error:
            raise ValueLost(f"{_place(reference)}: {error}") from error
        return value_in(reference, records)

    async def _records(self, reference: Reference) -> list[Record]:
        """The records of a reference, in its order; they stand close to each other."""
        wanted = dict.fromkeys(reference.offsets)
        found: dict[int, Record] = {}
        reading = self._log.read(reference.topic, reference.partition, offset=min(wanted, default=0))
        try:
            async for batch in reading:
                found.update({record.offset: record for record in batch if record.offset in wanted})
                if batch[-1].offset >= max(wanted, default=0):
                    break
        finally:
            if isinstance(reading, AsyncGenerator):
                await reading.aclose()
        for offset in wanted:
            if offset not in found:
                raise ValueLost(f"{_place(reference)}: record {offset} is gone")
        return [found[offset] for offset in reference.offsets]

    def _done(self, reference: Reference, read: "asyncio.Task[Json]") -> None:
        del self._reads[reference]
        if read.cancelled() or read.exception() is not None or reference.size > self._cache_bytes:
            return
        self._cached[reference] = read.result()
        self._cached_bytes += reference.size
        while self._cached_bytes > self._cache_bytes:
            old, _ = self._cached.popitem(last=False)
            self._cached_bytes -= old.size


def value_in(reference: Reference, records: list[Record]) -> Json:
    """What a claim check stands for, in the records that it names, in its order.

    Raises:
        ValueLost: they hold something else.
    """
    try:
        return _result(reference, records) if reference.topic == JOB_EVENTS else _joined(reference, records)
    except Unreadable as error:
        raise ValueLost(f"{_place(reference)}: {error}") from error


def _joined(reference: Reference, records: list[Record]) -> Json:
    pieces = []
    for record in records:
        chunk = read_transcript(record)
        if not isinstance(chunk, ValueChunk) or chunk.digest != reference.digest:
            raise ValueLost(f"{_place(reference)}: record {record.offset} is no chunk of it")
        pieces.append(chunk.data)
    return _checked(reference, "".join(pieces).encode())


def _result(reference: Reference, records: list[Record]) -> Json:
    if len(records) != 1:
        raise ValueLost(f"{_place(reference)}: a result stands in one event")
    event = read_event(records[0])
    match event:
        case SubTaskSucceeded(result=Inline(value=value)) | ChildAnswered(answer=Inline(value=value)):
            pass
        case _:
            raise ValueLost(f"{_place(reference)}: the event there has no result")
    if not reference.digest:  # the fold, which makes such references, has no JSON to take one of
        return value
    return _checked(reference, orjson.dumps(value))


def _checked(reference: Reference, value_json: bytes) -> Json:
    if sha256(value_json).hexdigest() != reference.digest:
        raise ValueLost(f"{_place(reference)}: its digest is another one")
    value: Json = orjson.loads(value_json)
    return value


def _place(reference: Reference) -> str:
    first = reference.offsets[0] if reference.offsets else "nowhere"
    return f"value of {reference.size} bytes at {reference.topic}[{reference.partition}]@{first}"
