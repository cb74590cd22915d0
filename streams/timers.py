"""The timers of one partition: what is due is sent to the log as an event, until the fold takes it.

The fold sees the broker's clock only, through the events' append times. Here that clock is
estimated, from the last event's time and the monotonic seconds since; a timer sent too early is
ignored by the fold and comes again.
"""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count

from streams.core.backoff import backoff
from streams.core.due import Timer, deadline, due_at, timer
from streams.core.events import DeadlinePassed
from streams.core.states import Job, Open, SubTaskState
from streams.core.values import JobId, TaskId

AGAIN_MS = 1000


class Timers:
    """What becomes due when on one partition.

    Args:
        monotonic: Seconds of a clock that never steps back.
        chance: Numbers between 0 and 1, for the jitter of backoffs.
        grace_s: Seconds to wait for a lane's own word on a late attempt.
    """

    def __init__(
        self, *, monotonic: Callable[[], float], chance: Callable[[], float], grace_s: float
    ) -> None:
        self._monotonic, self._chance, self._grace_ms = monotonic, chance, int(grace_s * 1000)
        self._heap: list[tuple[int, int, JobId, TaskId | None, SubTaskState | None]] = []
        self._order = count()
        self._at, self._seen = 0, monotonic()

    def seen(self, at: int) -> None:
        """An event of broker time *at* (milliseconds since 1970) was read just now."""
        self._at, self._seen = at, self._monotonic()

    def now(self) -> int:
        """The broker's clock, estimated, in milliseconds since 1970."""
        return self._at + int((self._monotonic() - self._seen) * 1000)

    def arm(self, before: Job, after: Job) -> None:
        """Set the timers that the change from *before* to *after* calls for."""
        if not isinstance(after, Open):
            return
        old = before.states if isinstance(before, Open) else {}
        job = after.submitted.job
        if not isinstance(before, Open) and (end := deadline(after)) is not None:
            self._push(end, job, None, None)
        for task, state in after.states.items():
            due = None if old.get(task) is state else due_at(after, state, grace_ms=self._grace_ms)
            if due is not None:
                self._push(due, job, task, state)

    def wait(self) -> float | None:
        """Seconds until the next one may be due; None without any."""
        return max(0.0, (self._heap[0][0] - self.now()) / 1000) if self._heap else None

    def due(self, job_of: Callable[[JobId], Job]) -> Iterator[Timer]:
        """What is due now, by the jobs as they are; each comes again in a second until it is moot."""
        now = self.now()
        while self._heap and self._heap[0][0] <= now:
            _, _, name, task, state = heappop(self._heap)
            job = job_of(name)
            if not isinstance(job, Open):
                continue
            event: Timer | None = DeadlinePassed(job=name)
            if task is not None:
                if state is None or job.states.get(task) is not state:
                    continue  # it moved on by itself
                attempt = getattr(state, "attempt", 1)
                event = timer(name, task, state, retry_in=backoff(attempt, self._chance()))
            if event is not None:
                self._push(now + AGAIN_MS, name, task, state)
                yield event

    def _push(self, due: int, job: JobId, task: TaskId | None, state: SubTaskState | None) -> None:
        heappush(self._heap, (due, next(self._order), job, task, state))
