"""Pacing: whose commands go out next, so that a flood neither drowns the lanes nor starves anyone."""

from collections.abc import Callable

from streams.core.commands import Command
from streams.core.release import places, release
from streams.core.states import Job, Open
from streams.core.turns import Turns
from streams.core.values import JobId


class Pacing:
    """Releases at most *window* sub-tasks of one partition that are unfinished at once.

    Tenants take turns by their weights; within one, jobs of higher priority go first, and older ones among
    equals, and now and then the one that has waited longest: see :mod:`streams.core.turns`.
    What an event costs here does not grow with the number of jobs that wait.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._outstanding = 0
        self._turns: Turns[str, JobId] = Turns()
        self._queued: set[JobId] = set()

    @property
    def outstanding(self) -> int:
        """Sub-tasks released and unfinished."""
        return self._outstanding

    def touch(self, before: Job, after: Job) -> None:
        """A job has changed."""
        self._outstanding += out(after) - out(before)
        if isinstance(after, Open):
            self._queue(after)

    def release(self, job_of: Callable[[JobId], Job], at: int) -> list[tuple[Open, tuple[Command, ...]]]:
        """Let go what may go now: each job as it is afterwards, with its commands.

        Args:
            at: Broker time, milliseconds since 1970.
        """
        released: dict[JobId, tuple[Open, tuple[Command, ...]]] = {}

        def now(name: JobId) -> Job:
            return released[name][0] if name in released else job_of(name)

        def wants(name: JobId) -> bool:
            self._queued.discard(name)
            job = now(name)
            return isinstance(job, Open) and places(job) > 0

        while (left := self._window - self._outstanding) > 0 and (name := self._turns.take(wants)):
            before = now(name)
            assert isinstance(before, Open)
            # One at a time while other tenants wait, all at once while none does.
            count = 1 if self._turns.others(before.submitted.goal.tenant) else min(places(before), left)
            after, commands = release(before, count, at)
            self._outstanding += len(commands)
            released[name] = after, (*released.get(name, (after, ()))[1], *commands)
            self._queue(after)
        return list(released.values())

    def _queue(self, job: Open) -> None:
        name = job.submitted.job
        if name not in self._queued and places(job) > 0:
            self._queued.add(name)
            goal = job.submitted.goal
            self._turns.add(
                goal.tenant,
                name,
                priority=goal.priority,
                since=job.submitted.offset,
                weight=goal.rules.weight,
            )


def out(job: Job) -> int:
    """Sub-tasks of the job released and unfinished."""
    return job.outstanding if isinstance(job, Open) else 0
