"""Tools that break: each the first time it is asked for a name, and never again for that one.

What was broken already is known by files, since a worker may not live to remember it.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from agents import crew
from agents.tools.local import LocalTools, local_tool
from agents.tools.noop import noop

BREAKING: Final = ("dies_once", "hangs_once", "blocks_once")
BLOCKED_S: Final = 15.0
"""Seconds that a thread is kept, which nobody can stop: longer than the attempt's time."""

Name = Annotated[str, Field(description="What it is asked for.")]


def breaking_tools(place: Path) -> LocalTools:
    """One that does nothing, as it ships, and those that break.

    Args:
        place: A directory of the round, the same for all its workers.
    """

    def first(kind: str, name: str) -> bool:
        try:
            (place / f"{kind}-{name}").touch(exist_ok=False)
        except FileExistsError:
            return False
        except OSError:  # the disk is full
            return False
        return True

    async def dies_once(name: Name) -> str:
        """Take the whole process along, as a fault in native code does."""
        if first("died", name):
            os.kill(os.getpid(), signal.SIGKILL)
        return "ok"

    async def hangs_once(name: Name) -> str:
        """Never return."""
        if first("hung", name):
            await asyncio.Event().wait()
        return "ok"

    def blocks_once(name: Name) -> str:
        """Keep a thread."""
        if first("blocked", name):
            time.sleep(BLOCKED_S)
        return "ok"

    functions: tuple[Callable[..., Any], ...] = (noop, dies_once, hangs_once, blocks_once)
    return LocalTools(local_tool(function) for function in functions)


def offer(place: Path) -> None:
    """From now on the crew of this process has them."""
    vars(crew)["local_tools"] = lambda _: breaking_tools(place)
