"""Stopped attempts: what a stop cuts short, and what it leaves alone.

A stop may come at any moment of an attempt's life. What waits for a slot, for a reply or for a tool is
cancelled; what is read of an earlier owner's work is read to its end, since it is paid for; an end that
is being told is told.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

Work: TypeAlias = "asyncio.Task[Any]"


class AttemptStopped(Exception):
    """Nobody needs the attempt any more: it makes no further call. The message says why."""


class Stops:
    """Which tasks of this process work for nobody, and which of them a stop may cut short now."""

    def __init__(self) -> None:
        self._why: dict[Work, str] = {}
        self._short: set[Work] = set()

    def stop(self, task: Work, why: str) -> None:
        """The task's attempt is not needed; a task is stopped once."""
        if task in self._why or task.done() or task.cancelling():
            return
        self._why[task] = why
        if task in self._short:
            task.cancel()

    def why(self) -> str:
        """Why the current task is stopped; empty where it is not."""
        return self._why.get(_current(), "")

    def forget(self, task: Work) -> None:
        """The task has ended."""
        self._why.pop(task, None)

    @contextmanager
    def cut_short(self) -> Iterator[None]:
        """What the current task does inside is cancelled by a stop.

        Raises:
            AttemptStopped: it was stopped, before or inside.
        """
        task = _current()
        if why := self._why.get(task):
            raise AttemptStopped(why)
        self._short.add(task)
        try:
            yield
        except asyncio.CancelledError:
            # Somebody else may have cancelled it in the same moment, who knows nothing of this.
            if (stopped := self._why.get(task)) is None or task.uncancel():
                raise
            raise AttemptStopped(stopped) from None
        finally:
            self._short.discard(task)


def _current() -> Work:
    task: Work | None = asyncio.current_task()
    assert task is not None
    return task
