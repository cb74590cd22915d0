"""Sub-tasks moving from state to state, and the job's counters kept in step with them."""

from collections.abc import Mapping

from streams.core.states import (
    Failed,
    Open,
    Ready,
    Released,
    Running,
    Skipped,
    Stopped,
    SubTaskState,
    Succeeded,
    Waiting,
)
from streams.core.values import TaskId, Usage

OUT = (Released, Running)
"""The states of a sub-task that is released and unfinished."""


def spend(job: Open, usage: Usage) -> Open:
    """The job with what an attempt cost."""
    # The constructor rather than dataclasses.replace, here and below: it is four times as fast.
    return Open(
        submitted=job.submitted,
        nodes=job.nodes,
        states=job.states,
        ready=job.ready,
        outstanding=job.outstanding,
        succeeded=job.succeeded,
        failed=job.failed,
        skipped=job.skipped,
        usage=job.usage + usage,
        revision=job.revision,
        lost=job.lost,
        need=job.need,
        steps=job.steps,
        notes=job.notes,
        decided=job.decided,
        spending=job.spending,
    )


def put(job: Open, changes: Mapping[TaskId, SubTaskState]) -> Open:
    """The job with some sub-tasks in another state, its counters kept in step."""
    states = dict(job.states)
    ready, outstanding = job.ready, job.outstanding
    succeeded, failed, skipped = job.succeeded, job.failed, job.skipped
    for task, state in changes.items():
        before = states.get(task)
        if isinstance(before, Ready):
            at = ready.index(task)
            ready = ready[:at] + ready[at + 1 :]
        outstanding += isinstance(state, OUT) - isinstance(before, OUT)
        states[task] = state
        match state:
            case Ready():
                ready = (*ready, task)
            case Succeeded() if task in job.nodes:
                succeeded += 1
            case Failed() if task in job.nodes:
                failed += 1
            case Skipped() | Stopped() if task in job.nodes:
                skipped += not isinstance(before, Skipped | Stopped)
            case _:
                pass
    return Open(
        submitted=job.submitted,
        nodes=job.nodes,
        states=states,
        ready=ready,
        outstanding=outstanding,
        succeeded=succeeded,
        failed=failed,
        skipped=skipped,
        usage=job.usage,
        revision=job.revision,
        lost=job.lost,
        need=job.need,
        steps=job.steps,
        notes=job.notes,
        decided=job.decided,
        spending=job.spending,
    )


def first(job: Open, task: TaskId) -> Ready:
    """The sub-task before its first attempt of this revision."""
    return Ready(attempt=job.revision.before(task) + 1)


def succeed(job: Open, task: TaskId, state: Succeeded) -> Open:
    """The sub-task has its result: its dependants miss one less, and those that miss none are ready."""
    changes: dict[TaskId, SubTaskState] = {task: state}
    node = job.nodes.get(task)
    for name in node.dependants if node else ():
        waiting = job.states[name]
        if isinstance(waiting, Waiting):
            missing = waiting.missing - 1
            changes[name] = Waiting(missing=missing) if missing else first(job, name)
    return put(job, changes)


def fail_for_good(job: Open, task: TaskId, state: Failed) -> Open:
    """The sub-task failed, and whatever needs it, directly or not, will never run."""
    changes: dict[TaskId, SubTaskState] = {task: state}
    skipped = Skipped(reason=f"skipped: {task} failed")
    behind = list(job.nodes[task].dependants)
    while behind:
        name = behind.pop()
        if name not in changes and isinstance(job.states[name], Waiting):
            changes[name] = skipped
            behind.extend(job.nodes[name].dependants)
    return put(job, changes)
