"""Events: the records of ``job-events``."""

from typing import Final

from streams.core.events import EVENT_TYPES, Event, JobReopened, SubTaskSucceeded
from streams.core.values import Inline
from streams.log import Record
from streams.wire.envelope import Kinds, Unreadable

EVENTS: Kinds[Event] = Kinds(EVENT_TYPES, depth=110, placed=True)

BESIDE_BYTES: Final = 8_192
"""Bytes that an event has beside its result; a thousand do today."""


def read_event(record: Record) -> Event:
    """The event of a record, with the time and place at which it stands on the log.

    Raises:
        NewerVersion: a program of a later version wrote it.
        Unreadable: the record is no event, or contradicts itself.
    """
    event = EVENTS.read(record)
    # Readers look for a job's events by their key, and must not see another life than the fold.
    if record.key != event.job.encode():
        raise Unreadable(f"key: should be the job, {event.job}")
    match event:
        case SubTaskSucceeded(result=Inline(), size=size) if len(record.value or b"") > size + BESIDE_BYTES:
            # What fits into a command is reckoned from the size.
            raise Unreadable(f"size: says {size} bytes, the event has {len(record.value or b'')}")
        case JobReopened(submitted=submitted, job=job) if submitted.job != job:
            raise Unreadable(f"submitted.job: should be {job}")
        case _:
            return event


def write_event(event: Event) -> bytes:
    """The JSON of an event, without its time and place.

    Raises:
        Unwritable: a part of it has no JSON.
    """
    return EVENTS.write(event)
