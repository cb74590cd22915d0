"""Timers follow from the state: what waits for time has one, nothing else has."""

from dataclasses import replace

from hypothesis import given

from streams.core.due import deadline, due_at, timer
from streams.core.events import DeadlinePassed, Event
from streams.core.job import fold
from streams.core.release import places, release
from streams.core.states import Backoff, Open, Released, Running
from tests.core.histories import JOB, histories, walk


@given(histories())
def test_a_due_timer_always_moves_its_sub_task(history: list[Event]) -> None:
    """When its time has come the fold takes it: no state waits for an event that never comes."""
    for step in walk(history):
        if not isinstance(job := step.after, Open):
            continue
        if (free := places(job)) > 0:
            job, _ = release(job, free, step.event.at)
        for task, state in job.states.items():
            due = due_at(job, task, state, grace_ms=0)
            event = timer(JOB, task, state, retry_in=1.0)
            assert (due is None) == (event is None) == (not isinstance(state, Released | Running | Backoff))
            if due is not None and event is not None:
                after, _ = fold(job, replace(event, at=due))
                assert after is not job


@given(histories())
def test_timers_before_their_time_change_nothing(history: list[Event]) -> None:
    """But for a start: an event that says it was overdue settles it, in a replay too."""
    for step in walk(history):
        if not isinstance(job := step.after, Open):
            continue
        for task, state in job.states.items():
            due = due_at(job, task, state, grace_ms=0)
            event = timer(JOB, task, state, retry_in=1.0)
            if due is not None and event is not None and not isinstance(state, Released):
                assert fold(job, replace(event, at=due - 1)) == (job, ())
        if (end := deadline(job)) is not None:
            assert fold(job, DeadlinePassed(job=JOB, at=end - 1)) == (job, ())
            assert fold(job, DeadlinePassed(job=JOB, at=end))[0] is not job
