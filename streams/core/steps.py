"""Steps: sub-tasks of the system's own, beside ``plan`` and ``answer``, and what becomes of their ends."""

from streams.core import gating, hedging
from streams.core.ending import Folded
from streams.core.events import SubTaskEvent, SubTaskSucceeded
from streams.core.joining import join
from streams.core.replanning import in_vain
from streams.core.settling import settle
from streams.core.states import Open
from streams.core.stepping import begin, step_id

__all__ = ["begin", "failed", "step_id", "succeeded"]


def succeeded(job: Open, event: SubTaskSucceeded) -> Folded:
    """A step has its result; it stands in the states already."""
    match job.steps[event.task].role:
        case "gate":
            return gating.succeeded(job, event)
        case "replan":
            return settle(job, event)
        case "check" | "tie" | "judge" | "reduce":
            return join(job, event)
        case "hedge":
            return hedging.won(job, event)
        case _:
            return job, ()


def failed(job: Open, event: SubTaskEvent) -> Folded:
    """A step failed for good; it stands in the states already."""
    match job.steps[event.task].role:
        case "gate":
            return gating.failed(job, event)
        case "replan":
            return settle(in_vain(job, event.task), event)
        case "check" | "tie" | "judge" | "reduce":
            return join(job, event)
        case "hedge":
            return hedging.failed(job, event)
        case _:
            return job, ()
