"""What tests of tool servers share: servers that misbehave, and supervisors that are closed at the end."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agents.configuration.values import ToolServer
from agents.tools.mcp.supervisor import Supervisor

HERE = Path(__file__).parent
WITHIN_S = 30.0
"""Seconds that anything may take on a busy machine."""


def stdio(name: str = "tests", fault: str = "", **settings: Any) -> ToolServer:
    """A server on stdin and stdout; ``-S`` starts Python without what it does not need."""
    program = (sys.executable, "-S", str(HERE / "stdio_server.py"))
    return ToolServer(name=name, command=(*program, fault) if fault else program, **settings)


def soon(_: int) -> float:
    """Servers are started again at once."""
    return 0.01


def never(_: int) -> float:
    """Servers are not started again while a test lasts."""
    return 3_600.0


@asynccontextmanager
async def running(server: ToolServer, **options: Any) -> AsyncIterator[Supervisor]:
    """A supervisor whose first start is over."""
    supervisor = Supervisor(server, **{"delay_s": soon, **options})
    supervisor.start()
    try:
        async with asyncio.timeout(WITHIN_S):
            await supervisor.settled()
        yield supervisor
    finally:
        await supervisor.close()


async def until(true: Callable[[], bool]) -> None:
    """Wait until something is so; a process's end or start has no event to wait for.

    Raises:
        TimeoutError: it is not.
    """
    async with asyncio.timeout(WITHIN_S):
        while not true():
            await asyncio.sleep(0.01)


async def up(supervisor: Supervisor) -> None:
    """Wait until a server is up."""
    await until(lambda: supervisor.state.word == "up")
