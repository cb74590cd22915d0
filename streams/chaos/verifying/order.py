"""No sub-task begins before its dependencies ended, and each attempt is asked for once."""

from collections.abc import Iterator

from streams.chaos.evidence import Finding
from streams.chaos.verifying.facts import Facts, command_key, place_of, stands
from streams.chaos.verifying.retelling import Told
from streams.log import Record
from streams.topics import SUBTASKS
from streams.wire.commands import read_command, write_command
from streams.wire.envelope import Unreadable


def in_order(facts: Facts, told: Told) -> Iterator[Finding]:
    """Begun, at the endpoint and on the log, only after the events that it waited for."""
    yield from told.early
    for made in facts.calls:
        due = told.commands.get(made.attempt)
        if due is None:
            what = f"called at {made.call.began}, and never asked for"
        elif made.call.began < due.at:
            what = f"called at {made.call.began}, and what it waited for ended at {due.at}"
        else:
            continue
        yield Finding(kind="too_early", where=f"call {made.call.call_id}", what=what)


def commands(facts: Facts, told: Told) -> Iterator[Finding]:
    """Each command is one that the log leads to, word for word, given once and not before it was due.

    And nothing runs without one: not on a command of a transaction that was aborted, say.
    """
    given: dict[bytes, Record] = {}
    stops = {place_of(stop) for each in facts.stops.values() for stop in each}
    for record in facts.records(SUBTASKS):
        key = command_key(record)
        if place_of(record) in stops:
            continue
        due = told.commands.get(key)
        if due is None or not due.is_given_by(record):
            try:
                read_command(record)
            except Unreadable as error:
                if place_of(record) not in facts.buried:
                    what = f"an unreadable command that is no dead letter: {error}"
                    yield Finding(kind="unaccounted", where=stands(record), what=what)
                continue
            what = "its log asks for no such attempt" if due is None else "its log asks for something else"
            yield Finding(kind="command", where=_named(record), what=what)
        elif record.timestamp < due.at:
            what = f"given at {record.timestamp}, and what it waited for ended at {due.at}"
            yield Finding(kind="too_early", where=_named(record), what=what)
        if key in given and not facts.evidence.rebuilt:
            yield Finding(kind="command", where=_named(record), what=f"given before at {stands(given[key])}")
        else:
            given[key] = record
    for key, event in facts.ran.items():
        if key not in given:
            name = key.decode(errors="replace")
            yield Finding(kind="command", where=name, what=f"it ran ({stands(event)}), and was never given")


def stops(facts: Facts, told: Told) -> Iterator[Finding]:
    """What nobody needs any more is stopped, and nothing else is: a stop stands behind what it stops.

    The log does not say which commands were out when their job went on without them, so that a stop of
    one that had not begun is only known by its attempt being over.
    """
    given: dict[bytes, Record] = {}
    for record in facts.records(SUBTASKS):
        given.setdefault(record.key or b"", record)
    for key, each in facts.stops.items():
        over, due = told.over.get(key), told.stops.get(key)
        for record in each:
            if over is None or record.timestamp < over:
                what = (
                    "a stop of an attempt that was needed" if over is None else f"it was needed until {over}"
                )
            elif given[key].offset >= record.offset or key not in told.commands:
                what = "a stop of an attempt that was not out"
            elif due is not None and write_command(due[1]) not in {stop.value for stop in each}:
                what = "its log asks for another stop"
            else:
                continue
            yield Finding(kind="stop", where=_named(record), what=what)
    for key, (event, _) in told.stops.items():
        if key not in facts.stops and place_of(event) not in facts.buried and not facts.evidence.rebuilt:
            name = key.decode(errors="replace")
            yield Finding(
                kind="stop", where=name, what=f"nobody needs it since {stands(event)}, and it goes on"
            )


def _named(record: Record) -> str:
    return f"{(record.key or b'').decode(errors='replace')} at {stands(record)}"
