"""Rows of the aggregation table as JSON: a row a job, a row its goal, a row a sub-task, our position.

Keys: ``tenant/id`` the job's counters, or its marker once it is finished; ``tenant/id/@goal`` the
event that opened it; ``tenant/id/task`` a sub-task; ``@position`` how far the log has been folded.
No id has an ``@``, so the keys cannot meet.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

import orjson
from pydantic_core import SchemaValidator, ValidationError

from streams.core.events import JobSubmitted
from streams.core.plan import SubTask
from streams.core.states import (
    FIRST,
    Backoff,
    Failed,
    Finished,
    Lost,
    Ready,
    Released,
    Revision,
    Running,
    Skipped,
    SubTaskState,
    Succeeded,
    Waiting,
)
from streams.core.values import Grant, Usage
from streams.log import Record
from streams.wire.envelope import VERSION, Unreadable, check_version, why
from streams.wire.models import model_of

POSITION_KEY: Final = "@position"
GOAL_ROW: Final = "@goal"


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionRow:
    """How far the log is folded into the table: the next event's offset, and the last one's time (ms)."""

    offset: int
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job under way. All else follows from its other rows.

    Attributes:
        usage: What it has spent.
        nodes: How many sub-tasks its plan has, each with a row of its own; 0 before there is a plan,
            None in rows of before it was kept.
        lost: Attempts that never told what they spent.
        need: What a further attempt is likely to need.
    """

    usage: Usage
    nodes: int | None = None
    lost: tuple[Lost, ...] = ()
    need: Grant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalRow:
    """The event that opened a job, ``at`` and ``offset`` as the log gave them, and its revision."""

    submitted: JobSubmitted
    revision: Revision = FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class SubTaskRow:
    """A sub-task; ``task`` is None for ``plan`` and ``answer``, which no plan holds."""

    ordinal: int
    state: SubTaskState
    task: SubTask | None = None


Row: TypeAlias = PositionRow | JobRow | GoalRow | SubTaskRow | Finished

_STATES: Final = {
    kind.__name__: SchemaValidator(model_of(kind))
    for kind in (Waiting, Ready, Backoff, Released, Running, Succeeded, Failed, Skipped)
}
_ROWS: Final = {
    kind.__name__: SchemaValidator(model_of(kind)) for kind in (PositionRow, JobRow, GoalRow, Finished)
}
_ORDINAL: Final = SchemaValidator(model_of(int))
_TASK: Final = SchemaValidator(model_of(SubTask))


def write_row(row: Row) -> bytes:
    """A row as it stands on the topic."""
    if isinstance(row, SubTaskRow):
        return orjson.dumps(
            {
                "v": VERSION,
                "type": "SubTaskRow",
                "ordinal": row.ordinal,
                "is": type(row.state).__name__,
                "state": row.state,
                "task": row.task,
            }
        )
    return orjson.dumps({"v": VERSION, "type": type(row).__name__, "row": row})


def read_row(record: Record) -> Row:
    """A row from its record.

    Raises:
        NewerVersion, Unreadable: as of :func:`parse_row`.
    """
    return parse_row(record.value or b"")


def parse_row(value: bytes) -> Row:
    """A row from its record's value.

    Raises:
        NewerVersion: a program of a later version wrote it.
        Unreadable: it is no row.
    """
    try:
        data = orjson.loads(value)
        check_version(data["v"], data["type"])
        if data["type"] == "SubTaskRow":
            task = data["task"]
            return SubTaskRow(
                ordinal=_ORDINAL.validate_python(data["ordinal"]),
                state=_STATES[data["is"]].validate_python(data["state"]),
                task=None if task is None else _TASK.validate_python(task),
            )
        row: Row = _ROWS[data["type"]].validate_python(data["row"])
    except ValidationError as error:
        raise Unreadable(f"no row of the table: {why(error)}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"no row of the table: {repr(error)[:200]}") from error
    return row
