"""Parents that wait for their children, in lives where workers are killed and hand over."""

import pytest

from streams.chaos.scenarios import Incident, Job, Scenario
from streams.chaos.simulation.living import live
from streams.chaos.verifier import verify
from streams.core.commands import RunSubTask
from streams.topics import SUBTASKS
from streams.wire.commands import read_command

PARENT = Job(
    goal={
        "id": "parent",
        "goal": "Hand it over",
        "plan": [
            {"id": "a", "goal": "Hand it over", "input": "all"},
            {"id": "b", "goal": "Hand on how it went", "dep": ["a"]},
        ],
        "input": [{"goal": "Count the boats [[plan 2]]"}],
        "tools": ["submit_goal"],
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
def test_parents_and_children_keep_the_promise(incidents: tuple[Incident, ...]) -> None:
    """Nothing is lost, repeated or run without its command, though an attempt has two of them.

    What the verifier expects of an answer has no children in it: that alone differs.
    """
    life = live(Scenario(jobs=(PARENT,), incidents=incidents))
    assert [each for each in verify(life.evidence) if each.kind != "wrong"] == []
    orders = [read_command(record) for record in life.evidence.records[SUBTASKS]]
    resumed = [one for one in orders if isinstance(one, RunSubTask) and one.resume is not None]
    assert sorted((one.task, one.attempt) for one in resumed) == [("a", 1), ("b", 1)]
