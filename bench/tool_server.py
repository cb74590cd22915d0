"""A tool server to measure with, by the mcp package: ``python -m bench.tool_server [PORT]``.

On stdin and stdout, or over HTTP on a port of this machine.
"""

import sys

import anyio
from mcp.server.mcpserver import MCPServer

WORK_S = 0.1
"""Seconds that its tool takes."""


async def work(number: int) -> int:
    """Take a while and give the number back."""
    await anyio.sleep(WORK_S)
    return number


def main() -> None:
    """Serve until the input ends, or until killed."""
    server = MCPServer("bench", log_level="CRITICAL")
    server.tool()(work)
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")


if __name__ == "__main__":
    main()
