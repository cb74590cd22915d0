"""Rows of the table that somebody else wrote, or a disk: no job is lost, and no partition stays closed."""

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from streams import dead_letters
from streams.core.commands import Answer
from streams.log import Record
from streams.memory_log.virtual_time import run
from streams.settings import Settings
from streams.topics import ANSWERS, DEAD_LETTERS, JOBS
from streams.wire.rows import POSITION_KEY, PositionRow, SubTaskRow, read_row, write_row
from tests.streams.scripted import Script, chain, flat
from tests.streams.swarm_in_memory import SwarmInMemory

PLANS = {"chain": chain(4), "flat": flat(12)}
TEXT = "a row that is none"

Change = Callable[[bytes], bytes]
"""Turns a row's value into a damaged one."""

POSITION = write_row(PositionRow(offset=3, at=5))
SUB_TASK = (
    b'{"v":1,"type":"SubTaskRow","ordinal":7,"is":"Ready","state":{"attempt":1},'
    b'"task":{"id":"other","goal":"x"}}'
)

DAMAGE: dict[str, Change] = {
    "no JSON": lambda _: b"\xff\x00",
    "nothing": lambda _: b"",
    "another JSON": lambda _: b"[1]",
    "half of it": lambda value: value[: len(value) // 2],
    "another kind": lambda value: value.replace(b'"type":"', b'"type":"No'),
    "a position": lambda value: value if b"PositionRow" in value else POSITION,
    "a sub-task": lambda value: value if b"SubTaskRow" in value else SUB_TASK,
    "a version of none": lambda value: value.replace(b'"v":1', b'"v":"1"'),
    "megabytes": lambda _: b'{"v":1,"type":"' + b"x" * 900_000 + b'"}',
}


class Damaged:
    """Workers on one partition; between two of them the table can be damaged."""

    def __init__(self) -> None:
        self.swarm = SwarmInMemory(script=Script(PLANS), settings=Settings(lanes=1, concurrency=4))
        self.worker = self.swarm.worker()

    def rows(self) -> dict[bytes, Record]:
        """The newest version of every row."""
        newest = {record.key or b"": record for record in self.swarm.cluster.records(JOBS, 0)}
        return {key: record for key, record in newest.items() if record.value is not None}

    def put(self, key: bytes, value: bytes | None) -> None:
        self.swarm.cluster.partition(JOBS, 0).append(key, value, (), self.swarm.cluster.now_ms())

    async def stop(self) -> None:
        self.worker.kill()
        await asyncio.sleep(20)

    def start(self) -> None:
        self.worker = self.swarm.worker()


async def goals(here: Damaged, moment: float) -> None:
    """One job answered, and four under way for so many seconds."""
    await here.swarm.submit({"id": "first", "goal": "1"})
    await here.swarm.answers(1)
    for name in ("chain", "flat", "1", "2"):
        await here.swarm.submit({"id": name, "goal": name})
    await asyncio.sleep(moment)


def plain(answers: dict[str, Answer]) -> dict[str, Any]:
    """What was answered, without times and what attempts cost."""
    return {name: (a.outcome, a.rule, a.value, a.revision) for name, a in answers.items()}


@pytest.fixture(scope="module")
def undamaged() -> dict[str, Any]:
    """What is answered where nothing is damaged."""
    answered: dict[str, Any] = {}

    async def story() -> None:
        here = Damaged()
        await goals(here, 0.5)
        answered.update(plain(await here.swarm.answers(5)))

    run(story())
    return answered


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("moment", [0.4, 1.1])
def test_damaged_rows_are_buried_and_their_jobs_go_on(
    moment: float, every: int, change: Change, undamaged: dict[str, Any]
) -> None:
    """All of them, or each third; every goal has its one answer, the same as without."""

    async def story() -> None:
        here = Damaged()
        await goals(here, moment)
        await here.stop()
        rows = here.rows()
        for number, (key, record) in enumerate(rows.items()):
            assert record.value is not None
            if number % every == 0:
                here.put(key, change(record.value))
        damaged = {record.offset for key, record in here.rows().items() if record.value != rows[key].value}
        with capture_logs():
            here.start()
            assert plain(await here.swarm.answers(5)) == undamaged
            letters = [dead_letters.read(record) for record in await here.swarm.records(DEAD_LETTERS)]
            assert {letter.place.offset for letter in letters if letter.place.topic == JOBS} <= damaged
            assert len(letters) == len({letter.place.offset for letter in letters})
            await here.swarm.submit({"id": "first", "goal": "1"})  # a redelivered goal is the same job
            await here.swarm.submit({"id": "last", "goal": "1"})
            assert len(await here.swarm.answers(6)) == 6
        for record in here.rows().values():
            read_row(record)

    run(story())


def test_a_row_that_is_missing_is_made_anew(undamaged: dict[str, Any]) -> None:
    """Without a sub-task's row the job would end without it, and look whole."""

    async def story() -> None:
        here = Damaged()
        await goals(here, 0.4)
        await here.stop()
        gone = [key for key, record in here.rows().items() if isinstance(read_row(record), SubTaskRow)]
        for key in gone[::2]:
            here.put(key, None)
        here.start()
        assert plain(await here.swarm.answers(5)) == undamaged

    run(story())


STRANGE: dict[str, bytes] = {
    "no UTF-8": b"\xff\xfe",
    "nothing": b"",
    "no job": b"something",
    "too deep": b"a/b/c/d",
    "a megabyte": b"k" * 900_000,
}


@pytest.mark.parametrize("key", STRANGE.values(), ids=STRANGE)
def test_rows_under_no_key_of_ours_are_buried(key: bytes, undamaged: dict[str, Any]) -> None:
    """Whether they would be rows or not."""

    async def story() -> None:
        here = Damaged()
        await goals(here, 0.4)
        await here.stop()
        here.put(key, SUB_TASK)
        here.start()
        assert plain(await here.swarm.answers(5)) == undamaged
        (letter,) = [dead_letters.read(record) for record in await here.swarm.records(DEAD_LETTERS)]
        assert (letter.key, letter.value) == (key, SUB_TASK)
        assert key not in here.rows()

    run(story())


def test_a_job_of_which_nothing_is_left_is_answered_with_the_reason(undamaged: dict[str, Any]) -> None:
    """Its row cannot be read, and its beginning is past the log's retention."""

    async def story() -> None:
        here = Damaged()
        await goals(here, 0.4)
        await here.stop()
        here.put(b"default/long-ago/@goal", TEXT.encode())
        here.start()
        answers = await here.swarm.answers(6)
        assert (answers["long-ago"].outcome, answers["long-ago"].rule) == ("rejected", "rejected")
        assert "past the retention" in answers["long-ago"].reason
        assert plain({name: a for name, a in answers.items() if name != "long-ago"}) == undamaged

    run(story())


def test_rows_of_a_later_version_are_left_alone(undamaged: dict[str, Any]) -> None:
    """A program of before must not go on from them, nor write over them; the later one goes on."""

    async def story() -> None:
        here = Damaged()
        await goals(here, 0.4)
        await here.stop()
        key, record = next(
            (key, record) for key, record in here.rows().items() if key != POSITION_KEY.encode()
        )
        assert record.value is not None
        here.put(key, orjson.dumps(orjson.loads(record.value) | {"v": 2}))
        before = here.rows()
        with capture_logs() as lines:
            here.start()
            await asyncio.sleep(120)
        assert here.rows() == before
        assert "owner_failed" in {line["event"] for line in lines}
        assert len(await here.swarm.records(ANSWERS)) == 1
        here.put(key, record.value)  # as the later program would have read it
        assert plain(await here.swarm.answers(5)) == undamaged

    run(story())
