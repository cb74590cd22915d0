"""How far jobs are, for whoever watches them: their events, folded by the core's own rules."""

from collections import Counter
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from streams.core.commands import Answer, Outcome
from streams.core.events import Event
from streams.core.job import absorb
from streams.core.joining import OF_THE_JOIN
from streams.core.states import Account, Finished, Job, New, Open, Running, Stopped
from streams.core.values import ANSWER, NO_USAGE, Inline, JobId, Usage

Phase: TypeAlias = Literal["planning", "running", "answering", "finished"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """A job as it stands. Planning and synthesis are phases, not counted among the sub-tasks.

    Attributes:
        text: The goal in words; empty where they are not in the record itself.
        outcome: How the job ended, or None before that.
        reason: For a person, where it did not end as ``succeeded``.
        total: Sub-tasks of the plan, 0 until there is one. It is the sum of the six numbers below.
        waiting: Sub-tasks not begun, or between two attempts.
        running: Sub-tasks with an attempt under way.
        failed: Sub-tasks that failed for good.
        skipped: Sub-tasks that will not run, since a dependency failed for good.
        unfinished: Sub-tasks that had no end when the job ended, or were stopped.
        usage: What the job has spent so far, planner and synthesis included.
    """

    job: JobId
    text: str
    phase: Phase
    outcome: Outcome | None = None
    reason: str = ""
    total: int = 0
    waiting: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    unfinished: int = 0
    usage: Usage = NO_USAGE

    @property
    def finished(self) -> int:
        """Sub-tasks that will change no more, however they ended."""
        return self.succeeded + self.failed + self.skipped + self.unfinished


class Progress:
    """Follows any number of jobs, event by event. An event seen twice changes nothing."""

    def __init__(self) -> None:
        self._jobs: dict[JobId, Job] = {}
        self._texts: dict[JobId, str] = {}
        self._answers: dict[JobId, Answer] = {}

    def feed(self, event: Event) -> None:
        """Take the next event of its job's log; jobs whose beginning was not seen are passed over."""
        before = self._jobs.get(event.job, New())
        after, effects = absorb(before, event)
        if isinstance(after, New):
            return
        self._jobs[event.job] = after
        if isinstance(after, Open):
            text = after.submitted.goal.text
            self._texts[event.job] = (
                text.value if isinstance(text, Inline) and isinstance(text.value, str) else ""
            )
        for effect in effects:
            if isinstance(effect, Answer):
                self._answers[event.job] = effect

    def jobs(self) -> tuple[JobProgress, ...]:
        """All jobs, in the order in which they were first seen."""
        return tuple(self.of(job) for job in self._jobs)

    def of(self, job: JobId) -> JobProgress:
        """One job.

        Raises:
            KeyError: no event of it was fed.
        """
        text = self._texts.get(job, "")
        match self._jobs[job]:
            case Open() as state:
                return _under_way(state, text)
            case Finished():
                return _answered(self._answers[job], text)
            case New() | Account():
                raise KeyError(job)
            case other:
                assert_never(other)


def _under_way(job: Open, text: str) -> JobProgress:
    joining = ANSWER in job.states or any(step.role in OF_THE_JOIN for step in job.steps.values())
    phase: Phase = "answering" if joining else "running" if job.nodes else "planning"
    running = sum(isinstance(job.states[name], Running) for name in job.nodes)
    stopped = sum(isinstance(job.states[name], Stopped) for name in job.nodes)
    return JobProgress(
        job=job.submitted.job,
        text=text,
        phase=phase,
        total=len(job.nodes),
        waiting=len(job.nodes) - job.ended - running,
        running=running,
        succeeded=job.succeeded,
        failed=job.failed,
        skipped=job.skipped - stopped,
        unfinished=stopped,
        usage=job.usage,
    )


def _answered(answer: Answer, text: str) -> JobProgress:
    ends = Counter(line.outcome for line in answer.subtasks)
    return JobProgress(
        job=answer.job,
        text=text,
        phase="finished",
        outcome=answer.outcome,
        reason=answer.reason,
        total=len(answer.subtasks),
        succeeded=ends["succeeded"],
        failed=ends["failed"],
        skipped=ends["skipped"],
        unfinished=ends["unfinished"],
        usage=answer.usage,
    )
