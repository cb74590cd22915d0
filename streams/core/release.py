"""Which commands a job has to give, and what they say. Pacing decides when they go out."""

from dataclasses import replace
from zlib import crc32

from streams.core.answering import given, may_be_the_answer
from streams.core.candidates import is_candidate
from streams.core.commands import Command, MakeAnswer, MakePlan, RunSubTask
from streams.core.goal import DEPTH, SUBMIT
from streams.core.granting import releasable
from streams.core.notes import granted, seen
from streams.core.results import results_of
from streams.core.room import alone, growth
from streams.core.states import Open, Ready, Released, Step, SubTaskState
from streams.core.step_commands import step_command
from streams.core.values import ANSWER, PLAN, JobId, TaskId


def lane_of(job: JobId, ordinal: int, attempt: int, lanes: int) -> int:
    """The lane of an attempt: sub-tasks of a job spread evenly, and a repeated command finds its lane."""
    return (crc32(job.encode()) + ordinal + attempt) % lanes


def places(job: Open) -> int:
    """How many more commands the job may have out now."""
    return min(len(releasable(job)), job.submitted.goal.limits.concurrency - job.outstanding)


def release(job: Open, count: int, at: int) -> tuple[Open, tuple[Command, ...]]:
    """Let the first *count* ready sub-tasks go; *at* is broker time in milliseconds.

    In a job with a budget those that have a grant: it goes out with the command.
    """
    going = releasable(job)[:count]
    commands = tuple(command(job, task) for task in going)
    states: dict[TaskId, SubTaskState] = dict(job.states)
    for task, order in zip(going, commands, strict=True):
        was = job.states[task]
        assert isinstance(was, Ready)
        states[task] = Released(attempt=order.attempt, at=at, grant=order.grant, resume=was.resume)
    ready = tuple(task for task in job.ready if isinstance(states[task], Ready))
    after = replace(job, states=states, ready=ready, outstanding=job.outstanding + len(going))
    return after, commands


def command(job: Open, task: TaskId) -> Command:
    """What a lane needs to know to run the next attempt of a ready sub-task.

    Raises:
        ValueError: the sub-task is not ready.
    """
    state = job.states[task]
    if not isinstance(state, Ready):
        raise ValueError(f"{job.submitted.job}/{task} is {type(state).__name__}, not Ready")  # noqa: TRY004 - a wrong state, not a wrong type
    order, earlier = _command(job, task, state), fallback(job, task, state.attempt)
    return replace(order, fallback=earlier) if earlier else order


def _command(job: Open, task: TaskId, state: Ready) -> Command:
    submitted = job.submitted
    goal = submitted.goal
    if (step := job.steps.get(task)) is not None and step.role == "hedge":
        return hedge_command(job, task, step, state)
    if step is not None:
        return step_command(job, task, state)
    if task == PLAN:
        return MakePlan(
            job=submitted.job,
            task=task,
            attempt=state.attempt,
            ordinal=0,
            timeout_s=goal.limits.seconds(PLAN),
            text=goal.text,
            input=goal.input,
            items=goal.items,
            tools=goal.tools,
            model=goal.model,
            max_subtasks=goal.limits.max_subtasks,
            priority=goal.priority,
            weight=goal.rules.weight,
            grant=state.grant,
            notes=goal.notes,
        )
    if task == ANSWER:
        return MakeAnswer(
            job=submitted.job,
            task=task,
            attempt=state.attempt,
            ordinal=len(job.nodes) + 1,
            timeout_s=goal.limits.seconds(ANSWER),
            text=goal.text,
            model=goal.model,
            results=results_of(job, given(job)),
            priority=goal.priority,
            weight=goal.rules.weight,
            grant=state.grant,
            join=goal.join,
            schema=goal.answer_schema,
            contradictions=job.decided.contradictions,
        )
    return run_sub_task(job, task, state)


def run_sub_task(job: Open, task: TaskId, state: Ready) -> RunSubTask:
    """The command of an attempt of a sub-task of the plan."""
    submitted, goal = job.submitted, job.submitted.goal
    node = job.nodes[task]
    spec = node.task
    candidate = is_candidate(goal, node)
    share = spec.input
    notes, notes_at = seen(job) if granted(job, task) else (None, -1)
    free = growth(job, task)
    if state.resume is not None and goal.grow and spec.goal:
        free = max(1, free)  # without the tool, what it proposed before it waited would be forgotten
    return RunSubTask(
        job=submitted.job,
        task=task,
        attempt=state.attempt,
        ordinal=node.ordinal,
        timeout_s=goal.limits.seconds(spec.kind),
        goal=spec.goal,
        kind=spec.kind,
        tool=spec.tool,
        args=spec.args,
        model=spec.model or goal.model,
        tools=goal.tools,
        input=None if share is None else goal.input,
        items=share if isinstance(share, tuple) else None,
        dep=results_of(job, spec.dep) if spec.dep else (),
        priority=goal.priority,
        weight=goal.rules.weight,
        alone=alone(job),
        grant=state.grant,
        fingerprint=goal.join.strategy == "vote" or goal.join.duplicates != "keep",
        schema=goal.answer_schema if may_be_the_answer(job) else None,
        text=goal.text if candidate else None,
        growth=free,
        notes=notes,
        notes_at=notes_at,
        ask="tools" in goal.approve,
        may_submit=SUBMIT in goal.tools and goal.depth < DEPTH,
        depth=goal.depth,
        resume=state.resume,
    )


def hedge_command(job: Open, task: TaskId, step: Step, state: Ready) -> RunSubTask:
    """The command of the hedge of a sub-task: the same work, begun from the start by the next model.

    Child goals are for one of the two to submit.
    """
    of = step.of[0].task
    return replace(
        run_sub_task(job, of, state),
        task=task,
        ordinal=step.ordinal,
        hedge_of=of,
        fallback=fallback(job, of, step.beside) + 1,
        may_submit=False,
    )


def fallback(job: Open, task: TaskId, attempt: int) -> int:
    """How many attempts of a sub-task came before this one in this revision: the next model takes over."""
    return attempt - 1 - job.revision.before(task)
