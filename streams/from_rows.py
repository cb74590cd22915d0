"""Jobs and accounts from the rows of the table that they stand in."""

from typing import Final

from streams.core.admission import dependants
from streams.core.granting import fund
from streams.core.guests import Guest, Guests
from streams.core.money import charged
from streams.core.moves import OUT
from streams.core.states import (
    NO_NOTES,
    NO_SPENDING,
    NO_STEPS,
    Account,
    Failed,
    Finished,
    Job,
    Node,
    Note,
    Open,
    Ready,
    Skipped,
    Stopped,
    SubTaskState,
    Succeeded,
)
from streams.core.values import NO_USAGE, JobId, TaskId
from streams.damage import Damage, untrue
from streams.sharing import shared
from streams.wire.rows import (
    GOAL_ROW,
    NOTE_ROW,
    AccountRow,
    GoalRow,
    GuestRow,
    JobRow,
    NoteRow,
    PositionRow,
    Row,
    SubTaskRow,
)

_NOTHING: Final = JobRow(usage=NO_USAGE)


def build(rows: dict[str, Row], damage: Damage) -> dict[JobId, Job]:
    """The jobs that these rows stand for, but those of which they cannot be true."""
    jobs: dict[JobId, Job] = {}
    spent: dict[JobId, JobRow] = {}
    goals: dict[JobId, GoalRow] = {}
    tasks: dict[JobId, dict[TaskId, SubTaskRow]] = {}
    notes: dict[JobId, dict[str, Note]] = {}
    for key, row in rows.items():
        match row:
            case Finished():
                jobs[key] = row
            case JobRow():
                spent[key] = row
            case GoalRow():
                goals[key.rpartition("/")[0]] = row
            case SubTaskRow():
                job, _, task = key.rpartition("/")
                tasks.setdefault(job, {})[task] = row
            case NoteRow(note=note):
                notes.setdefault(key.partition(f"/{NOTE_ROW}")[0], {})[note.topic] = note
            case PositionRow() | AccountRow() | GuestRow():
                pass
    jobs |= accounts(rows, damage)
    for job in (spent.keys() | tasks.keys() | notes.keys()) - goals.keys():
        damage.note(f"{job}/{GOAL_ROW}", "the row of the goal is missing")
    for job, goal in goals.items():
        counted = spent.get(job, _NOTHING)
        try:
            built = rebuild(goal, counted, tasks.get(job, {}), notes.get(job, {}))
        except (LookupError, ValueError, TypeError) as error:
            damage.note(f"{job}/{GOAL_ROW}", f"the rows of this job cannot be true: {repr(error)[:300]}")
            continue
        if wrong := untrue(built, counted.nodes):
            damage.note(f"{job}/{GOAL_ROW}", f"the rows of this job cannot be true: {wrong}")
        else:
            jobs[job] = shared(built)
    return jobs


def accounts(rows: dict[str, Row], damage: Damage) -> dict[JobId, Account]:
    """The accounts that these rows stand for, but those of which they cannot be true."""
    told: dict[JobId, AccountRow] = {}
    guests: dict[JobId, list[Guest]] = {}
    for key, row in rows.items():
        if isinstance(row, AccountRow):
            told[key] = row
        elif isinstance(row, GuestRow):
            guests.setdefault(key.rpartition("/")[0], []).append(row.guest)
    for account in guests.keys() - told.keys():
        damage.note(account, "the row of the account is missing")
    built: dict[JobId, Account] = {}
    for account, row in told.items():
        here = guests.get(account, [])
        if row.guests == len(here):
            built[account] = built_account(account, row, here)
        else:
            damage.note(account, "the rows of its guests are not all there")
    return built


def built_account(key: JobId, row: AccountRow, guests: list[Guest]) -> Account:
    """One account from its rows."""
    return Account(
        key=key,
        day=row.day,
        spent=row.spent,
        jobs=row.jobs,
        limit=row.limit,
        told_at=row.told_at,
        turns=row.turns,
        guests=Guests.of(guests),
    )


def rebuild(goal: GoalRow, counted: JobRow, rows: dict[TaskId, SubTaskRow], notes: dict[str, Note]) -> Open:
    """One job under way from its rows.

    Rows of before there were grants have none: what waits in them is granted its share here.
    """
    ordered = sorted(rows.items(), key=lambda item: item[1].ordinal)
    plan = tuple(row.task for _, row in ordered if row.task is not None)
    waiting_on_me = dependants(plan)
    nodes = {
        row.task.id: Node(task=row.task, ordinal=row.ordinal, dependants=waiting_on_me.get(row.task.id, ()))
        for _, row in ordered
        if row.task is not None
    }
    states: dict[TaskId, SubTaskState] = {task: row.state for task, row in ordered}

    def count(*kinds: type[SubTaskState]) -> int:
        return sum(isinstance(states[task], kinds) for task in nodes)

    built = Open(
        submitted=goal.submitted,
        nodes=nodes,
        states=states,
        ready=tuple(task for task, state in states.items() if isinstance(state, Ready)),
        outstanding=sum(isinstance(state, OUT) for state in states.values()),
        succeeded=count(Succeeded),
        failed=count(Failed),
        skipped=count(Skipped, Stopped),
        usage=counted.usage,
        revision=goal.revision,
        lost=counted.lost,
        need=counted.need,
        steps={task: row.step for task, row in ordered if row.step is not None} or NO_STEPS,
        notes=notes or NO_NOTES,
        decided=counted.decided,
        spending={task: row.spent for task, row in ordered if row.spent is not None} or NO_SPENDING,
    )
    held = built.decided.hold is not None and built.decided.hold.on == "place"
    return fund(built) if charged(built) and not held else built
