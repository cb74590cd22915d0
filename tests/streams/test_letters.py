"""Finding dead letters: by what they are and by what became of them."""

import asyncio
from typing import Any

import orjson
import pytest

from streams import dead_letters
from streams.core.goal import Source
from streams.delivery import Sender
from streams.letters import Letter, Wanted, at, find, letter_of, those
from streams.log import Record
from streams.memory_log import MemoryCluster, MemoryLog
from streams.memory_log.virtual_time import run
from streams.redriving import NotDone, drop, redrive
from streams.topics import DEAD_LETTERS, GOALS, JOB_EVENTS, JOBS, SUBTASKS
from streams.wire.marks import MARK, Dropped, is_mark, write_mark

LANES = 3
GOAL = orjson.dumps({"id": "g", "gaol": "x"})
BURIED = (
    (Record(GOALS, 0, 7, 0, None, GOAL), "field `gaol`"),
    (Record(GOALS, 2, 8, 0, b"k", b"\xff"), "no UTF-8"),
    (Record(SUBTASKS, 1, 3, 0, b"acme/a/t1/2", b"{}"), "v: version 2 is NEWER"),
    (Record(JOB_EVENTS, 2, 5, 0, b"acme/a", b"{}"), "type: unknown"),
)


async def buried() -> tuple[MemoryLog, list[Letter]]:
    """A log with these dead letters, ten seconds apart, and the last of them dropped."""
    topics = dict.fromkeys((GOALS, SUBTASKS, JOB_EVENTS, JOBS, DEAD_LETTERS), LANES)
    log = MemoryCluster(topics).connect("operator")
    sender = Sender(log.producer)
    for record, reason in BURIED:
        await dead_letters.bury(sender, record, reason)
        await asyncio.sleep(10)
    found = await find(log, range(LANES), Wanted())
    async for _ in drop(log, found[3:], reason="done", by="ada"):
        pass
    return log, found


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        ({}, [0, 1, 2]),
        ({"lot": None}, [0, 1, 2, 3]),
        ({"lot": "dropped"}, [3]),
        ({"lot": "redriven"}, []),
        ({"topic": GOALS}, [0, 1]),
        ({"topic": GOALS, "partition": 2}, [1]),
        ({"partition": 0}, [0]),
        ({"job": "default/g"}, [0]),
        ({"job": "acme/a", "lot": None}, [2, 3]),
        ({"key": "k"}, [1]),
        ({"key": "acme/a/t1/2"}, [2]),
        ({"reason": "newer"}, [2]),
        ({"reason": "NO utf"}, [1]),
    ],
)
def test_filters(wanted: dict[str, Any], places: list[int]) -> None:
    """Each by itself, and together."""

    async def story() -> None:
        log, all_of_them = await buried()
        found = await find(log, range(LANES), Wanted(**wanted))
        assert [letter.place for letter in found] == [all_of_them[n].place for n in places]

    run(story())


def test_times() -> None:
    """From and until; a mark that came later is seen all the same."""

    async def story() -> None:
        log, all_of_them = await buried()
        times = [letter.dead.at for letter in all_of_them]
        found = await find(log, range(LANES), Wanted(since=times[1], until=times[3], lot=None))
        assert [letter.dead.at for letter in found] == times[1:3]
        (last,) = await find(log, range(LANES), Wanted(since=times[3], lot=None))
        assert last.lot == "dropped"

    run(story())


def test_one_is_shown_whole_and_many_without_their_values() -> None:
    """With its place, which is on the partition of its original, and what became of it."""

    async def story() -> None:
        log, all_of_them = await buried()
        for letter, (record, reason) in zip(all_of_them, BURIED, strict=True):
            assert letter.place[0] == record.partition
            assert letter.dead.value is None
            assert letter.size == len(record.value or b"")
            shown = await at(log, letter.place)
            assert shown is not None
            assert (shown.dead.key, shown.dead.value) == (record.key, record.value)
            assert (shown.dead.reason, shown.dead.place.offset) == (reason, record.offset)
        dropped = await at(log, all_of_them[3].place)
        assert dropped is not None
        assert isinstance(dropped.mark, Dropped)
        assert await at(log, (0, 99)) is None
        some = await those(log, LANES, [all_of_them[3].place, all_of_them[0].place, (0, 99), (7, 0)])
        assert {letter.place: letter.lot for letter in some} == {
            all_of_them[0].place: "waiting",
            all_of_them[3].place: "dropped",
        }

    run(story())


def test_what_others_put_there_is_no_mark() -> None:
    """A goal with our header on it, one that says it is a mark, and one that says nothing."""

    async def story() -> None:
        log, _ = await buried()
        sender = Sender(log.producer)
        value, headers = write_mark(Dropped(letter=0, by="nobody"))
        await dead_letters.bury(sender, Record(GOALS, 0, 9, 0, None, value, headers), "a goal")
        await sender.deliver(DEAD_LETTERS, b"{}", key=b"", partition=0, headers=((MARK, b"Dropped"),))
        await sender.deliver(DEAD_LETTERS, b"x", key=b"", partition=0)
        found = await find(log, [0], Wanted())
        assert [letter.dead.reason for letter in found] == ["field `gaol`", "a goal", ""]
        outcomes = [each async for each in redrive(log, found[2:], lanes=LANES, by="ada")]
        assert [type(each) for each in outcomes] == [NotDone]

    run(story())


def test_a_letter_of_a_letter_is_none() -> None:
    """A dead letter never looks like a mark: what we say on it is more than one header."""
    record = Record(GOALS, 0, 9, 0, None, b"", ((MARK, b"Dropped"),))
    key, value, headers = dead_letters.write(record, "r")
    written = Record(DEAD_LETTERS, 0, 0, 0, key, value, headers)
    assert not is_mark(written)
    letter = letter_of(dead_letters.read(written))
    assert letter.dead.headers == record.headers
    assert letter.dead.place == Source(topic=GOALS, partition=0, offset=9)
