"""The attempts of one process: each is run by one task at a time, and known for a while after its end."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from streams.attempt import RunningAttempt
from streams.stops import Stops

REMEMBER_S = 15.0
"""Seconds that a finished attempt is remembered, for deliveries that come again in a rebalance: from its
end, the last rebalance, or the last moment without the group's word, whichever is last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """An attempt that has begun, and is not over."""

    key: bytes
    lane: int
    attempt: RunningAttempt


class Attempts:
    """Tasks that run commands, by the attempt's key.

    A task's result says whether the command is done: False where it goes on elsewhere.

    Args:
        held: Whether a task's command is still unacknowledged on a lane of ours.

    Attributes:
        begun: By task: those that are under way and may have calls to pay for.
        moved: When the last one began or ended, on the loop's clock; seconds.
        broken: What ended a task that should have had a result.
        stops: Which of them work for nobody any more.
        draining: Whether it is right that attempts are cancelled.
    """

    def __init__(self, held: "Callable[[asyncio.Task[bool]], bool]") -> None:
        self._held = held
        self._tasks: dict[bytes, asyncio.Task[bool]] = {}
        self._by_key: dict[bytes, asyncio.Task[bool]] = {}
        self._resumed: set[bytes] = set()
        self._time = asyncio.get_running_loop().time
        self.begun: dict[asyncio.Task[bool], Begun] = {}
        self.moved = self._unsettled = self._time()
        self.broken: BaseException | None = None
        self.stops = Stops()
        self.draining = False

    def task(self, key: bytes, work: Callable[[], Coroutine[Any, Any, bool]]) -> "asyncio.Task[bool]":
        """The task that runs it: one that runs or has just finished here, or a new one."""
        task = self._tasks.get(key)
        if task is None or self._is_over_here(task):
            task = asyncio.create_task(work(), name=key.decode())
            self._tasks[key] = task
            if b"#" in key:  # as of streams.suspension.run_key: no attempt's own key has one
                self._resumed.add(key)
            task.add_done_callback(lambda done: self._forget_later(key, done))
        return task

    def begin(self, begun: Begun) -> None:
        """The current task's attempt has begun."""
        task: asyncio.Task[bool] | None = asyncio.current_task()
        assert task is not None
        self.step()
        self.begun[task] = begun
        self._by_key[begun.key] = task

    def stop(self, key: bytes, why: str) -> bool:
        """Nobody needs this attempt any more; False where nothing of it is under way here.

        The lane may have been ours before: then a run from that time, which makes the calls that were
        under way, is stopped as well as the one that waits for it.
        """
        names = (key, *(each for each in self._resumed if each.startswith(b"%b#" % key)))
        tasks = (task for name in names for task in (self._by_key.get(name), self._tasks.get(name)))
        found = [task for task in dict.fromkeys(tasks) if task and not task.done()]
        for task in found:
            if task in self.begun:
                self.begun[task].attempt.stop(why)
            self.stops.stop(task, why)
        return bool(found)

    def step(self) -> None:
        """There is progress."""
        self.moved = self._time()

    def unsettled(self) -> None:
        """What was acknowledged may not be committed, and come again."""
        self._unsettled = self._time()

    async def ended_here(self, key: bytes) -> bool:
        """Wait for the attempt's run here from when the lane was ours before; True where it told its end.

        Where it did not, the replies of its calls are on the journal now.
        """
        before = self._by_key.get(key)
        if before is None:
            return False
        await asyncio.wait([before])
        return is_done(before)

    def cancel(self, tasks: "Iterable[asyncio.Task[bool]]") -> None:
        """Cancel those of *tasks* that have not begun; they are delivered again, here or elsewhere."""
        for task in tasks:
            if task not in self.begun:
                task.cancel()

    def _is_over_here(self, task: "asyncio.Task[bool]") -> bool:
        """It does not bring the attempt to its end: it was cancelled, or the lane moved meanwhile."""
        if task.done():
            return not is_done(task)
        return task.cancelling() > 0 or (task in self.begun and self.begun[task].attempt.moved)

    def _forget_later(self, key: bytes, task: "asyncio.Task[bool]") -> None:
        later = asyncio.get_running_loop().call_later

        def forget() -> None:
            if (left := self._unsettled + REMEMBER_S - self._time()) > 0 and is_done(task):
                later(left, forget)
            elif self._held(task):
                later(REMEMBER_S, forget)  # behind a slow one: a rebalance delivers it again
            elif self._tasks.get(key) is task:
                del self._tasks[key]
                self._resumed.discard(key)

        self.step()
        self.stops.forget(task)
        begun = self.begun.pop(task, None) is not None
        if self._by_key.get(key) is task:
            del self._by_key[key]
        if task.cancelled():
            if begun and not self.draining:
                self.broken = asyncio.CancelledError(f"{key.decode()} was cancelled by none of us")
        elif (error := task.exception()) is not None:
            self.broken = error
        if is_done(task):
            later(REMEMBER_S, forget)
        else:
            forget()


def is_done(task: "asyncio.Task[bool]") -> bool:
    """Whether a task that has ended brought its command to its end."""
    return not task.cancelled() and task.exception() is None and task.result()
