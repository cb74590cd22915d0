"""The log folds to the table's rows, byte for byte."""

from collections.abc import Iterator, Mapping
from typing import Final

from streams.chaos.evidence import Finding
from streams.chaos.verifying.facts import Facts
from streams.chaos.verifying.retelling import Folded, Told
from streams.core.states import New, Ready, Released
from streams.log import Record
from streams.table import difference
from streams.topics import JOBS
from streams.wire.envelope import Unreadable
from streams.wire.rows import POSITION_KEY, PositionRow, Row, SubTaskRow, read_row, write_row

NOTHING: Final = Folded(jobs={}, position=None, at=0, end=0)
_SHOWN: Final = 200


def rows_as_folded(facts: Facts, told: Told) -> Iterator[Finding]:
    """The newest version of each row is what the log leads to up to the table's own position."""
    stand: dict[int, dict[bytes, Record]] = {}
    for record in facts.records(JOBS):
        rows = stand.setdefault(record.partition, {})
        if record.value is None:
            rows.pop(record.key or b"", None)
        else:
            rows[record.key or b""] = record
    for partition in sorted({*stand, *told.partitions}):
        folded = told.partitions.get(partition, NOTHING)
        if folded.position is None and folded.end:
            what = f"it does not say up to where it is folded, and its log has {folded.end} events"
            yield Finding(kind="rows_differ", where=f"{JOBS}[{partition}]", what=what)
        elif folded.position is not None and folded.position > folded.end:
            what = f"folded up to {folded.position}, and its log ends at {folded.end}"
            yield Finding(kind="rows_differ", where=f"{JOBS}[{partition}]", what=what)
        yield from _compare(partition, stand.get(partition, {}), folded)


def _compare(partition: int, stand: Mapping[bytes, Record], folded: Folded) -> Iterator[Finding]:
    wanted = _rows(folded)
    for key in sorted({*stand, *wanted}):
        record, row = stand.get(key), wanted.get(key)
        value = None if record is None else record.value
        written = None if row is None else write_row(row)
        if value == written or (record is not None and row is not None and _released(row, record)):
            continue
        where = f"{JOBS}[{partition}] {key.decode(errors='replace')}"
        yield Finding(
            kind="rows_differ", where=where, what=f"stands {_shown(value)}, its log says {_shown(written)}"
        )


def _rows(folded: Folded) -> dict[bytes, Row]:
    new = New()
    rows = {
        name.encode(): row
        for job, state in folded.jobs.items()
        for name, row in difference(job, new, state)
        if row is not None
    }
    if folded.position is not None:
        rows[POSITION_KEY.encode()] = PositionRow(offset=folded.position, at=folded.at)
    return rows


def _released(row: Row, record: Record) -> bool:
    """Whether they differ in what the log does not tell: that the attempt was let go, and when."""
    if not isinstance(row, SubTaskRow) or not isinstance(row.state, Ready):
        return False
    try:
        stands = read_row(record)
    except Unreadable:
        return False
    return (
        isinstance(stands, SubTaskRow)
        and isinstance(stands.state, Released)
        and (stands.ordinal, stands.task) == (row.ordinal, row.task)
        and (stands.state.attempt, stands.state.grant) == (row.state.attempt, row.state.grant)
    )


def _shown(value: bytes | None) -> str:
    return "nothing" if value is None else value[:_SHOWN].decode(errors="replace")
