"""What the steps of a job ask of the lanes."""

from streams.core.commands import Command
from streams.core.states import Open, Ready
from streams.core.values import TaskId


def step_command(job: Open, task: TaskId, state: Ready) -> Command:
    """The command of the next attempt of a step.

    Raises:
        ValueError: there is none for its role.
    """
    step = job.steps[task]
    raise ValueError(f"{job.submitted.job}/{task}: no command for a step of the role {step.role}, {state}")
