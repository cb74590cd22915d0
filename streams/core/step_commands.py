"""What the steps of a job ask of the lanes."""

from streams.core.commands import Command, Judge, MakeAnswer, MakePlan, RunSubTask, Verdict
from streams.core.gating import gate_command
from streams.core.replanning import failure
from streams.core.results import results_of
from streams.core.room import free
from streams.core.seconds import seconds_of
from streams.core.states import Open, Ready, Step
from streams.core.values import TaskId


def step_command(job: Open, task: TaskId, state: Ready) -> Command:
    """The command of the next attempt of a step.

    Raises:
        ValueError: there is none for its role.
    """
    step = job.steps[task]
    match step.role:
        case "gate":
            return gate_command(job, task, state)
        case "replan":
            return _replan(job, task, state, step)
        case "check" | "judge":
            return _judge(job, task, state, step)
        case "tie":
            return _tie(job, task, state, step)
        case "reduce":
            return _reduce(job, task, state, step)
        case _:
            raise ValueError(f"{job.submitted.job}/{task}: no command for a step of the role {step.role}")


def _replan(job: Open, task: TaskId, state: Ready, step: Step) -> MakePlan:
    goal = job.submitted.goal
    return MakePlan(
        job=job.submitted.job,
        task=task,
        attempt=state.attempt,
        ordinal=step.ordinal,
        timeout_s=seconds_of(job, task),
        text=goal.text,
        input=goal.input,
        items=goal.items,
        tools=goal.tools,
        model=goal.model,
        max_subtasks=free(job),
        priority=goal.priority,
        grant=state.grant,
        weight=goal.rules.weight,
        failure=failure(job),
        known=results_of(job, job.nodes),
        notes=goal.notes,
    )


def _judge(job: Open, task: TaskId, state: Ready, step: Step) -> Judge:
    goal = job.submitted.goal
    compares: Verdict = "rank" if goal.join.strategy == "rank" else "equal"
    return Judge(
        job=job.submitted.job,
        task=task,
        attempt=state.attempt,
        ordinal=step.ordinal,
        timeout_s=seconds_of(job, task),
        asks="check" if step.role == "check" else compares,
        text=goal.text,
        model=goal.model,
        results=results_of(job, _sources(step)),
        priority=goal.priority,
        grant=state.grant,
        weight=goal.rules.weight,
    )


def _tie(job: Open, task: TaskId, state: Ready, step: Step) -> RunSubTask:
    """A sub-task like any other: it is given what contradicts, and may use the goal's tools to find out."""
    goal = job.submitted.goal
    return RunSubTask(
        job=job.submitted.job,
        task=task,
        attempt=state.attempt,
        ordinal=step.ordinal,
        timeout_s=seconds_of(job, task),
        goal=step.text,
        kind="analyze",
        model=goal.model,
        tools=goal.tools,
        input=goal.input,
        dep=results_of(job, _sources(step)),
        priority=goal.priority,
        grant=state.grant,
        weight=goal.rules.weight,
        ask="tools" in goal.approve,
        depth=goal.depth,
        resume=state.resume,
    )


def _reduce(job: Open, task: TaskId, state: Ready, step: Step) -> MakeAnswer:
    goal = job.submitted.goal
    return MakeAnswer(
        job=job.submitted.job,
        task=task,
        attempt=state.attempt,
        ordinal=step.ordinal,
        timeout_s=seconds_of(job, task),
        text=goal.text,
        model=goal.model,
        results=results_of(job, _sources(step)),
        priority=goal.priority,
        grant=state.grant,
        join=goal.join,
        parts=step.of,
        reduce=True,
        weight=goal.rules.weight,
    )


def _sources(step: Step) -> list[TaskId]:
    return [part.task for part in step.of]
