"""Beginning steps: sub-tasks of the system's own, beside ``plan`` and ``answer``."""

from dataclasses import replace
from types import MappingProxyType

from streams.core.commands import Part
from streams.core.moves import first, put
from streams.core.states import Open, Role, Step
from streams.core.values import STEP, TaskId


def step_id(role: Role, number: int = 0) -> TaskId:
    """The id of a step: ``~check``, or ``~reduce-3`` where a job may have several of the kind."""
    return f"{STEP}{role}-{number}" if number else f"{STEP}{role}"


def begin(job: Open, name: TaskId, role: Role, of: tuple[Part, ...] = (), text: str = "") -> Open:
    """The job with a further step, which is ready."""
    step = Step(role=role, ordinal=len(job.nodes) + 2 + len(job.steps), of=of, text=text)
    return put(replace(job, steps=MappingProxyType({**job.steps, name: step})), {name: first(job, name)})
