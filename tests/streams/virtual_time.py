"""Runs coroutines on an event loop whose time stands still while there is work and jumps over waits."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import looptime

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T], *, end_s: float = 36_000.0) -> T:
    """Run *coroutine* to its end, in virtual time.

    Raises:
        TimeoutError: it did not end in *end_s* virtual seconds.
    """

    async def bounded() -> T:
        async with asyncio.timeout(end_s):
            return await coroutine

    # An idle loop with nothing to wait for would wait forever: look for that every real 0.1 s.
    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop(idle_step=0.1)) as runner:
        return runner.run(bounded())
