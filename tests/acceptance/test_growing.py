"""Plans that grow, are planned again, and whose sub-tasks share notes, on a real Kafka through a worker."""

from agents import simulator
from streams.core.commands import Answer, RunSubTask
from streams.core.events import NoteWritten
from streams.core.values import Inline, Json
from streams.topics import JOB_EVENTS, SUBTASKS
from streams.wire.commands import read_command
from streams.wire.events import read_event
from tests.acceptance.conftest import Programs
from tests.acceptance.running import Running, running
from tests.conftest import NewSystem

JOBS: tuple[dict[str, Json], ...] = (
    {
        "id": "map",
        "goal": "Count the boats",
        "plan": [
            {"id": "list", "goal": "List the harbours [[map 3]]"},
            {"id": "sum", "goal": "Add up", "dep": ["list"]},
        ],
        "grow": True,
    },
    {
        "id": "runaway",
        "goal": "Count for ever",
        "plan": [{"id": "a", "goal": "Count [[map 3 ever]]"}],
        "grow": True,
        "limits": {"max_subtasks": 6},
    },
    {
        "id": "replan",
        "goal": "Count twice [[plan 2]] [[fail @2]]",
        "on_failure": "replan",
        "limits": {"max_attempts": 1},
    },
    {
        "id": "in-vain",
        "goal": "Count twice [[plan 2]] [[fail @2]] [[replan again]]",
        "on_failure": "replan",
        "limits": {"max_attempts": 1, "max_replans": 2},
    },
    {
        "id": "cycle",
        "goal": "Count twice [[replan cycle]]",
        "plan": [{"id": "a", "goal": "Count"}, {"id": "b", "goal": "Count [[fail]]"}],
        "on_failure": "replan",
        "limits": {"max_attempts": 1},
    },
    {
        "id": "notes",
        "goal": "Watch the tide",
        "plan": [
            {"id": "a", "goal": "Watch [[note tide high]]", "notes": True},
            {"id": "b", "goal": "Watch [[note tide low]]", "notes": True},
            {"id": "c", "goal": "Say which", "dep": ["a", "b"], "notes": True},
        ],
        "notes": True,
    },
)


def lines(answer: Answer) -> dict[str, tuple[str, str | None]]:
    """How each sub-task ended, and who proposed it."""
    return {line.task: (line.outcome, line.parent) for line in answer.subtasks}


async def test_growing_replanning_and_notes_on_a_real_kafka(
    new_system: NewSystem, programs: Programs
) -> None:
    """One worker, one simulated model, a job for each rule."""
    settings = await new_system(lanes=2, concurrency=20)
    async with running(settings, programs, simulator.Behaviour()) as here:
        await here.worker()
        for number, goal in enumerate(JOBS):
            await here.send(goal, partition=number % 2)
        answers = await here.answers(len(JOBS))
        await shared(here)
    grown = answers["map"]
    assert grown.outcome == "succeeded"
    assert lines(grown) == {
        "list": ("succeeded", None),
        "sum": ("succeeded", None),
        **{f"list-{n}": ("succeeded", "list") for n in (1, 2, 3)},
    }
    runaway = answers["runaway"]
    assert (runaway.outcome, len(runaway.subtasks)) == ("succeeded", 6)
    assert runaway.refused
    again = answers["replan"]
    assert (again.outcome, again.replans, again.refused) == ("succeeded", 1, ())
    assert lines(again)["t2-again"] == ("succeeded", None)
    vain = answers["in-vain"]
    assert (vain.outcome, vain.replans) == ("partial", 2)
    assert lines(vain)["t2-again-again"] == ("failed", None)
    cycle = answers["cycle"]
    assert (cycle.outcome, cycle.replans, [*lines(cycle)]) == ("partial", 1, ["a", "b"])
    assert "cycle" in cycle.refused[0]
    assert answers["notes"].outcome == "succeeded"


async def shared(here: Running) -> None:
    """Both notes are on the log, and who comes after them is given both, and the log's place."""
    written = {
        record.offset: event
        for record in await here.records(JOB_EVENTS)
        if isinstance(event := read_event(record), NoteWritten)
    }
    values = [event.value.value for event in written.values() if isinstance(event.value, Inline)]
    assert sorted(map(str, values)) == ["high", "low"]
    orders = [read_command(record) for record in await here.records(SUBTASKS)]
    [last] = [
        order
        for order in orders
        if isinstance(order, RunSubTask) and (order.job, order.task) == ("default/notes", "c")
    ]
    assert last.notes is not None
    [note] = last.notes
    assert (note.topic, note.version, note.value) == ("tide", 2, Inline(value={"merged": values}))
    assert last.notes_at == max(written)
