"""Works that go on beside another, and end with it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager


@asynccontextmanager
async def beside(*works: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Run these meanwhile; one that fails is told of at the end."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for end in ended:
        if end is not None and not isinstance(end, asyncio.CancelledError):
            raise end
