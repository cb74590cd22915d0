"""What the end of a job is told to others: to the parent that waits for it, and to its tenant's account."""

from collections.abc import Iterator

from streams.core.commands import Answer, Tell
from streams.core.events import ChildAnswered, JobCancelled, PlaceReturned
from streams.core.states import Open, SubTaskState, Succeeded, Suspended
from streams.core.values import ACCOUNT, INLINE_SET_BYTES, Inline, JobId, Usage, Value


def told(job: Open, answer: Answer, *, spent: Usage) -> Iterator[Tell]:
    """The events that its answer leads to elsewhere.

    Args:
        spent: What the job has spent in this revision, and what its attempts may still spend.
    """
    goal = job.submitted.goal
    if goal.parent is not None and goal.asker is not None:
        yield Tell(
            event=ChildAnswered(
                job=goal.parent,
                task=goal.asker.task,
                attempt=goal.asker.attempt,
                call=goal.asker.call,
                child=answer.job,
                outcome=answer.outcome,
                answer=answer.answer,
                size=_size(job, answer.answer),
                reason=answer.reason,
            )
        )
    for state in job.states.values():
        yield from orphaned(job, state, "has ended")
    if job.decided.asked:
        yield Tell(
            event=PlaceReturned(
                job=account_of(answer.job), of=answer.job, revision=answer.revision, spent=spent
            )
        )


def orphaned(job: Open, state: SubTaskState, why: str) -> Iterator[Tell]:
    """The word to the child that an attempt waits for, where nobody needs that attempt any more."""
    if isinstance(state, Suspended) and state.child is not None:
        reason = f"{job.submitted.job}, which waited for it, {why}"
        yield Tell(event=JobCancelled(job=state.child, by="its parent", reason=reason))


def _size(job: Open, answer: Value | None) -> int:
    """Bytes of an answer's JSON: those of the result that it is, or as much as there may be inline."""
    if not isinstance(answer, Inline):
        return 0 if answer is None else answer.size
    results = (state for state in job.states.values() if isinstance(state, Succeeded))
    return next((state.size for state in results if state.result is answer), INLINE_SET_BYTES)


def account_of(job: JobId) -> JobId:
    """The key of the account of a job's tenant."""
    return f"{job.partition('/')[0]}/{ACCOUNT}"
