"""The join: from the results of a job's sub-tasks to its answer."""

from streams.core.ending import Folded
from streams.core.events import Event
from streams.core.moves import first, put
from streams.core.states import Open
from streams.core.values import ANSWER


def join(job: Open, event: Event) -> Folded:
    """Begin the join, or go on with it: *event* brought the last result it waited for."""
    del event
    return put(job, {ANSWER: first(job, ANSWER)}), ()
