"""Attempts that wait for a person or a child job, with neither slot nor place."""

from streams.core.ending import Folded
from streams.core.events import ChildAnswered, SubTaskSuspended
from streams.core.states import Open


def suspend(job: Open, event: SubTaskSuspended) -> Folded:
    """An attempt waits, and gives up its place."""
    del event
    return job, ()


def answered(job: Open, event: ChildAnswered) -> Folded:
    """The child that an attempt waits for has its answer."""
    del event
    return job, ()
