"""100 sub-agents on one shared client of a tool server, against 100 clients of their own.

python -m bench.tool_servers

Each sub-agent makes some calls, one after the other. The clients of the plain way are mcp's own, each
opened and closed by its sub-agent; over stdio that is a process each. Each way runs in a process of
its own, so that its memory is its own.
"""

import asyncio
import json
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

import psutil
import structlog
from mcp import Client, StdioServerParameters

from agents.configuration.values import ToolServer
from agents.tools.mcp.supervisor import Supervisor
from bench.figures import Figure, markdown
from bench.stage import machine
from bench.tool_server import WORK_S

SUB_AGENTS = 100
CALLS = 5
"""Calls of each sub-agent."""

PROGRAM = (sys.executable, "-m", "bench.tool_server")
WITHIN_S = 900.0
MIB = 1_048_576

Call = Callable[[int], Awaitable[int]]


async def shared_and_own(_: str = "") -> list[Figure]:
    """Both ways, over stdio and over HTTP. The broker is not needed."""
    figures: list[Figure] = []
    for transport in ("stdio", "http"):
        taken = {way: await _apart(way, transport) for way in ("shared", "own")}
        for way, took in taken.items():
            called = f"{transport}, {'one shared client' if way == 'shared' else f'{SUB_AGENTS} clients'}"
            figures += [
                Figure(name=f"{called}: all {SUB_AGENTS * CALLS} calls", value=took["seconds"], unit="s"),
                Figure(name=f"{called}: processes", value=took["processes"], unit=""),
                Figure(name=f"{called}: memory", value=took["mib"], unit="MiB"),
                Figure(name=f"{called}: CPU", value=took["cpu"], unit="s"),
                Figure(name=f"{called}: calls without a result", value=took["failed"], unit="", floor=0)
                if way == "shared"
                else Figure(name=f"{called}: calls without a result", value=took["failed"], unit=""),
            ]
    return figures


async def _apart(way: str, transport: str) -> dict[str, float]:
    """Measure one way in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.tool_servers", way, transport), stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(WITHIN_S):
        said, _ = await process.communicate()
    found: dict[str, float] = json.loads(said)
    return found


async def measure(way: str, transport: str) -> dict[str, float]:
    """Let the sub-agents make their calls; begins with the start of the server or servers."""
    async with AsyncExitStack() as opened:
        port = await _http_server(opened) if transport == "http" else 0
        began = time.perf_counter()
        results = await (_shared(opened, port) if way == "shared" else _own(opened, port))
        seconds = time.perf_counter() - began
        family = [psutil.Process(), *psutil.Process().children(recursive=True)]
        return {
            "seconds": seconds,
            "processes": len(family),
            # What would be free without them; pages that they share count for none.
            "mib": sum(one.memory_full_info().uss for one in family) / MIB,
            "cpu": sum(one.cpu_times().user + one.cpu_times().system for one in family),
            "failed": SUB_AGENTS * CALLS - sum(results),
        }


async def _shared(opened: AsyncExitStack, port: int) -> list[int]:
    where: dict[str, Any] = {"url": f"http://127.0.0.1:{port}/mcp"} if port else {"command": PROGRAM}
    supervisor = Supervisor(ToolServer(name="bench", concurrency=SUB_AGENTS, start_s=60, **where))
    supervisor.start()
    opened.push_async_callback(supervisor.close)
    await supervisor.settled()

    async def call(number: int) -> int:
        reply = await supervisor.call("work", {"number": number}, timeout_s=60)
        return int(reply.error is None and reply.output == number)

    return await asyncio.gather(*(_sub_agent(call) for _ in range(SUB_AGENTS)))


async def _own(opened: AsyncExitStack, port: int) -> list[int]:
    """Clients stay open until all are done, as they do for sub-agents that work at the same time."""
    results: list[int] = []
    done, measured = asyncio.Event(), asyncio.Event()

    def came(with_results: int) -> None:
        results.append(with_results)
        if len(results) == SUB_AGENTS:
            done.set()

    async def one() -> None:
        server = f"http://127.0.0.1:{port}/mcp" if port else None
        plain = StdioServerParameters(command=PROGRAM[0], args=list(PROGRAM[1:]))
        made = 0
        try:
            async with Client(server or plain) as client:

                async def call(number: int) -> int:
                    result = await client.call_tool("work", {"number": number})
                    return int(result.structured_content == {"result": number})

                made = await _sub_agent(call)
                came(made)
                await measured.wait()
        except Exception as broken:  # noqa: BLE001 - of whatever a client raises, it had no results
            sys.stderr.write(f"{broken!r}\n")
            if not made:
                came(0)

    tasks = [asyncio.create_task(one()) for _ in range(SUB_AGENTS)]
    await done.wait()

    async def end() -> None:
        measured.set()
        await asyncio.gather(*tasks)

    opened.push_async_callback(end)
    return results


async def _sub_agent(call: Call) -> int:
    """Calls with a result."""
    return sum([await call(number) for number in range(CALLS)])


async def _http_server(opened: AsyncExitStack) -> int:
    """The port of a server that listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, str(port), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    opened.callback(process.kill)
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return port


def main(arguments: Sequence[str]) -> None:
    """One way's figures as JSON, or all of them as a table."""
    if len(arguments) == 2:
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
        sys.stdout.write(json.dumps(asyncio.run(measure(*arguments))))
        return
    title = f"{SUB_AGENTS} sub-agents, {CALLS} calls of {WORK_S:g} s each, of one tool server"
    sys.stdout.write(f"Machine: {machine()}.\n\n{markdown(title, asyncio.run(shared_and_own()))}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
