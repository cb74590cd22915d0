"""Attempts that wait for a person or a child job, with neither slot nor place.

Such an attempt goes on later under its own number, from its journal. While it waits no timer of its own runs;
what was granted to it stays granted.
"""

from dataclasses import replace
from typing import Final

from streams.core.commands import CallEnded, Resume
from streams.core.ending import Folded
from streams.core.events import ChildAnswered, SubTaskSuspended
from streams.core.moves import put
from streams.core.results import JOB_EVENTS, partition_of
from streams.core.states import Early, Open, Ready, Released, Running, Suspended
from streams.core.values import INLINE_BYTES, Inline, JobId, Reference, TaskId, Value

NOT_BEGUN = Resume(number=0)
"""Of an attempt that was never suspended."""

EARLY: Final = 4
"""Answers of children that are kept for an attempt before it waits for them: they stand in its job's row."""


def suspend(job: Open, event: SubTaskSuspended) -> Folded:
    """An attempt waits, and gives up its place; it goes on at once where its child was faster."""
    state = job.states.get(event.task)
    if not isinstance(state, Ready | Released | Running) or state.attempt != event.attempt:
        return job, ()
    before = state.resume or NOT_BEGUN
    if event.number != before.number + 1:
        return job, ()  # told again: it has gone on since
    suspended = Suspended(
        attempt=state.attempt,
        on=event.on,
        call=event.call,
        since=event.at,
        resume=Resume(number=event.number, journal=event.journal, ended=before.ended),
        tool=event.tool,
        args=event.args,
        child=event.child,
        grant=state.grant,
        so_far=event.so_far,
    )
    early = job.decided.early
    mine = next((each for each in early if _is_of(each, event)), None)
    if mine is not None:
        rest = tuple(each for each in early if each is not mine)
        job = replace(job, decided=replace(job.decided, early=rest))
    job = put(job, {event.task: suspended})
    return (job if mine is None else resumed(job, event.task, suspended, mine.ended)), ()


def answered(job: Open, event: ChildAnswered) -> Folded:
    """A child job has its answer: the attempt that waits for it goes on.

    A child may be faster than the word that its parent waits. Its answer is kept then, the first one of it:
    an attempt waits for one child after the other, so :data:`EARLY` of them are more than it has out.
    """
    ended = CallEnded(
        call=event.call,
        outcome=event.outcome,
        child=event.child,
        answer=None if event.answer is None else _light(job, event, event.answer),
        reason=event.reason,
    )
    match job.states.get(event.task):
        case Suspended(on="child", call=event.call, attempt=event.attempt) as state:
            if state.child != event.child:
                return job, ()
            return resumed(job, event.task, state, ended), ()
        case Ready() | Released() | Running() as state if state.attempt == event.attempt:
            if any(each.call == event.call for each in (state.resume or NOT_BEGUN).ended):
                return job, ()
            return _kept(job, Early(task=event.task, attempt=event.attempt, ended=ended)), ()
        case _:
            return job, ()


def _kept(job: Open, early: Early) -> Open:
    """The job with an answer that nobody waits for yet; those of earlier attempts are of no use any more."""
    before = job.decided.early
    same = [each for each in before if (each.task, each.attempt) == (early.task, early.attempt)]
    if len(same) >= EARLY or any(_names(each) == _names(early) for each in same):
        return job
    rest = (each for each in before if each.task != early.task)
    return replace(job, decided=replace(job.decided, early=(*rest, *same, early)))


def _names(early: Early) -> tuple[str, JobId | None]:
    return early.ended.call, early.ended.child


def resumed(job: Open, task: TaskId, state: Suspended, ended: CallEnded) -> Open:
    """The job once the call that an attempt waits for has come to this."""
    resume = replace(state.resume, ended=(*state.resume.ended, ended))
    return put(job, {task: Ready(attempt=state.attempt, grant=state.grant, resume=resume)})


def _light(job: Open, event: ChildAnswered, answer: Value) -> Value:
    """A child's answer as rows and commands carry it: a large one by claim check, to this very event."""
    if not isinstance(answer, Inline) or event.size <= INLINE_BYTES:
        return answer
    return Reference(
        topic=JOB_EVENTS,
        partition=partition_of(job.submitted.job, job.submitted.lanes),
        offsets=(event.offset,),
        size=event.size,
        digest="",
    )


def _is_of(each: Early, event: SubTaskSuspended) -> bool:
    told = event.task, event.attempt, event.call, event.child
    return (each.task, each.attempt, *_names(each)) == told
