"""What the end of a job is told to others: to the parent that waits for it, and to its tenant's account."""

from collections.abc import Iterator

from streams.core.commands import Answer, Tell
from streams.core.events import ChildAnswered, PlaceReturned
from streams.core.states import Open
from streams.core.values import ACCOUNT, JobId, Usage


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
                reason=answer.reason,
            )
        )
    if job.decided.asked:
        yield Tell(
            event=PlaceReturned(
                job=account_of(answer.job), of=answer.job, revision=answer.revision, spent=spent
            )
        )


def account_of(job: JobId) -> JobId:
    """The key of the account of a job's tenant."""
    return f"{job.partition('/')[0]}/{ACCOUNT}"
