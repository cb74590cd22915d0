"""Committed offsets never pass unfinished work."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from math import inf
from typing import Final

from streams.chaos.evidence import Committed, Evidence, Finding
from streams.chaos.verifying.facts import Facts, command_key, is_stop, place_of, stands
from streams.chaos.verifying.retelling import Told
from streams.log import Record
from streams.topics import GOALS, JOB_EVENTS, JOBS, SUBTASKS
from streams.wire.envelope import Unreadable
from streams.wire.rows import POSITION_KEY, PositionRow, read_row

TOLERANCE_MS: Final = 2
"""Milliseconds by which two times of one clock may be apart after they were rounded."""

Finished = tuple[Record, float, str]
"""A record, when the last of it was done (never: infinity), and what is missing, for a person."""


def commits(facts: Facts, told: Told) -> Iterator[Finding]:
    """What a group said is done was done at that time."""
    yield from _passed(facts.evidence, "agents", GOALS, _goals(facts))
    yield from _passed(facts.evidence, "agents", SUBTASKS, _commands(facts, told))
    yield from _folded(facts)


def _goals(facts: Facts) -> Iterator[Finished]:
    for record in (*(record for record, _ in facts.goals), *facts.words):
        place = place_of(record)
        # When a dead letter was written its writer says, whose clock may be any: it is there or not.
        done = facts.opened.get(place, 0 if place in facts.buried else inf)
        yield record, done, "it led to no event and to no dead letter"


def _commands(facts: Facts, told: Told) -> Iterator[Finished]:
    for record in facts.records(SUBTASKS):
        key = command_key(record)
        # An attempt that its job no longer waits for may be done with as well as one that has ended.
        done = min(facts.ends.get(record.key or b"", inf), told.over.get(key, inf))
        if is_stop(record) or (done == inf and place_of(record) in facts.buried):
            done = 0  # a stop is done once it is heard
        yield record, done, f"attempt {key.decode(errors='replace')} has no end"


def _passed(evidence: Evidence, group: str, topic: str, work: Iterable[Finished]) -> Iterator[Finding]:
    """The looks that passed what was not done at their time; of each partition the first one."""
    places: dict[int, list[Finished]] = {}
    for item in work:
        places.setdefault(item[0].partition, []).append(item)
    latest: dict[int, list[tuple[int, float, int]]] = {}
    for partition, items in places.items():
        items.sort(key=lambda item: item[0].offset)
        longest: list[tuple[int, float, int]] = []
        worst, which = -inf, 0
        for index, (record, done, _) in enumerate(items):
            if done > worst:
                worst, which = done, index
            longest.append((record.offset, worst, which))
        latest[partition] = longest
    told: set[int] = set()
    for look in sorted(_looks(evidence, group, topic), key=lambda look: look.at):
        longest = latest.get(look.partition, [])
        below = bisect_left(longest, (look.offset, -inf, 0))
        if below == 0 or longest[below - 1][1] <= look.at + TOLERANCE_MS or look.partition in told:
            continue
        told.add(look.partition)
        record, done, missing = places[look.partition][longest[below - 1][2]]
        what = missing if done == inf else f"what came of it was on the log at {done:.0f}"
        yield Finding(kind="committed_early", where=_of(look), what=f"{stands(record)} was not done: {what}")


def _folded(facts: Facts) -> Iterator[Finding]:
    """The orchestrator says of no event that it is done before its table covers it."""
    if facts.evidence.rebuilt:
        return  # the rows of before are gone
    positions: dict[int, list[tuple[int, int]]] = {}
    for record in facts.records(JOBS):
        if record.key == POSITION_KEY.encode() and record.value is not None:
            try:
                row = read_row(record)
            except Unreadable:
                continue
            if isinstance(row, PositionRow):
                positions.setdefault(record.partition, []).append((row.offset, record.timestamp))
    told: set[int] = set()
    for look in _looks(facts.evidence, "orchestrator", JOB_EVENTS):
        rows = positions.get(look.partition, [])
        covers = [at for offset, at in rows if offset >= look.offset]
        early = not facts.evidence.clocks_apart and covers and min(covers) > look.at + TOLERANCE_MS
        if look.offset > 0 and (not covers or early) and look.partition not in told:
            told.add(look.partition)
            what = f"its table covered that at {min(covers)}" if covers else "its table never covered that"
            yield Finding(kind="committed_early", where=_of(look), what=what)


def _looks(evidence: Evidence, group: str, topic: str) -> Iterator[Committed]:
    return (look for look in evidence.committed if (look.group, look.topic) == (group, topic))


def _of(look: Committed) -> str:
    return f"{look.group} {look.topic}[{look.partition}] up to {look.offset}, said at {look.at}"
