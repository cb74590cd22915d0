"""Laws of hedges and stops: how many there are, who wins, and that the loser changes nothing."""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil

from hypothesis import given

from streams.core.commands import StopAttempt, Tell
from streams.core.events import (
    Event,
    HedgeDue,
    JobCancelled,
    JobSubmitted,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
    SubTaskSuspended,
)
from streams.core.goal import Goal, Hedging, Source
from streams.core.granting import releasable
from streams.core.hedging import UNDER_WAY, hedge_id, may_hedge
from streams.core.job import absorb
from streams.core.money import spent
from streams.core.plan import SubTask
from streams.core.release import command, lane_of
from streams.core.states import (
    Backoff,
    Failed,
    Job,
    New,
    Open,
    Ready,
    Released,
    Running,
    Skipped,
    Stopped,
    SubTaskState,
    Succeeded,
)
from streams.core.stopping import ordinal_of
from streams.core.values import Inline, TaskId, Usage
from tests.core.histories import JOB, START, Step, histories, walk

OUT = (Ready, Released, Running)


def hedges(job: Open) -> dict[TaskId, TaskId]:
    """Hedges by the sub-task that each works on."""
    return {step.of[0].task: name for name, step in job.steps.items() if step.role == "hedge"}


@given(histories())
def test_there_are_never_more_hedges_than_the_share(history: list[Event]) -> None:
    """Each sub-task is hedged once, and only where the goal says so."""
    for step in walk(history):
        if isinstance(step.after, Open):
            job, share = step.after, step.after.submitted.goal.hedge.share
            assert len(hedges(job)) <= ceil(share * max(1, len(job.nodes)))
            assert len(set(job.decided.hedged)) == len(job.decided.hedged)


@given(histories())
def test_a_sub_task_has_one_winner(history: list[Event]) -> None:
    """A result never changes, and no hedge is under way once its sub-task has ended."""
    for step in walk(history):
        if not isinstance(step.after, Open):
            continue
        for task, name in hedges(step.after).items():
            state = step.after.states.get(task)
            if isinstance(state, Succeeded | Failed | Skipped | Stopped):
                assert not isinstance(step.after.states[name], UNDER_WAY), task
        if isinstance(step.before, Open) and step.before.revision is step.after.revision:
            for task, was in step.before.states.items():
                if isinstance(was, Succeeded) and task in step.after.nodes:
                    assert step.after.states.get(task, was) == was


@given(histories())
def test_what_is_stopped_is_waited_for_no_more(history: list[Event]) -> None:
    """Each attempt is stopped once, when its job has ended or goes on without it."""
    stopped: list[tuple[TaskId, int]] = []
    revision = 0
    for step in walk(history):
        if isinstance(step.after, Open) and step.after.revision.number != revision:
            stopped, revision = [], step.after.revision.number
        for effect in step.effects:
            if isinstance(effect, StopAttempt):
                stopped.append((effect.task, effect.attempt))
                assert len(set(stopped)) == len(stopped)
                if isinstance(step.after, Open):
                    state = step.after.states[effect.task]
                    assert not (isinstance(state, OUT) and state.attempt == effect.attempt)


@given(histories())
def test_a_stopped_attempt_changes_nothing_of_the_answer(history: list[Event]) -> None:
    """What it tells at last is its usage."""
    over: set[tuple[TaskId, int]] = set()
    for step in walk(history):
        over |= {(each.task, each.attempt) for each in step.effects if isinstance(each, StopAttempt)}
        if not isinstance(step.event, SubTaskFailed | SubTaskSucceeded) or not isinstance(step.before, Open):
            continue
        limited = step.before.submitted.goal.budget.limited
        if (step.event.task, step.event.attempt) in over and not limited and _is_late(step):
            assert isinstance(step.after, Open)
            assert step.effects == ()
            counted = replace(
                step.after, usage=step.before.usage, lost=step.before.lost, states=_told(step.before)
            )
            assert replace(counted, states=_told(counted)) == replace(step.before, states=_told(step.before))


def _is_late(step: Step) -> bool:
    """The event is of an attempt that its sub-task does not wait for."""
    assert isinstance(step.before, Open)
    assert isinstance(step.event, SubTaskFailed | SubTaskSucceeded)
    state = step.before.states.get(step.event.task)
    return not (isinstance(state, OUT) and state.attempt == step.event.attempt)


def _told(job: Open) -> Mapping[TaskId, SubTaskState]:
    """The states, without what has been told of those that were stopped."""
    return {
        task: replace(state, told=True) if isinstance(state, Stopped) else state
        for task, state in job.states.items()
    }


@given(histories())
def test_a_hedge_has_another_lane_and_one_attempt(history: list[Event]) -> None:
    """Where there is more than one lane."""
    for step in walk(history):
        if not isinstance(step.after, Open):
            continue
        job, lanes = step.after, step.after.submitted.lanes
        for task, name in hedges(job).items():
            state, beside = job.states[name], job.steps[name].beside
            assert not isinstance(state, Backoff)
            if isinstance(state, UNDER_WAY):
                mine = lane_of("j", ordinal_of(job, name), state.attempt, lanes)
                assert mine != lane_of("j", ordinal_of(job, task), beside, lanes)


def test_a_share_is_of_all_sub_tasks() -> None:
    """Of a hundred at 0.07 seven may be hedged: no float makes it eight."""
    plan = tuple(SubTask(id=f"t{n}", goal="do it") for n in range(100))
    goal = Goal(text=Inline(value="go"), hedge=Hedging(share=0.07))
    source = Source(topic="goals", partition=0, offset=0)
    job: Job
    job, _ = absorb(New(), JobSubmitted(job=JOB, goal=goal, source=source, plan=plan, at=START))
    for n in range(100):
        started = SubTaskStarted(job=JOB, task=f"t{n}", attempt=1, run="r", at=START)
        job, _ = absorb(job, started)
    for n in range(100):
        due = HedgeDue(job=JOB, task=f"t{n}", attempt=1, after_ms=1_000, at=START + 5_000)
        job, _ = absorb(job, due)
    assert isinstance(job, Open)
    assert job.decided.hedged == tuple(f"t{n}" for n in range(7))
    assert not may_hedge(job, "t7")
    assert hedge_id(job.nodes["t0"]) == "~hedge-1"


def test_what_asks_a_person_is_not_hedged() -> None:
    """Both attempts would ask for the same call, and what is approved twice would be done twice."""
    plan = (SubTask(id="a", goal="x"), SubTask(id="b", goal="", tool="send_mail"))
    source = Source(topic="goals", partition=0, offset=0)
    for tools, approve in (((), ()), (("send_mail",), ("tools",)), ((), ("tools",))):
        goal = Goal(text=Inline(value="go"), hedge=Hedging(share=1.0), tools=tools, approve=approve)  # type: ignore[arg-type]
        job, _ = absorb(New(), JobSubmitted(job=JOB, goal=goal, source=source, plan=plan, at=START))
        for task in ("a", "b"):
            job, _ = absorb(job, SubTaskStarted(job=JOB, task=task, attempt=1, run="r", at=START))
        assert isinstance(job, Open)
        assert [may_hedge(job, task) for task in ("a", "b")] == [not tools, not approve]


def test_what_waits_for_a_child_is_overtaken_and_the_child_cancelled() -> None:
    """Nobody needs its answer any more; what its attempt had spent by then counts."""
    plan = (SubTask(id="a", goal="x"), SubTask(id="b", goal="x"))
    goal = Goal(text=Inline(value="go"), hedge=Hedging(share=0.5))
    name = {"job": JOB, "task": "a", "attempt": 1}
    job: Job = New()
    for event in (
        JobSubmitted(job=JOB, goal=goal, source=Source(topic="goals", partition=0, offset=0), plan=plan),
        SubTaskStarted(**name, run="r"),  # type: ignore[arg-type]
        HedgeDue(**name, after_ms=1_000, at=START + 5_000),  # type: ignore[arg-type]
        SubTaskSuspended(**name, on="child", call="c", child="acme/child", number=1, so_far=Usage(calls=3)),  # type: ignore[arg-type]
    ):
        job, _ = absorb(job, replace(event, at=event.at or START))
    won = SubTaskSucceeded(
        job=JOB, task="~hedge-1", attempt=1, result=Inline(value=1), usage=Usage(calls=1), at=START + 6_000
    )
    job, effects = absorb(job, won)
    assert isinstance(job, Open)
    assert isinstance(job.states["a"], Succeeded)
    assert spent(job) == Usage(calls=4)
    told = [each.event for each in effects if isinstance(each, Tell)]
    assert [(type(each), each.job) for each in told] == [(JobCancelled, "acme/child")]


@given(histories())
def test_another_attempt_begins_with_the_next_model(history: list[Event]) -> None:
    """By its number in this revision; a hedge with the model after that of the attempt beside it."""
    for step in walk(history):
        if not isinstance(job := step.after, Open):
            continue
        for task in releasable(job):
            state, step_ = job.states[task], job.steps.get(task)
            assert isinstance(state, Ready)
            before = state.attempt - 1 - job.revision.before(task)
            if step_ is not None and step_.role == "hedge":
                before = step_.beside - job.revision.before(step_.of[0].task)
            assert command(job, task).fallback == before
