"""The timers of one partition: what is due is sent to the log as an event, until the fold takes it.

The fold sees the broker's clock only, through the events' append times. Here that clock is
estimated, from the last event's time and the monotonic seconds since; a timer sent too early is
ignored by the fold and comes again.
"""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TypeAlias

from streams.core.accounts import waits, woken
from streams.core.backoff import backoff
from streams.core.due import Timer, again_at, deadline, due_at, timer
from streams.core.events import DeadlinePassed
from streams.core.paying import asked_again
from streams.core.states import Account, Hold, Job, Open, Released, Running, SubTaskState
from streams.core.values import JobId, TaskId

AGAIN_MS = 1000

OUTAGE_MS = 3_000
"""The broker's clock this much ahead of our estimate means that nobody looked after the partition."""

AT_ONCE = 250
"""Timers told between two batches: half of what a batch folds. Where a hundred thousand are due at the same
time, to tell them all again each second would put them on the log faster than they can be folded."""

KEPT = 1_024
"""Timers that are kept without looking for moot ones."""

WAKE_MS = 60_000
"""An account at which somebody waits is looked after so often."""

HELD: TaskId = "@held"
"""In place of a sub-task: the job waits for its account."""

WAITED_FOR: TaskId = "@waited-for"
"""In place of a sub-task: somebody waits at the account."""

Entry: TypeAlias = tuple[int, int, JobId, TaskId | None, SubTaskState | Hold | None, int]
"""When due, number, job, sub-task and its state (None for the job's deadline), outages until then."""


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
        self._heap: list[Entry] = []
        self._outages = 0
        self._held = 0
        self._sweep_at = KEPT
        self._order = count()
        self._at, self._seen = 0, monotonic()

    def seen(self, at: int) -> None:
        """An event of broker time *at* (milliseconds since 1970) was read just now.

        Time in which nobody owned the partition is not an attempt's fault: a lane that was down
        as well goes on with its attempts now, and an overdue one would be paid twice.
        """
        behind = at - self.now()
        if self._at and behind > OUTAGE_MS:
            self._outages += behind
        self._at, self._seen = at, self._monotonic()

    def now(self) -> int:
        """The broker's clock, estimated, in milliseconds since 1970."""
        return self._at + int((self._monotonic() - self._seen) * 1000)

    def arm(self, before: Job, after: Job, *, ahead: float = 0.0) -> None:
        """Set the timers that the change from *before* to *after* calls for.

        Args:
            ahead: As of :func:`streams.core.due.due_at`.
        """
        old_hold, hold = held(before), held(after)
        self._held += (hold is not None) - (old_hold is not None)
        if waits(after) and not waits(before):
            assert isinstance(after, Account)
            self._push(self.now() + WAKE_MS, after.key, WAITED_FOR, None)
        if not isinstance(after, Open):
            return
        if hold is not None and hold is not old_hold:
            self._push(again_at(hold.since, self.now(), self._held), after.submitted.job, HELD, hold)
        old = before.states if isinstance(before, Open) else {}
        job = after.submitted.job
        begins = not isinstance(before, Open) or before.revision is not after.revision
        if begins and (end := deadline(after)) is not None:
            self._push(end, job, None, None)
        for task, state in after.states.items():
            if old.get(task) is state:
                continue
            due = due_at(after, task, state, grace_ms=self._grace_ms, ahead=ahead)
            if due is not None:
                self._push(due, job, task, state)

    def wait(self) -> float | None:
        """Seconds until the next one may be due; None without any."""
        return max(0.0, (self._heap[0][0] - self.now()) / 1000) if self._heap else None

    def due(self, job_of: Callable[[JobId], Job]) -> Iterator[Timer]:
        """What is due now, by the jobs as they are; each comes again in a second until it is moot.

        At most :data:`AT_ONCE`: where more are due at the same time, the rest come after the next batch.
        """
        if len(self._heap) > self._sweep_at:
            self._sweep(job_of)
        now, told = self.now(), 0
        while self._heap and self._heap[0][0] <= now and told < AT_ONCE:
            entry = heappop(self._heap)
            if is_moot(entry, job_of):
                continue
            due, _, name, task, state, outages = entry
            if task is None and not is_over(job_of(name), now):
                continue  # of an earlier revision; this one's own deadline is set
            if isinstance(state, Released | Running) and due + self._outages - outages > now:
                self._push(due + self._outages - outages, name, task, state)
                continue
            event: Timer | None = DeadlinePassed(job=name)
            if task in (HELD, WAITED_FOR):
                if (event := self._of_accounts(entry, job_of(name), now)) is not None:
                    told += 1
                    yield event
                continue
            if task is not None and state is not None and not isinstance(state, Hold):
                attempt = getattr(state, "attempt", 1)
                event = timer(name, task, state, retry_in=backoff(attempt, self._chance()))
            if event is not None:
                self._push(now + AGAIN_MS, name, task, state)
                told += 1
                yield event

    def _of_accounts(self, entry: Entry, job: Job, now: int) -> Timer | None:
        """A job asks its account again, or an account is looked after; both later once more."""
        _, _, name, task, state, _ = entry
        if isinstance(job, Account):
            self._push(now + WAKE_MS, name, task, None)
            return woken(job, now, self._chance())
        assert isinstance(job, Open)
        assert isinstance(state, Hold)
        self._push(again_at(state.since, now, self._held), name, task, state)
        return asked_again(job)

    def _push(self, due: int, job: JobId, task: TaskId | None, state: SubTaskState | Hold | None) -> None:
        heappush(self._heap, (due, next(self._order), job, task, state, self._outages))

    def _sweep(self, job_of: Callable[[JobId], Job]) -> None:
        """Drop what is moot, long before it would have been due: memory follows the work under way."""
        self._heap = [entry for entry in self._heap if not is_moot(entry, job_of)]
        heapify(self._heap)
        self._sweep_at = max(KEPT, 2 * len(self._heap))


def held(job: Job) -> Hold | None:
    """What the job waits for, where that is a word of its tenant's account."""
    hold = job.decided.hold if isinstance(job, Open) else None
    return hold if hold is not None and hold.on in ("place", "money") else None


def is_over(job: Job, now: int) -> bool:
    """Whether the job's time is over."""
    return isinstance(job, Open) and (end := deadline(job)) is not None and end <= now


def is_moot(entry: Entry, job_of: Callable[[JobId], Job]) -> bool:
    """Whether the job has finished, or the sub-task has moved on by itself."""
    _, _, name, task, state, _ = entry
    job = job_of(name)
    if task == WAITED_FOR:
        return not waits(job)
    if task == HELD:
        return held(job) is not state
    return not isinstance(job, Open) or (task is not None and job.states.get(task) is not state)
