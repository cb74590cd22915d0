"""Locks between processes: an advisory lock on a file, free again as soon as no process holds it.

The kernel keeps them, so they survive no crash, and no process id can be mistaken for another's.
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from streams.broker.failures import BrokerFailed

_LOOK_AGAIN_S: Final = 0.05


def take(path: Path) -> int | None:
    """Lock *path* and give the descriptor that holds the lock, or None where another has it.

    A child process that inherits the descriptor holds the lock too, until all have closed it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def is_held(path: Path) -> bool:
    """Whether some process holds the lock on *path*."""
    if not path.exists():
        return False
    descriptor = take(path)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


@asynccontextmanager
async def held(path: Path, *, timeout_s: float) -> AsyncIterator[None]:
    """Hold the lock on *path*, waiting for it up to *timeout_s* seconds.

    Raises:
        BrokerFailed: another process did not let go of it in time.
    """
    try:
        async with asyncio.timeout(timeout_s):
            while (descriptor := take(path)) is None:
                await asyncio.sleep(_LOOK_AGAIN_S)
    except TimeoutError:
        raise BrokerFailed(
            f"Another process has held {path} for {timeout_s:.0f} s. Is an installation hanging? "
            f"End it and try again."
        ) from None
    try:
        yield
    finally:
        os.close(descriptor)
