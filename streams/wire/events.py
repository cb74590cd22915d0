"""Events: the records of ``job-events``."""

from streams.core.events import EVENT_TYPES, Event
from streams.log import Record
from streams.wire.envelope import Kinds

EVENTS: Kinds[Event] = Kinds(EVENT_TYPES, depth=110, placed=True)


def read_event(record: Record) -> Event:
    """The event of a record, with the time and place at which it stands on the log.

    Raises:
        Unreadable: the record is no event that this version knows.
    """
    return EVENTS.read(record)


def write_event(event: Event) -> bytes:
    """The JSON of an event, without its time and place.

    Raises:
        Unwritable: a part of it has no JSON.
    """
    return EVENTS.write(event)
