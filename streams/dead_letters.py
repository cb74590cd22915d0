"""Dead letters: records that could not be read or handled, whole, with where they stood and why.

Key, value and headers are those of the original, byte for byte, so that a dead letter can be sent
to its topic again once its cause is gone. What we have to say stands in headers behind the
original's own, as Kafka Connect's dead letter queue does it (KIP-298). A dead letter stands on the
partition of its original's number; behind it there may be a mark that says what became of it, see
``streams/wire/marks.py``.
"""

import asyncio
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import structlog

from streams.core.goal import Source
from streams.delivery import Sender
from streams.log import Headers, Record, RecordRefused
from streams.topics import DEAD_LETTERS
from streams.wire.headers import size_of

REASON: Final = "anabranch-reason"
TOPIC: Final = "anabranch-topic"
PARTITION: Final = "anabranch-partition"
OFFSET: Final = "anabranch-offset"
SOURCE_TOPIC: Final = "anabranch-source-topic"
SOURCE_PARTITION: Final = "anabranch-source-partition"
SOURCE_OFFSET: Final = "anabranch-source-offset"
KEY: Final = "anabranch-key"
"""Says ``none`` where the original has no key; the dead letter has one all the same."""

VALUE_SIZE: Final = "anabranch-value-size"
VALUE_DIGEST: Final = "anabranch-value-sha256"

REASON_CHARS: Final = 1_000
CARRIED_BYTES: Final = 65_536
"""Bytes of key and of headers that a dead letter without its value still carries."""

REFUSED_S: Final = 5.0
"""Seconds until a dead letter that the log would not take at all is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A dead letter, read.

    Attributes:
        place: Where the original stands.
        source: The goal's record, where the original is another one that came of it.
        key: As the original's; None where it has none.
        value: As the original's.
        headers: The original's.
        lost_bytes: Size of the original's value where no record could hold it; else None.
        lost_digest: Its SHA-256, in hexadecimal.
        at: When it was buried, milliseconds since 1970.
        offset: The dead letter's own place, with *partition*.
    """

    reason: str
    place: Source
    source: Source | None
    key: bytes | None
    value: bytes | None
    headers: Headers
    lost_bytes: int | None = None
    lost_digest: str = ""
    at: int = 0
    partition: int = 0
    offset: int = -1


async def bury(sender: Sender, record: Record, reason: str, *, source: Source | None = None) -> int:
    """Put a record on ``dead-letters``, whole where the log takes it; the dead letter's offset.

    As long as it takes: a record that nobody can handle is nowhere until it is there. A log that
    refuses it even without its value takes nothing from us, and is asked again until somebody has
    seen to that; the error log says so.

    Args:
        source: The goal's record, where *record* is another one that came of it.
    """
    while True:
        told = reason
        for written in (write, write_without_value):
            key, value, headers = written(record, told, source=source)
            try:
                return await sender.deliver(
                    DEAD_LETTERS, value, key=key, partition=record.partition, headers=headers
                )
            except RecordRefused as error:
                told = f"{reason}; its value is left out: {error}"
        structlog.get_logger().error(
            "dead_letter_refused",
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            reason=told,
        )
        await asyncio.sleep(REFUSED_S)


def write(
    record: Record, reason: str, *, source: Source | None = None
) -> tuple[bytes, bytes | None, Headers]:
    """Key, value and headers of the dead letter for a record.

    Args:
        source: The goal's record, where *record* is another one that came of it.
    """
    return _key(record), record.value, record.headers + _told(record, reason, source)


def write_without_value(
    record: Record, reason: str, *, source: Source | None = None
) -> tuple[bytes, bytes | None, Headers]:
    """As :func:`write`, for a record that the log does not take again.

    The value's size and digest stand for the value; a key or headers of more than 64 KB are left out.
    """
    value = record.value or b""
    key = _key(record) if len(record.key or b"") <= CARRIED_BYTES else _place(record)
    kept = record.headers if size_of(record.headers) <= CARRIED_BYTES else ()
    lost = ((VALUE_SIZE, b"%d" % len(value)), (VALUE_DIGEST, sha256(value).hexdigest().encode()))
    return key, None, kept + _told(record, reason, source) + lost


def read(record: Record) -> DeadLetter:
    """A dead letter from its record. What someone else put on the topic reads as one without a reason."""
    names = [name for name, _ in record.headers]
    # A dead letter sent again that failed again has ours twice: the last ones are of this time.
    start = len(names) - names[::-1].index(REASON) - 1 if REASON in names else len(names)
    told = {name: (value or b"").decode(errors="replace") for name, value in record.headers[start:]}
    source = None
    if SOURCE_TOPIC in told:
        source = Source(
            topic=told[SOURCE_TOPIC],
            partition=_number(told.get(SOURCE_PARTITION)),
            offset=_number(told.get(SOURCE_OFFSET)),
        )
    return DeadLetter(
        reason=told.get(REASON, ""),
        place=Source(
            topic=told.get(TOPIC, ""),
            partition=_number(told.get(PARTITION)),
            offset=_number(told.get(OFFSET)),
        ),
        source=source,
        key=None if KEY in told else record.key,
        value=record.value,
        headers=record.headers[:start],
        lost_bytes=_number(told[VALUE_SIZE]) if VALUE_SIZE in told else None,
        lost_digest=told.get(VALUE_DIGEST, ""),
        at=record.timestamp,
        partition=record.partition,
        offset=record.offset,
    )


def _told(record: Record, reason: str, source: Source | None) -> Headers:
    told: Headers = (
        (REASON, reason[:REASON_CHARS].encode(errors="replace")),
        (TOPIC, record.topic.encode()),
        (PARTITION, b"%d" % record.partition),
        (OFFSET, b"%d" % record.offset),
        *(((KEY, b"none"),) if record.key is None else ()),
    )
    if source is None or (source.topic, source.partition, source.offset) == (
        record.topic,
        record.partition,
        record.offset,
    ):
        return told
    return (
        *told,
        (SOURCE_TOPIC, source.topic.encode()),
        (SOURCE_PARTITION, b"%d" % source.partition),
        (SOURCE_OFFSET, b"%d" % source.offset),
    )


def _key(record: Record) -> bytes:
    return _place(record) if record.key is None else record.key


def _place(record: Record) -> bytes:
    return f"{record.topic}-{record.partition}-{record.offset}".encode()


def _number(text: str | None) -> int:
    return int(text) if text is not None and _NUMBER.fullmatch(text) else -1


_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")
"""Whatever else stands there, somebody else wrote it."""
