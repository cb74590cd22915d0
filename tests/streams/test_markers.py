"""Markers of finished jobs: read as they were written, small, and there as long as anybody may ask."""

import asyncio
import gc
import tracemalloc
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.events import JobSubmitted
from streams.core.goal import Goal, Source
from streams.core.job import absorb
from streams.core.states import Finished, New, Open
from streams.core.values import Inline
from streams.log import Record
from streams.markers import KEPT_MS, Markers
from streams.memory_log import MemoryCluster
from streams.memory_log.virtual_time import run
from streams.table import Table
from streams.topics import JOBS
from streams.wire.envelope import Unreadable
from streams.wire.markers import pack, packed_row, unpack
from streams.wire.rows import POSITION_KEY, PositionRow, Row, write_row

NOW = 1_800_000_000_000
DIGEST = "ab" * 32
MARKER = Finished(digest=DIGEST, outcome="succeeded", offset=12_345_678, at=NOW)
MARKERS = st.builds(
    Finished,
    digest=st.text(max_size=5) | st.just(DIGEST),
    outcome=st.sampled_from(("succeeded", "partial", "failed", "rejected")),
    offset=st.integers(-1, 2**63 - 1),
    at=st.integers(0, 2**63 - 1),
    revision=st.integers(1, 100),
)


@given(MARKERS)
def test_a_packed_marker_is_the_marker(marker: Finished) -> None:
    """By way of its row, too, where that is an ordinary one."""
    assert unpack(pack(marker)) == marker
    assert packed_row(write_row(marker)) in {pack(marker), None}


def test_ordinary_rows_are_packed_and_no_others() -> None:
    """What is none of ours, or of another version, goes the long way, which says what is wrong."""
    value = write_row(MARKER)
    assert packed_row(value) == pack(MARKER)
    row = orjson.loads(value)
    for change in ({"v": 2}, {"type": "JobRow"}, {"more": 1}):
        assert packed_row(orjson.dumps(row | change)) is None
    for change in ({"outcome": "odd"}, {"offset": "1"}, {"at": -1}, {"digest": 5}, {"digest": "\x00"}):
        assert packed_row(orjson.dumps(row | {"row": row["row"] | change})) is None
    assert packed_row(value[:-1]) is None
    assert packed_row(b" " + value) is None


def submitted(job: str) -> JobSubmitted:
    goal = Goal(text=Inline(value="x"), digest=DIGEST)
    return JobSubmitted(job=job, goal=goal, source=Source(topic="goals", partition=0, offset=0), at=NOW)


def test_a_finished_job_is_found_however_long_ago_it_finished() -> None:
    """Before and after its commit, and once it is open again only as that."""
    table = Table()
    table["t/1"], _ = absorb(New(), submitted("t/1"))
    table["t/1"] = MARKER
    assert (table["t/1"], table.finished) == (MARKER, 1)
    assert [key for key, _ in table.changes()] == ["t/1"]
    table.committed()
    assert (table["t/1"], table.finished, list(table.changes())) == (MARKER, 1, [])
    opened, _ = absorb(New(), submitted("t/1"))
    table["t/1"] = opened
    assert isinstance(table["t/1"], Open)
    assert table.finished == 0
    table.committed()
    assert list(table.open_jobs()) == [opened]
    table["t/1"] = replace(MARKER, revision=2)
    table.committed()
    assert (Table.__getitem__(table, "t/1"), table.finished) == (replace(MARKER, revision=2), 1)


def test_the_oldest_go_once_there_are_too_many_and_nothing_else_knows_of_them() -> None:
    """Those that finished again stay with the youngest."""
    markers = Markers(kept=2)
    for number in range(6):
        markers.put(f"t/{number}", replace(MARKER, at=NOW + number))
    markers.put("t/0", replace(MARKER, at=NOW + 6))
    assert not list(markers.outlived(NOW + KEPT_MS + 1))
    assert list(markers.outlived(NOW + KEPT_MS + 3)) == ["t/1", "t/2"]
    assert list(markers.outlived(NOW + 10 * KEPT_MS)) == ["t/1", "t/2", "t/3", "t/4"]
    for job in list(markers.outlived(NOW + 10 * KEPT_MS)):
        markers.discard(job)
    assert list(markers) == ["t/5", "t/0"]
    assert not list(markers.outlived(NOW + 10 * KEPT_MS))


def test_a_marker_that_has_outlived_its_use_is_deleted_with_the_next_commit() -> None:
    """In memory not before that: the transaction may fail."""
    table = Table()
    table._markers = Markers(kept=1)
    for number in range(3):
        table[f"t/{number}"] = MARKER
    table.committed()
    table.position, table.at = 7, NOW + KEPT_MS + 1
    deleted = [("t/0", None), ("t/1", None), (POSITION_KEY, PositionRow(offset=7, at=table.at))]
    assert list(table.changes()) == deleted
    assert list(table.changes()) == deleted
    assert table.finished == 3
    table.committed()
    assert [table[f"t/{number}"] for number in range(3)] == [New(), New(), MARKER]
    assert [key for key, _ in table.changes()] == [POSITION_KEY]


async def restored(*rows: tuple[str, Row | bytes | None]) -> Table:
    """A table whose topic has these records."""
    log = MemoryCluster({JOBS: 1}).connect("worker")
    for key, row in rows:
        value = row if row is None or isinstance(row, bytes) else write_row(row)
        await (await log.producer.send(JOBS, value, key=key.encode("latin-1"), partition=0))
    async with asyncio.timeout(10):
        return await Table.restore(log, 0)


POSITION = (POSITION_KEY, PositionRow(offset=5, at=NOW))


def test_a_restore_looks_only_at_the_newest_version_of_a_row() -> None:
    """What is superseded costs its reading from the log, and no more: it may say what it will."""
    odd = replace(MARKER, digest='it\'s "odd"')
    rows = (("t/1", b"\xff"), ("t/2", b"?"), ("t/2", None), ("t/1", MARKER), ("t/3", odd), POSITION)
    table = run(restored(*rows))
    assert (table["t/1"], table["t/2"], table["t/3"], table.finished) == (MARKER, New(), odd, 2)
    assert (table.position, table.at) == (5, NOW)


def test_a_row_of_a_later_version_stops_a_restore() -> None:
    """To go on without it could lose a job."""
    with pytest.raises(Unreadable, match="version"):
        run(restored(("t/1", b'{"v":2,"type":"Finished","row":{}}'), POSITION))


@pytest.mark.parametrize("restored", [False, True])
def test_a_finished_job_costs_three_hundred_bytes(*, restored: bool) -> None:
    """Name, marker and its place among them; measured over 5,000."""
    records = [
        Record(JOBS, 0, n, NOW, b"", write_row(replace(MARKER, offset=n + 10**6, at=NOW + n)))
        for n in range(5_000)
    ]
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        markers = Markers()
        for number, record in enumerate(records):
            if restored:
                packed = packed_row(record.value or b"")
                assert packed is not None
                markers.put_packed(f"default/{number:032x}", packed)
            else:
                markers.put(f"default/{number:032x}", replace(MARKER, offset=record.offset + 10**6))
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / len(markers) < 320
