"""The aggregation table: what was committed is what a restore finds, whenever it was committed."""

from collections import Counter
from dataclasses import replace

from hypothesis import given

from streams.core.events import Event, JobSubmitted
from streams.core.goal import Budget, Goal, Source
from streams.core.job import absorb
from streams.core.plan import SubTask
from streams.core.release import places, release
from streams.core.states import Account, Finished, Job, New, Open, Ready
from streams.core.values import Inline, JobId
from streams.damage import Damage
from streams.from_rows import build
from streams.log import Record
from streams.memory_log import MemoryCluster
from streams.memory_log.virtual_time import run
from streams.table import Table, apply
from streams.topics import JOBS
from streams.wire.rows import NOTE_ROW, POSITION_KEY, PositionRow, Row, SubTaskRow, write_row
from tests.core.histories import Choices, a_history, choices, named

JOBS_OF_A_PARTITION = ("acme/a", "acme/a.b", "other/a")
"""Names of which one begins with another, or is another tenant's."""


def events(made: Choices) -> list[Event]:
    """Histories of some jobs, mixed, at growing offsets."""
    histories = [[named(event, job) for event in a_history(made, 25)] for job in JOBS_OF_A_PARTITION]
    mixed: list[Event] = []
    while rest := [history for history in histories if history]:
        mixed.append(replace(made.of(rest).pop(0), offset=len(mixed)))
    return mixed


def fold_into(table: Table, event: Event, made: Choices) -> None:
    """What the orchestrator does with an event, and now and then a release."""
    before = table[event.job]
    after, _ = absorb(before, event)
    if isinstance(after, Open) and (free := places(after)) > 0:
        after, _ = release(after, made.below(free + 1), event.at)
    if after is not before:
        table[event.job] = after
    table.position, table.at = event.offset + 1, event.at


def commit(table: Table, rows: dict[str, Row]) -> list[tuple[str, Row | None]]:
    """Write what changed, and take it into *rows* as a restore does."""
    changed = list(table.changes())
    for key, row in changed:
        value = None if row is None else write_row(row)
        apply(rows, Record("jobs", 0, 0, 0, key.encode(), value))
    table.committed()
    return changed


def unordered(job: Job) -> Job:
    """A job without the order in which its sub-tasks became ready, which rows do not keep."""
    return replace(job, ready=tuple(sorted(job.ready))) if isinstance(job, Open) else job


@given(choices(1_100))
def test_rows_stand_for_the_table(made: Choices) -> None:
    """Committed at any points in between: states, counters, spending, plans, and our position."""
    table, rows = Table(), dict[str, Row]()
    for event in events(made):
        fold_into(table, event, made)
        if made.below(4) == 0:
            commit(table, rows)
            check(table, rows)
    commit(table, rows)
    check(table, rows)


def check(table: Table, rows: dict[str, Row]) -> None:
    """The rows say what the table says, and hold nothing else."""
    restored = build(rows, Damage())
    jobs = {job: table[job] for job in JOBS_OF_A_PARTITION if not isinstance(table[job], New)}
    assert {name: unordered(job) for name, job in restored.items()} == {
        name: unordered(job) for name, job in jobs.items()
    }
    for name, job in restored.items():
        if isinstance(job, Open):
            assert list(job.nodes) == list(table[name].nodes)  # type: ignore[union-attr]
            assert job.ready == tuple(sorted(job.ready, key=lambda task: ordinal(job, task)))
    if table.position is not None:
        assert rows[POSITION_KEY] == PositionRow(offset=table.position, at=table.at)
    assert rows.keys() - {POSITION_KEY} == {key for name, job in jobs.items() for key in keys(name, job)}


def ordinal(job: Open, task: str) -> int:
    """A sub-task's place in its plan."""
    if task in job.steps:
        return job.steps[task].ordinal
    return job.nodes[task].ordinal if task in job.nodes else 0


def keys(name: JobId, job: Job) -> list[str]:
    """Keys of a job's rows: a finished one leaves just its marker."""
    match job:
        case Open(states=states, notes=notes):
            written = (f"{name}/{NOTE_ROW}{topic}" for topic in notes)
            return [name, f"{name}/@goal", *(f"{name}/{task}" for task in states), *written]
        case Finished():
            return [name]
        case New() | Account():
            return []


@given(choices(1_100))
def test_a_change_is_written_once(made: Choices) -> None:
    """However many events it took: no key twice in a commit, and after one nothing is left but our place."""
    table, rows = Table(), dict[str, Row]()
    for event in events(made):
        fold_into(table, event, made)
        if made.below(8) == 0:
            assert all(count == 1 for count in Counter(key for key, _ in commit(table, rows)).values())
            assert [key for key, _ in table.changes()] == [POSITION_KEY]


def test_rows_of_before_there_were_grants_wait_for_no_event() -> None:
    """What is ready in them has its share at once; nothing else would let it go."""
    plan = tuple(SubTask(id=f"t{n}", goal="x") for n in range(2))
    goal = Goal(text=Inline(value="x"), budget=Budget(calls=30))
    source = Source(topic="goals", partition=0, offset=0)
    table, rows = Table(), dict[str, Row]()
    table["a/b"], _ = absorb(New(), JobSubmitted(job="a/b", goal=goal, source=source, plan=plan))
    commit(table, rows)
    before = {
        key: replace(row, state=Ready()) if isinstance(row, SubTaskRow) else row for key, row in rows.items()
    }
    assert before != rows
    assert build(before, Damage())["a/b"] == table["a/b"]


def test_a_table_is_restored_from_the_log() -> None:
    """As far as it was committed; the events after the last commit are folded again."""
    made = Choices(bytes(range(3, 256)) * 4)

    async def scenario() -> None:
        log = MemoryCluster({JOBS: 1}).connect("worker")
        table, committed = Table(), dict[str, Row]()
        assert (await Table.restore(log, 0)).position is None
        async with log.transactions("orchestrator-0") as transactions:
            for number, event in enumerate(events(made)):
                fold_into(table, event, made)
                if number % 5 == 0:
                    async with transactions.transaction():
                        for key, row in commit(table, committed):
                            value = None if row is None else write_row(row)
                            await transactions.send(JOBS, value, key=key.encode(), partition=0)
        restored = await Table.restore(log, 0)
        position = committed.pop(POSITION_KEY)
        assert isinstance(position, PositionRow)
        assert (restored.position, restored.at) == (position.offset, position.at)
        jobs = build(committed, Damage())
        assert jobs
        assert {job: restored[job] for job in jobs} == jobs
        assert sorted(j.submitted.job for j in restored.open_jobs()) == sorted(
            name for name, job in jobs.items() if isinstance(job, Open)
        )
        assert restored.finished == sum(isinstance(job, Finished) for job in jobs.values())

    run(scenario())
