"""How much room a job's plan has for further sub-tasks, and which of its sub-tasks count."""

from dataclasses import dataclass

from streams.core.states import Failed, Open, Stopped, Succeeded
from streams.core.values import TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Sub-tasks of a plan as the rules count them: without those that another plan took the place of."""

    total: int
    succeeded: int
    failed: int


def tally(job: Open) -> Tally:
    """The sub-tasks that count."""
    replaced = job.decided.replaced
    return Tally(
        total=len(job.nodes) - len(replaced),
        succeeded=job.succeeded,
        failed=job.failed - sum(isinstance(job.states[name], Failed) for name in replaced),
    )


def free(job: Open) -> int:
    """How many more sub-tasks the plan may have: every one that it ever had counts."""
    return max(0, job.submitted.goal.limits.max_subtasks - len(job.nodes))


def growth(job: Open, task: TaskId) -> int:
    """How many further sub-tasks this one may propose; none where it calls a tool and no model."""
    node = job.nodes.get(task)
    return free(job) if job.submitted.goal.grow and node is not None and node.task.goal else 0


def alone(job: Open) -> bool:
    """Whether the plan has one sub-task and stays so: its result is the answer, and nothing is joined."""
    return len(job.nodes) == 1 and not any(growth(job, task) for task in job.nodes)


def ended(job: Open, step: TaskId) -> bool:
    """Whether a step has come to its end."""
    return isinstance(job.states[step], Succeeded | Failed | Stopped)
