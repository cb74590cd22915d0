"""Plans that grow, are planned again and share notes, in lives where workers are killed and hand over."""

import pytest

from streams.chaos.scenarios import Incident, Job, Scenario
from streams.chaos.simulation.living import live
from streams.chaos.verifier import verify
from streams.core.commands import RunSubTask
from streams.topics import SUBTASKS
from streams.wire.commands import read_command

ONCE = {"max_attempts": 1}
GROWING = Job(
    goal={
        "id": "map",
        "goal": "Count the boats",
        "plan": [
            {"id": "list", "goal": "List the harbours [[map 5]]"},
            {"id": "sum", "goal": "Add up", "dep": ["list"]},
        ],
        "grow": True,
    }
)
REPLANNED = Job(
    goal={"id": "again", "goal": "Count [[plan 3]] [[fail @2]]", "on_failure": "replan", "limits": ONCE},
    at=0.5,
    partition=1,
)
NOTES = Job(
    goal={
        "id": "notes",
        "goal": "Watch the tide",
        "plan": [
            {"id": "a", "goal": "Watch [[note tide high]]", "notes": True},
            {"id": "b", "goal": "Watch [[note tide low]] [[slow 2]]", "notes": True},
            {"id": "c", "goal": "Watch [[note wind none]]", "notes": True},
            {"id": "d", "goal": "Say which", "dep": ["a", "b"], "notes": True},
            {"id": "e", "goal": "Say why", "dep": ["d"], "notes": True},
        ],
        "notes": True,
        "limits": {"concurrency": 2},
    }
)
INCIDENTS = (
    (),
    (
        Incident(kind="kill", at=1.2, worker=0, seconds=1.0),
        Incident(kind="kill", at=3.0, worker=1, seconds=1.0),
    ),
    (Incident(kind="stop", at=1.0, worker=1, seconds=3.0),),
)


@pytest.mark.parametrize("incidents", INCIDENTS, ids=["calm", "kills", "a hand-over"])
def test_growing_jobs_keep_the_promise(incidents: tuple[Incident, ...]) -> None:
    """One answer each, as it must be, and every command is one that the log leads to."""
    life = live(Scenario(jobs=(GROWING, REPLANNED, NOTES), incidents=incidents))
    assert verify(life.evidence) == []
    orders = [read_command(record) for record in life.evidence.records[SUBTASKS]]
    last = next(one for one in orders if isinstance(one, RunSubTask) and one.goal == "Say why")
    assert last.notes is not None
    assert {note.topic for note in last.notes} == {"tide", "wind"}
