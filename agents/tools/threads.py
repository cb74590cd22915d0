"""Threads for tools that block: a bounded number at once, and none that never ends uses up the others.

A thread cannot be stopped. Those of ``concurrent.futures`` and of ``anyio`` keep a place for as long
as a function runs, or the whole process at its exit; so here is an executor of daemon threads.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import copy_context
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Any, Final, TypeVar

T = TypeVar("T")

AT_ONCE: Final = 32
"""Blocking calls at once, of all tools of the process."""

OVERDUE: Final = 8
"""Calls of one tool that may run on though their time is over; then it is called no more until one ends."""


class StillRunning(Exception):
    """Too many earlier calls of this tool run on though their time is over."""


class DaemonThreads(Executor):
    """A thread for each call, which does not keep the process from ending."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Begin at once."""
        future: Future[T] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - whoever waits for it gets it
                future.set_exception(error)
            else:
                future.set_result(result)

        Thread(target=work, name="tool", daemon=True).start()
        return future


@dataclass(slots=True)
class _Call:
    late: bool = False
    ended: bool = False


class Threads:
    """Runs blocking calls of tools.

    A call whose time is over gives its place back at once, though its thread runs on. So that threads
    cannot pile up, a tool with :data:`OVERDUE` of these is called no more until one of them ends.
    """

    def __init__(self, *, at_once: int = AT_ONCE, overdue: int = OVERDUE) -> None:
        self._executor = DaemonThreads()
        self._places = asyncio.Semaphore(at_once)
        self._most = overdue
        self._lock = Lock()
        self._overdue: Counter[str] = Counter()

    def overdue(self, tool: str) -> int:
        """How many calls of a tool run on though their time is over."""
        with self._lock:
            return self._overdue[tool]

    async def run(self, tool: str, call: Callable[[], T]) -> T:
        """Run *call* in a thread, once there is a place; cancelled, it is left to itself.

        Raises:
            StillRunning: too many earlier calls of *tool* have not ended.
        """
        running = _Call()

        def work() -> T:
            try:
                return call()
            finally:
                self._end(tool, running)

        async with self._places:
            if self.overdue(tool) >= self._most:
                raise StillRunning(
                    f"{self._most} earlier calls of {tool} still run though their time is over: "
                    "it is not called until one of them ends"
                )
            loop = asyncio.get_running_loop()
            try:
                return await loop.run_in_executor(self._executor, copy_context().run, work)
            except asyncio.CancelledError:
                self._leave(tool, running)
                raise

    def _leave(self, tool: str, running: _Call) -> None:
        with self._lock:
            if not running.ended:
                running.late = True
                self._overdue[tool] += 1

    def _end(self, tool: str, running: _Call) -> None:
        with self._lock:
            running.ended = True
            if running.late:
                self._overdue[tool] -= 1
