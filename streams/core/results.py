"""The results of a job's sub-tasks as others see them, bounded in size."""

from collections.abc import Iterable
from zlib import crc32

from streams.core.commands import TaskOutcome, TaskResult
from streams.core.states import Failed, Open, Skipped, Stopped, SubTaskState, Succeeded
from streams.core.values import INLINE_SET_BYTES, Inline, JobId, Json, Reference, TaskId, Value

JOB_EVENTS = "job-events"


def partition_of(job: JobId, partitions: int) -> int:
    """The partition of a job's records on every topic that is keyed by job, the same for every writer.

    CRC-32 (as zlib has it) of the UTF-8 bytes: any language has it, and it never changes, which
    the clients' own default partitioners do not promise.
    """
    return crc32(job.encode()) % partitions


def ended(state: SubTaskState) -> tuple[TaskOutcome, str]:
    """How a sub-task ended, and why without a result."""
    match state:
        case Succeeded():
            return "succeeded", ""
        case Failed(kind=kind, reason=reason):
            return "failed", f"{kind}: {reason}"
        case Skipped(reason=reason):
            return "skipped", reason
        case Stopped(reason=reason):
            return "unfinished", reason
        case _:
            return "unfinished", "the job ended before it"


def results_of(job: Open, tasks: Iterable[TaskId]) -> tuple[TaskResult, ...]:
    """The results of these sub-tasks, the largest by claim check where all together are too large.

    An inline result stands on the log in the event that brought it, so its claim check points there.
    """
    names = tuple(tasks)
    large = too_large(job, names)
    results = []
    for name in names:
        state = job.states[name]
        outcome, reason = ended(state)
        result: Value | None = None
        if isinstance(state, Succeeded):
            result = on_the_log(job, state) if name in large else state.result
        results.append(
            TaskResult(task=name, goal=goal_of(job, name), outcome=outcome, result=result, reason=reason)
        )
    return tuple(results)


def goal_of(job: Open, name: TaskId) -> str:
    """What a sub-task or a step was asked to do, in words."""
    step = job.steps.get(name)
    if step is None:
        return job.nodes[name].task.goal
    if step.text:
        return step.text
    parts = (f"part {p.part} of {p.parts} of {p.task}" if p.parts > 1 else p.task for p in step.of)
    return f"{step.role}: {', '.join(parts)}"


def too_large(job: Open, tasks: Iterable[TaskId]) -> frozenset[TaskId]:
    """The largest inline results, as few as must go by claim check for the rest to fit a record."""
    sizes = {
        name: state.size
        for name in tasks
        if isinstance(state := job.states[name], Succeeded) and isinstance(state.result, Inline)
    }
    total, large = sum(sizes.values()), set()
    for name in sorted(sizes, key=lambda name: sizes[name], reverse=True):
        if total <= INLINE_SET_BYTES:
            break
        total -= sizes[name]
        large.add(name)
    return frozenset(large)


def on_the_log(job: Open, state: Succeeded) -> Reference:
    """A claim check for an inline result: the event that brought it. Its digest is not kept."""
    return Reference(
        topic=JOB_EVENTS,
        partition=partition_of(job.submitted.job, job.submitted.lanes),
        offsets=(state.offset,),
        size=state.size,
        digest="",
    )


def joined(job: Open, tasks: Iterable[TaskId]) -> Inline:
    """The results of these by sub-task, where no synthesis made one text of them."""
    results: dict[str, Json] = {}
    for item in results_of(job, tasks):
        match item.result:
            case Inline(value=value):
                results[item.task] = value
            case Reference() as check:
                results[item.task] = {
                    "topic": check.topic,
                    "partition": check.partition,
                    "offsets": list(check.offsets),
                    "size": check.size,
                    "digest": check.digest,
                }
            case None:
                pass
    return Inline(value=results)
