"""Rows of each kind, by the name of the golden file that holds each as version 1 wrote it."""

from dataclasses import replace
from typing import Final

from streams.core.commands import Contradiction, Duplicate, Part, RunSubTask, Votes
from streams.core.events import Tried
from streams.core.guests import Guest
from streams.core.plan import SubTask
from streams.core.states import (
    Backoff,
    Decided,
    Early,
    Failed,
    Finished,
    Hedged,
    Hold,
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
from streams.core.values import Grant, Inline
from streams.wire.rows import AccountRow, GoalRow, GuestRow, JobRow, NoteRow, PositionRow, Row, SubTaskRow
from tests.wire.samples import CHECK, GRANT, SAMPLES, SOURCE, USAGE

SUBMITTED = replace(SAMPLES["job-events"][0], at=1_790_000_000_000, offset=41)
TASK = SubTask(id="read-3", goal="Read it", kind="extract", dep=("list",), model="kimi-k2.6", input=(2, 2))
RESUME = next(
    sample.resume
    for sample in SAMPLES["subtasks"]
    if isinstance(sample, RunSubTask) and sample.resume is not None
)
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
    "SubTaskRow-Stopped": row(Stopped(attempt=2, tried=1, reason="3 results are enough", told=True)),
    "SubTaskRow-plan": SubTaskRow(ordinal=0, state=Ready()),
    "JobRow-5": JobRow(
        usage=USAGE,
        decided=Decided(
            hold=Hold(
                on="answer",
                since=1_790_000_000_000,
                rule="all_done",
                reason="1 of 2 succeeded",
                failed=True,
                then="plan",
            ),
            approved=("plan",),
            by="ada@example",
            heard=(SOURCE,),
            early=(Early(task="read-3", attempt=2, ended=RESUME.ended[0]),),
            lease=GRANT,
            asked=2,
            given=1,
            short="the day is nearly spent",
            before=USAGE,
            hedged=("read-3",),
            replans=1,
            replaced=("read-4",),
            used=("a", "b"),
            duplicates=(Duplicate(task="c", of="a"),),
            contradictions=(Contradiction(tasks=("a", "b"), about="the licence"),),
            votes=(Votes(tasks=("a", "c"), weight=2.5),),
            refused=("read-3: 40 sub-tasks, at most 12",),
            rule="quorum",
            reason="3 of 5 agree",
        ),
    ),
    "AccountRow": AccountRow(
        day=20_717, spent=USAGE, jobs=10, limit=GRANT, told_at=1_790_000_000_000, turns=41, guests=2
    ),
    "GuestRow": GuestRow(
        guest=Guest(
            job="acme/g1",
            revision=2,
            priority=7,
            since=1_790_000_000_000,
            asked=3,
            begun=True,
            lease=GRANT,
            want=Grant(calls=4),
            gave=Grant(calls=0),
            reason="the day is nearly spent",
            parent="acme/p1",
            inside=True,
        )
    ),
    "NoteRow": NoteRow(
        note=Note(
            topic="licences",
            version=2,
            value=Inline(value="MIT"),
            writes=("read-3/2/call_4",),
            size=5,
            offset=975,
        )
    ),
    "SubTaskRow-Ready-3": row(Ready(attempt=2, resume=RESUME)),
    "SubTaskRow-Released-3": row(Released(attempt=2, at=1_790_000_009_500, resume=RESUME)),
    "SubTaskRow-Running-3": row(Running(attempt=2, run="w1-5f3a", since=1_790_000_009_600, resume=RESUME)),
    "SubTaskRow-Suspended": row(
        Suspended(
            attempt=2,
            on="child",
            call="call_3",
            since=1_790_000_009_900,
            resume=RESUME,
            tool="submit_goal",
            args={"goal": "Audit attrs"},
            child="acme/c1",
            grant=GRANT,
            so_far=USAGE,
        )
    ),
    "SubTaskRow-Hedged": row(Hedged(attempt=3, kind="timeout", reason="no result within 60 s")),
    "SubTaskRow-Succeeded-2": row(
        Succeeded(attempt=2, result=Inline(value="MIT"), size=5, offset=975, fingerprint="ab12", cites=("a",))
    ),
    "SubTaskRow-spent": SubTaskRow(ordinal=1, state=Ready(attempt=2), task=TASK, spent=USAGE),
    "SubTaskRow-step": SubTaskRow(
        ordinal=7, state=Ready(), step=Step(role="reduce", ordinal=7, of=(Part(task="a"),), text="sum up")
    ),
}
