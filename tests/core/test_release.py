"""What a command says, and how many of a job may be out."""

import pytest
from hypothesis import given

from streams.core.commands import MakeAnswer, MakePlan, RunSubTask
from streams.core.events import Event, JobSubmitted, Planned, SubTaskFailed, SubTaskSucceeded
from streams.core.goal import Goal, Limits, Source
from streams.core.job import fold
from streams.core.money import charged
from streams.core.plan import SubTask
from streams.core.release import command, lane_of, places, release
from streams.core.states import Job, New, Open, Ready, Released
from streams.core.values import PLAN, Grant, Inline
from tests.core.histories import JOB, histories, walk

GOAL = Goal(
    text=Inline(value="count"),
    input=Inline(value=[1, 2, 3, 4]),
    items=4,
    tools=("look",),
    model="small",
    priority=7,
)


def opened(*tasks: SubTask, goal: Goal = GOAL) -> Open:
    """A job with this plan."""
    source = Source(topic="goals", partition=0, offset=0)
    job, _ = fold(New(), JobSubmitted(job=JOB, goal=goal, source=source))
    job, _ = fold(job, Planned(job=JOB, task=PLAN, attempt=1, plan=tasks))
    assert isinstance(job, Open)
    return job


@given(histories())
def test_release_never_goes_beyond_the_goals_concurrency(history: list[Event]) -> None:
    """Each released sub-task is out, in the order in which they became ready, and none twice.

    In a job with a budget those go that have a grant, and take it along.
    """
    for step in walk(history):
        if not isinstance(job := step.after, Open) or (free := places(job)) <= 0:
            continue
        after, commands = release(job, free, at=5)
        assert after.outstanding == job.outstanding + free <= job.submitted.goal.limits.concurrency
        poor = charged(job)
        may = [task for task in job.ready if not poor or grant_of(job, task) is not None]
        going = [order.task for order in commands]
        assert going == may[:free]
        assert after.ready == tuple(task for task in job.ready if task not in going)
        assert places(after) <= 0
        for order in commands:
            assert (order.grant is not None) == poor
            was = job.states[order.task]
            assert isinstance(was, Ready)
            assert was == Ready(attempt=order.attempt, grant=order.grant, resume=was.resume)
            assert after.states[order.task] == Released(
                attempt=order.attempt, at=5, grant=order.grant, resume=was.resume
            )


def grant_of(job: Open, task: str) -> Grant | None:
    """What the ready sub-task is granted."""
    state = job.states[task]
    assert isinstance(state, Ready)
    return state.grant


def test_a_plan_command_has_the_whole_goal() -> None:
    """The planner divides the input."""
    job, _ = fold(
        New(), JobSubmitted(job=JOB, goal=GOAL, source=Source(topic="goals", partition=0, offset=0))
    )
    assert isinstance(job, Open)
    _, (order,) = release(job, 5, at=0)
    assert order == MakePlan(
        job=JOB,
        task=PLAN,
        attempt=1,
        ordinal=0,
        timeout_s=120.0,
        text=GOAL.text,
        input=GOAL.input,
        items=4,
        tools=("look",),
        model="small",
        priority=7,
    )


def test_a_sub_task_command_has_its_share_and_its_dependencies_results() -> None:
    """And no other sub-task's."""
    job: Job = opened(
        SubTask(id="a", goal="x", input=(1, 2)),
        SubTask(id="b", goal="x", input="all", model="large"),
        SubTask(id="c", goal="join", dep=("a", "b")),
        SubTask(id="d", goal="", tool="look", args={"at": "it"}),
    )
    _, orders = release(job, 9, at=0)  # type: ignore[arg-type]
    a, b, d = orders
    assert isinstance(a, RunSubTask)
    assert isinstance(b, RunSubTask)
    assert isinstance(d, RunSubTask)
    assert (a.input, a.items, a.model, a.dep) == (GOAL.input, (1, 2), "small", ())
    assert (b.input, b.items, b.model) == (GOAL.input, None, "large")
    assert (d.input, d.tool, d.args, d.tools) == (None, "look", {"at": "it"}, ("look",))
    assert {order.priority for order in orders} == {7}
    for task, result in (("b", "two"), ("a", "one")):
        job, _ = fold(
            job, SubTaskSucceeded(job=JOB, task=task, attempt=1, result=Inline(value=result), size=5)
        )
    assert isinstance(job, Open)
    c = command(job, "c")
    assert isinstance(c, RunSubTask)
    assert [(r.task, r.outcome, r.result) for r in c.dep] == [
        ("a", "succeeded", Inline(value="one")),
        ("b", "succeeded", Inline(value="two")),
    ]


def test_an_answer_command_has_all_results_and_the_last_ordinal() -> None:
    """Also where some failed."""
    job: Job = opened(SubTask(id="a", goal="x"), SubTask(id="b", goal="x"))
    job, _ = fold(job, SubTaskSucceeded(job=JOB, task="a", attempt=1, result=Inline(value=1), size=1))
    job, _ = fold(job, SubTaskFailed(job=JOB, task="b", attempt=1, kind="refused", reason="no", final=True))
    assert isinstance(job, Open)
    _, (order,) = release(job, 9, at=0)
    assert isinstance(order, MakeAnswer)
    assert (order.ordinal, order.text, order.priority) == (3, GOAL.text, 7)
    assert [r.result for r in order.results] == [Inline(value=1), None]


def test_only_what_is_ready_has_a_command() -> None:
    """A command given twice would be a model call paid twice."""
    job, _ = release(opened(SubTask(id="a", goal="x"), goal=Goal(text=GOAL.text, limits=Limits())), 1, at=0)
    with pytest.raises(ValueError, match="acme/goal-1/a is Released, not Ready"):
        command(job, "a")


def test_attempts_of_a_job_fill_all_lanes_evenly() -> None:
    """And a retry goes elsewhere, where another process may do better."""
    lanes = [lane_of(JOB, ordinal, 1, 8) for ordinal in range(1, 101)]
    assert {lanes.count(lane) for lane in range(8)} == {12, 13}
    assert lane_of(JOB, 1, 2, 8) != lane_of(JOB, 1, 1, 8)
