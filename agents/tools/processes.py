"""Processes for tools that compute: a call whose time is over ends with its process.

``pebble`` keeps the pool: the executors of ``concurrent.futures`` and of ``loky`` cannot stop a call
that runs.
"""

import asyncio
import multiprocessing
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from threading import Lock
from typing import Any, Final

import orjson
from pebble import ProcessExpired, ProcessPool

from agents.plain_json import dumps, plain, scrub, words_of
from streams.core.values import Json

MAX_ERROR: Final = 2_000
"""Characters of an exception that come back from a process."""


class ToolFailed(Exception):
    """What a function raised in its process, in words: type and text."""


class Processes:
    """Runs calls of tools in processes, as many at once as there are cores. They begin with the first call.

    Args:
        workers: How many; None: one for each core.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or os.cpu_count() or 1
        self._pool: ProcessPool | None = None
        self._lock = Lock()

    async def run(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Json:
        """Call a function of a module in a process. Cancelled, its process is killed and replaced.

        Raises:
            ToolFailed: it raised something, or its process died.
        """
        # In a thread, because starting processes and pickling block.
        future = await asyncio.to_thread(self._schedule, function, dict(arguments))
        try:
            ended = orjson.loads(await asyncio.wrap_future(future))
        except ProcessExpired as died:
            raise ToolFailed(f"its process died with exit code {died.exitcode}") from None
        if "error" in ended:
            raise ToolFailed(ended["error"])
        output: Json = ended["output"]
        return output

    async def close(self) -> None:
        """End all processes, those at work too."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(_end, pool)

    def _schedule(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        with self._lock:
            if self._pool is None:
                # Not by fork: this process has threads, and a fork would take their locks along.
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPool(self._workers, context=context)
            return self._pool.schedule(_call, args=(function.__module__, function.__qualname__, arguments))


def found_by_name(function: Callable[..., Any]) -> bool:
    """A process that knows module and name of the function finds it there."""
    if function.__module__ == "__main__":
        return False
    try:
        return _find(function.__module__, function.__qualname__) is function
    except (ImportError, AttributeError):
        return False


def _find(module: str, name: str) -> Any:
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _call(module: str, name: str, arguments: dict[str, Any]) -> bytes:
    """In the process: the function's result as JSON, or what it raised."""
    try:
        output = plain(_find(module, name)(**arguments))
    except BaseException as error:  # noqa: BLE001 - a tool may raise anything, and the model is told
        return dumps({"error": scrub(f"{type(error).__name__}: {words_of(error)}"[:MAX_ERROR])})
    return dumps({"output": output})


def _end(pool: ProcessPool) -> None:
    pool.stop()  # type: ignore[no-untyped-call]  # it has no types of its own
    pool.join()
