"""What an attempt waits for, and answers that come before it does."""

from streams.core.commands import RunSubTask
from streams.core.events import ChildAnswered, JobSubmitted, SubTaskSuspended
from streams.core.goal import Goal, Limits, Source
from streams.core.job import fold
from streams.core.plan import SubTask
from streams.core.release import command
from streams.core.states import New, Open, Ready
from streams.core.suspending import EARLY
from streams.core.values import Inline

JOB = "acme/goal-1"
GOAL = Goal(text=Inline(value="count the boats"))


def a_job(goal: Goal = GOAL) -> Open:
    """One whose only sub-task may run."""
    source = Source(topic="goals", partition=0, offset=0)
    job, _ = fold(New(), JobSubmitted(job=JOB, goal=goal, source=source, plan=(SubTask(id="a", goal="a"),)))
    assert isinstance(job, Open)
    return job


def told(job: Open, event: ChildAnswered | SubTaskSuspended) -> Open:
    """The job after an event that ends nothing."""
    after, effects = fold(job, event)
    assert isinstance(after, Open)
    assert effects == ()
    return after


def answered(number: int, outcome: str = "succeeded") -> ChildAnswered:
    """The answer of one child."""
    return ChildAnswered(
        job=JOB,
        task="a",
        attempt=1,
        call=f"call-{number}",
        child=f"acme/child-{number}",
        outcome=outcome,
        answer=Inline(value=number),
    )


def waits(number: int, so_often: int) -> SubTaskSuspended:
    """The word that the attempt waits for it."""
    return SubTaskSuspended(
        job=JOB,
        task="a",
        attempt=1,
        on="child",
        call=f"call-{number}",
        child=f"acme/child-{number}",
        journal=(7,),
        number=so_often,
    )


def test_an_answer_that_came_early_is_not_lost_to_another_and_counts_once() -> None:
    """Whichever is waited for first, and however often each is told."""
    first, second = answered(1), answered(2)
    job = told(told(a_job(), first), second)
    for again in (first, second, answered(1, "failed")):
        assert told(job, again) is job
    job = told(job, waits(2, 1))
    assert told(job, first) is job
    job = told(job, waits(1, 2))
    state = job.states["a"]
    assert isinstance(state, Ready)
    assert state.resume is not None
    assert [(each.call, each.answer) for each in state.resume.ended] == [
        ("call-2", Inline(value=2)),
        ("call-1", Inline(value=1)),
    ]
    assert job.decided.early == ()
    for again in (first, second):
        assert told(job, again) is job


def test_of_one_attempt_few_answers_are_kept_before_it_waits() -> None:
    """Somebody who may write goals and names its calls cannot fill the job's row."""
    job = a_job()
    for number in range(EARLY):
        job = told(job, answered(number))
    assert told(job, answered(EARLY)) is job
    assert len(job.decided.early) == EARLY


def test_what_goes_on_has_the_tool_by_which_it_proposed_though_no_place_is_left() -> None:
    """Else what it proposed before it waited would be forgotten; where no plan may grow there is none."""
    for grow, growth in ((True, [0, 1]), (False, [0, 0])):
        job = a_job(Goal(text=GOAL.text, grow=grow, limits=Limits(max_subtasks=1)))
        after = told(told(job, answered(1)), waits(1, 1))
        orders = [command(each, "a") for each in (job, after)]
        assert [each.growth for each in orders if isinstance(each, RunSubTask)] == growth
