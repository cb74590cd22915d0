"""How long an attempt may run, by the kind of its sub-task."""

from streams.core.states import Open
from streams.core.values import ANSWER, PLAN, TaskId

KINDS = {
    "gate": "gate",
    "replan": PLAN,
    "check": "judge",
    "judge": "judge",
    "tie": "analyze",
    "reduce": ANSWER,
}
"""The kinds of steps, by their roles; that of a hedge is its sub-task's."""


def kind_of(job: Open, task: TaskId) -> str:
    """The kind of a sub-task, ``plan`` or ``answer`` for those two."""
    if (step := job.steps.get(task)) is not None:
        return kind_of(job, step.of[0].task) if step.role == "hedge" else KINDS[step.role]
    return job.nodes[task].task.kind if task in job.nodes else task


def seconds_of(job: Open, task: TaskId) -> float:
    """Seconds that one attempt of a sub-task may run."""
    return job.submitted.goal.limits.seconds(kind_of(job, task))
