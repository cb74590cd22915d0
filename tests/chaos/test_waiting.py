"""Parents that wait for their children, in lives where workers are killed and hand over."""

from dataclasses import replace

import pytest

from streams.chaos.scenarios import Incident, Job, Scenario
from streams.chaos.simulation.living import live
from streams.chaos.verifier import verify
from streams.core.commands import RunSubTask
from streams.core.events import ApprovalGiven
from streams.topics import ANSWERS, GOALS, JOB_EVENTS, SUBTASKS
from streams.wire.answers import read_answer
from streams.wire.commands import read_command
from streams.wire.events import read_event

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
    """Nothing is lost, wrong, repeated or run without its command, though an attempt has two of them."""
    life = live(Scenario(jobs=(PARENT,), incidents=incidents))
    assert verify(life.evidence) == []
    orders = [read_command(record) for record in life.evidence.records[SUBTASKS]]
    resumed = [one for one in orders if isinstance(one, RunSubTask) and one.resume is not None]
    assert sorted((one.task, one.attempt) for one in resumed) == [("a", 1), ("b", 1)]


WAITING = Job(
    goal={
        "id": "held",
        "goal": "Look at it [[plan 2]]",
        "approve": ["plan", "answer"],
    },
    approved_s=1.5,
)
ENDED = Job(goal={"id": "ended", "goal": "Look [[plan 2]] [[hang]]"}, cancelled_s=2.0, certain=False)


@pytest.mark.parametrize("incidents", INCIDENTS, ids=["calm", "kills", "a hand-over"])
def test_what_people_say_of_jobs_is_verified(incidents: tuple[Incident, ...]) -> None:
    """Words are no goals; each has come to its job, and the jobs end as they were told."""
    life = live(Scenario(jobs=(WAITING, ENDED), incidents=incidents))
    assert verify(life.evidence) == []
    told = {answer.job: answer.rule for answer in map(read_answer, life.evidence.records[ANSWERS])}
    assert told["default/held"] == "all_done"
    assert told["default/ended"] == "cancelled"


def test_a_word_that_no_job_was_told_is_found() -> None:
    """A person's word must not get lost any more than a goal."""
    life = live(Scenario(jobs=(WAITING,)))
    events = life.evidence.records[JOB_EVENTS]
    deaf = tuple(each for each in events if not isinstance(read_event(each), ApprovalGiven))
    evidence = replace(life.evidence, records={**life.evidence.records, JOB_EVENTS: deaf})
    lost = {each.where.split("[")[0] for each in verify(evidence) if "person's word" in each.what}
    assert lost == {GOALS}
