"""Rows of the aggregation table as JSON: a row a job, a row its goal, a row a sub-task, our position.

Keys: ``tenant/id`` the job's counters, or its marker once it is finished; ``tenant/id/@goal`` the
event that opened it; ``tenant/id/task`` a sub-task; ``tenant/id/@note:topic`` a shared note;
``tenant/@account`` a tenant's account, and ``tenant/@account/id`` a job that has a place there or waits
for one; ``@position`` how far the log has been folded.
No id has an ``@``, so the keys cannot meet.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

import orjson
from pydantic_core import SchemaValidator, ValidationError

from streams.core.events import JobSubmitted
from streams.core.guests import Guest
from streams.core.plan import SubTask
from streams.core.states import (
    FIRST,
    UNDECIDED,
    Backoff,
    Decided,
    Failed,
    Finished,
    Hedged,
    Lost,
    Note,
    Ready,
    Released,
    Revision,
    Running,
    Skipped,
    Step,
    Stopped,
    SubTaskState,
    Succeeded,
    Suspended,
    Waiting,
)
from streams.core.values import Grant, Usage
from streams.log import Record
from streams.wire.envelope import VERSION, Unreadable, check_version, why
from streams.wire.models import model_of

POSITION_KEY: Final = "@position"
GOAL_ROW: Final = "@goal"
NOTE_ROW: Final = "@note:"


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
        decided: What its rules have decided.
    """

    usage: Usage
    nodes: int | None = None
    lost: tuple[Lost, ...] = ()
    need: Grant | None = None
    decided: Decided = UNDECIDED


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalRow:
    """The event that opened a job, ``at`` and ``offset`` as the log gave them, and its revision."""

    submitted: JobSubmitted
    revision: Revision = FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class SubTaskRow:
    """A sub-task; ``task`` is None where no plan holds it: for ``plan``, ``answer`` and each *step*.

    Attributes:
        spent: What it has spent, where its goal limits that.
    """

    ordinal: int
    state: SubTaskState
    task: SubTask | None = None
    step: Step | None = None
    spent: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRow:
    """A shared note of a job."""

    note: Note


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """A tenant's account, but for its guests: as of :class:`streams.core.states.Account`.

    Attributes:
        guests: How many there are, each with a row of its own.
    """

    day: int
    spent: Usage
    jobs: int | None
    limit: Grant | None
    told_at: int
    turns: int
    guests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestRow:
    """A job at its tenant's account."""

    guest: Guest


Row: TypeAlias = PositionRow | JobRow | GoalRow | SubTaskRow | NoteRow | AccountRow | GuestRow | Finished

_STATES: Final = {
    kind.__name__: SchemaValidator(model_of(kind))
    for kind in (
        Waiting,
        Ready,
        Backoff,
        Released,
        Running,
        Suspended,
        Hedged,
        Succeeded,
        Failed,
        Skipped,
        Stopped,
    )
}
_ROWS: Final = {
    kind.__name__: SchemaValidator(model_of(kind))
    for kind in (PositionRow, JobRow, GoalRow, NoteRow, AccountRow, GuestRow, Finished)
}
_ORDINAL: Final = SchemaValidator(model_of(int))
_TASK: Final = SchemaValidator(model_of(SubTask))
_STEP: Final = SchemaValidator(model_of(Step))
_SPENT: Final = SchemaValidator(model_of(Usage))


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
            | ({} if row.step is None else {"step": row.step})
            | ({} if row.spent is None else {"spent": row.spent})
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
            task, step, spent = data["task"], data.get("step"), data.get("spent")
            return SubTaskRow(
                ordinal=_ORDINAL.validate_python(data["ordinal"]),
                state=_STATES[data["is"]].validate_python(data["state"]),
                task=None if task is None else _TASK.validate_python(task),
                step=None if step is None else _STEP.validate_python(step),
                spent=None if spent is None else _SPENT.validate_python(spent),
            )
        row: Row = _ROWS[data["type"]].validate_python(data["row"])
    except ValidationError as error:
        raise Unreadable(f"no row of the table: {why(error)}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"no row of the table: {repr(error)[:200]}") from error
    return row
