"""Rows that cannot be read, or cannot all be true: which jobs they belong to, and why."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from streams.core.plan import SubTask
from streams.core.states import Finished, Open, Succeeded, Waiting
from streams.core.values import ACCOUNT, ANSWER, PLAN, STEP, JobId
from streams.wire.bounds import NAME
from streams.wire.rows import (
    GOAL_ROW,
    NOTE_ROW,
    POSITION_KEY,
    AccountRow,
    GoalRow,
    GuestRow,
    JobRow,
    NoteRow,
    PositionRow,
    Row,
    SubTaskRow,
)

_KEY: Final = re.compile(rf"({NAME}/(?:{NAME}|{ACCOUNT}))(?:/({NAME}|{GOAL_ROW}|{NOTE_ROW}.+))?", re.DOTALL)


@dataclass(slots=True)
class Damage:
    """What is wrong with the rows of a partition.

    Attributes:
        reasons: Why, by the row's key (bytes that are no UTF-8 as Python's surrogate escapes).
        jobs: Jobs of which a row is damaged: the rest of their rows are worth no more.
    """

    reasons: dict[str, str] = field(default_factory=dict)
    jobs: set[JobId] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.reasons)

    def note(self, key: str, reason: str) -> None:
        """A row is damaged."""
        self.reasons[key] = reason
        if (job := job_of(key)) is not None:
            self.jobs.add(job)


def job_of(key: str) -> JobId | None:
    """The job or account whose row has this key; None where it can be nobody's."""
    found = _KEY.fullmatch(key)
    return None if found is None else found[1]


def is_account(key: JobId) -> bool:
    """Whether this is the key of an account, and of no job."""
    return key.endswith(f"/{ACCOUNT}")


def misplaced(key: str, row: Row) -> str:
    """Why this row cannot stand under this key; empty where it can."""
    found = _KEY.fullmatch(key)
    below = found[2] if found else None
    right = False
    if found is not None and is_account(found[1]):
        match row:
            case AccountRow():
                right = below is None
            case GuestRow(guest=guest):
                right = below is not None and guest.job == f"{found[1].partition('/')[0]}/{below}"
            case _:
                pass
        return "" if right else f"no {type(row).__name__} stands under the key {key[:100]!r}"
    match row:
        case AccountRow() | GuestRow():
            pass
        case PositionRow():
            right = key == POSITION_KEY
        case JobRow() | Finished():
            right = found is not None and below is None
        case GoalRow(submitted=submitted):
            right = found is not None and below == GOAL_ROW and found[1] == submitted.job
        case NoteRow(note=note):
            right = below == f"{NOTE_ROW}{note.topic}"
        case SubTaskRow(task=None, step=step):
            right = below is not None and (below.startswith(STEP) if step else below in (PLAN, ANSWER))
        case SubTaskRow(task=SubTask(id=task)):
            right = below == task
    return "" if right else f"no {type(row).__name__} stands under the key {key[:100]!r}"


def untrue(job: Open, nodes: int | None) -> str:
    """Why a job read from its rows cannot be as they say: one of them is missing, or of another time.

    Args:
        nodes: How many sub-tasks its plan has, where that is known.
    """
    ordinals = sorted(node.ordinal for node in job.nodes.values())
    if ordinals != list(range(1, len(ordinals) + 1)) or nodes not in (None, len(ordinals)):
        return "the rows of its sub-tasks are not all there"
    others = set(job.states) - set(job.nodes) - set(job.steps)
    if not (others or job.nodes or job.steps):
        return "the row of its planning or its synthesis is missing, or there without a reason"
    for name, node in job.nodes.items():
        state = job.states[name]
        if isinstance(state, Waiting) and state.missing != _missing(job, node.task.dep):
            return f"{name} waits for other sub-tasks than those that have not succeeded"
    return ""


def _missing(job: Open, dep: tuple[str, ...]) -> int:
    return sum(not isinstance(job.states.get(name), Succeeded) for name in set(dep))


def left_out(rows: Mapping[str, Row], jobs: set[JobId]) -> dict[str, Row]:
    """The rows without those of these jobs."""
    return {key: row for key, row in rows.items() if job_of(key) not in jobs} if jobs else dict(rows)
