"""Rows of each kind, by the name of the golden file that holds each as version 1 wrote it."""

from dataclasses import replace
from typing import Final

from streams.core.events import Tried
from streams.core.plan import SubTask
from streams.core.states import (
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
from streams.core.values import Inline
from streams.wire.rows import GoalRow, JobRow, PositionRow, Row, SubTaskRow
from tests.wire.samples import CHECK, GRANT, SAMPLES, USAGE

SUBMITTED = replace(SAMPLES["job-events"][0], at=1_790_000_000_000, offset=41)
TASK = SubTask(id="read-3", goal="Read it", kind="extract", dep=("list",), model="kimi-k2.6", input=(2, 2))
AGAIN = Revision(number=2, opened_at=1_790_000_009_000, tried=(Tried(task="read-3", attempt=3),))


def row(state: SubTaskState) -> SubTaskRow:
    """The row of a sub-task in this state."""
    return SubTaskRow(ordinal=1, state=state, task=TASK)


ROWS: Final[dict[str, Row]] = {
    "PositionRow": PositionRow(offset=977, at=1_790_000_012_345),
    "JobRow": JobRow(usage=USAGE),
    "JobRow-2": JobRow(usage=USAGE, nodes=3),
    "JobRow-3": JobRow(usage=USAGE, nodes=3, lost=(Lost(task="read-3", attempt=1, grant=GRANT),)),
    "JobRow-4": JobRow(usage=USAGE, nodes=3, need=GRANT),
    "GoalRow": GoalRow(submitted=SUBMITTED),
    "GoalRow-2": GoalRow(submitted=SUBMITTED, revision=AGAIN),
    "Finished": Finished(digest="cd" * 32, outcome="partial", offset=976, at=1_790_000_012_345, revision=2),
    "SubTaskRow-Waiting": row(Waiting(missing=1)),
    "SubTaskRow-Ready": row(Ready(attempt=2)),
    "SubTaskRow-Backoff": row(Backoff(attempt=2, until=1_790_000_010_000)),
    "SubTaskRow-Released": row(Released(attempt=2, at=1_790_000_009_500)),
    "SubTaskRow-Running": row(Running(attempt=2, run="w1-5f3a", since=1_790_000_009_600)),
    "SubTaskRow-Ready-2": row(Ready(attempt=2, grant=GRANT)),
    "SubTaskRow-Released-2": row(Released(attempt=2, at=1_790_000_009_500, grant=GRANT)),
    "SubTaskRow-Running-2": row(Running(attempt=2, run="w1-5f3a", since=1_790_000_009_600, grant=GRANT)),
    "SubTaskRow-Succeeded": row(
        Succeeded(attempt=2, result=Inline(value={"licence": "MIT"}), size=17, offset=975)
    ),
    "SubTaskRow-Reference": row(Succeeded(attempt=1, result=CHECK, size=600_000, offset=975)),
    "SubTaskRow-Failed": row(Failed(attempt=2, kind="timeout", reason="no result within 60 s")),
    "SubTaskRow-Skipped": row(Skipped(reason="skipped: list failed")),
    "SubTaskRow-plan": SubTaskRow(ordinal=0, state=Ready()),
}
