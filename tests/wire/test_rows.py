"""Rows of the table: what is written is what is read, and nothing else is taken for a row."""

from dataclasses import fields
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.events import JobSubmitted
from streams.core.plan import SubTask
from streams.core.states import Finished, Ready, SubTaskState
from streams.core.values import Usage
from streams.log import Record
from streams.wire.envelope import Unreadable
from streams.wire.rows import (
    AccountRow,
    GoalRow,
    GuestRow,
    JobRow,
    PositionRow,
    Row,
    SubTaskRow,
    read_row,
    write_row,
)
from tests.wire.strategies import I64, JSON, values_of


def whole(cls: type[Any]) -> st.SearchStrategy[Any]:
    """Values of a record with their time and place, which rows keep."""
    return st.builds(
        cls, **{f.name: I64 if f.name in {"at", "offset"} else values_of(f.type) for f in fields(cls)}
    )


STATES = st.one_of(*(whole(cls) for cls in get_args(SubTaskState)))
ROWS: st.SearchStrategy[Row] = st.one_of(
    whole(PositionRow),
    whole(JobRow),
    whole(Finished),
    st.builds(GoalRow, submitted=whole(JobSubmitted)),
    whole(AccountRow),
    whole(GuestRow),
    st.builds(
        SubTaskRow,
        ordinal=I64,
        state=STATES,
        task=st.none() | values_of(SubTask),
        spent=st.none() | values_of(Usage),
    ),
)


def record(value: bytes | None) -> Record:
    """A record of the topic."""
    return Record(topic="jobs", partition=0, offset=0, timestamp=0, key=b"acme/a", value=value)


@given(ROWS)
def test_a_row_is_read_as_it_was_written(row: Row) -> None:
    """Every kind, with every state."""
    assert read_row(record(write_row(row))) == row


@given(st.binary(max_size=40) | JSON.map(orjson.dumps))
def test_what_is_no_row_is_unreadable(value: bytes) -> None:
    """And nothing else is raised: a restore says where it stands."""
    with pytest.raises(Unreadable):
        read_row(record(value))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"v": 2}, "schema version 2 is newer than 1"),
        ({"v": "1"}, "v: should be the version"),
        ({"type": "Spell"}, "'Spell'"),
        ({"is": "Sleeping"}, "'Sleeping'"),
        ({"state": {"attempt": "1"}}, "attempt: "),
        ({"state": None}, "no row of the table"),
        ({"ordinal": "first"}, "valid integer"),
        ({"task": {"id": "a"}}, "goal: "),
    ],
)
def test_a_row_that_is_wrong_says_what_is_wrong(change: dict[str, Any], reason: str) -> None:
    """Rows are ours alone, so a wrong one is a newer version's or a fault."""
    row = SubTaskRow(ordinal=1, state=Ready(), task=SubTask(id="a", goal="x"))
    value = orjson.loads(write_row(row)) | change
    with pytest.raises(Unreadable, match=reason):
        read_row(record(orjson.dumps(value)))
