"""One tool server, shared by all sub-agents of a process: its tools, and calls of them.

A lane gets a reply, never an exception: calls run in tasks apart from the lane and from the owner of
the connection.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog
from mcp.types import CallToolResult

from agents.configuration.values import ToolServer
from agents.ports import ToolReply
from agents.tools.mcp import backoff
from agents.tools.mcp.connection import connect
from agents.tools.mcp.health import Health, NotAsked
from agents.tools.mcp.listing import ServerTool
from agents.tools.mcp.outcomes import Outcome, lost, outcome, timed_out
from agents.tools.mcp.owner import Connect, Connection, Owner, Word, now
from agents.tools.mcp.turns import NoTurn, Turns
from streams.core.values import Json

log = structlog.get_logger()

GRACE_S: Final = 0.5
"""Seconds that a call may take beyond its deadline, to tell the server that nobody waits for it."""

END_S: Final = 6.0
"""Seconds to end the calls under way when the server is closed; the mcp package takes 5 at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How a server does.

    Attributes:
        word: ``starting``, ``up``, ``waiting`` (it failed, and is started again later) or ``closed``.
        reason: Why it is not up, where that is known.
        tools: How many tools it offers.
        broken: Its tools that were left out, each with what is wrong with it.
        failure_rate: Share of its last calls that failed, 0 to 1.
        latency_ms: Median of its last calls that were answered, in milliseconds.
    """

    word: Word
    reason: str = ""
    tools: int = 0
    broken: tuple[tuple[str, str], ...] = ()
    failure_rate: float = 0.0
    latency_ms: float | None = None


class Supervisor:
    """One server: starts it, keeps it up, and calls its tools within its limits.

    Args:
        server: What the configuration says of it.
        opened: Makes a connection.
        delay_s: Seconds to wait after so many failures in a row.
    """

    def __init__(
        self,
        server: ToolServer,
        *,
        opened: Connect = connect,
        delay_s: Callable[[int], float] = backoff.delay_s,
    ) -> None:
        self.server = server
        self.health = Health()
        self._owner = Owner(server, opened=opened, delay_s=delay_s, up=lambda: self.health.restarted(now()))
        self._turns = Turns(concurrency=server.concurrency, per_minute=server.requests_per_minute)
        self._calls: set[asyncio.Task[CallToolResult]] = set()
        self.start = self._owner.start
        self.settled = self._owner.settled

    @property
    def tools(self) -> Mapping[str, ServerTool]:
        """What it listed when it was up last, by the tools' own names."""
        return self._owner.tools

    @property
    def state(self) -> State:
        """How it does now."""
        return State(
            word=self._owner.word,
            reason=self._owner.reason,
            tools=len(self.tools),
            broken=tuple((broken.tool, broken.reason) for broken in self._owner.broken),
            failure_rate=self.health.failure_rate,
            latency_ms=self.health.latency_ms,
        )

    async def close(self) -> None:
        """End the server; calls under way get a reply at once."""
        await self._owner.close()
        for call in self._calls:
            call.cancel()
        if self._calls:
            await asyncio.wait(self._calls, timeout=END_S)

    async def call(self, tool: str, arguments: Mapping[str, Json], *, timeout_s: float) -> ToolReply:
        """Call one of its tools, by the tool's own name. Never raises: what goes wrong is the reply.

        A call is made at most once. Where its outcome is not known the reply says so.
        """
        began = time.perf_counter()
        found = await self._outcome(tool, arguments, min(timeout_s, self.server.call_s))
        latency_ms = (time.perf_counter() - began) * 1_000
        return ToolReply(output=found.output, error=found.error, latency_ms=latency_ms)

    async def _outcome(self, tool: str, arguments: Mapping[str, Json], within_s: float) -> Outcome:
        listed = self.tools.get(tool)
        if listed is None:
            return self._no_such_tool(tool)
        wrong = listed.wrong(arguments)
        if wrong is not None:
            told: Json = {"message": wrong, "parameters": dict(listed.spec.parameters)}
            return Outcome(output=told, error="bad_arguments", answered=None)
        until = now() + within_s
        try:
            probe = self.health.begin(now())
        except NotAsked as words_of_it:
            return self._unavailable(str(words_of_it))
        settled = False
        try:
            async with self._turns.turn(within_s):
                connection = await self._owner.ready(max(until - now(), 0.0))
                if connection is None:
                    return self._unavailable(self._owner.why_away())
                asked = now()
                found = await self._ask(connection, tool, arguments, max(until - asked, 0.0))
                settled = self._settle(found, connection, (now() - asked) * 1_000, probe=probe)
                return found
        except NoTurn as words_of_it:
            return self._unavailable(str(words_of_it))
        finally:
            if not settled:
                self.health.dropped(now(), probe=probe)

    async def _ask(
        self, connection: Connection, tool: str, arguments: Mapping[str, Json], within_s: float
    ) -> Outcome:
        """Make a call and wait for its result, the end of its time or the end of the connection."""
        # A task of its own: what the mcp package does when a call is given up may take seconds.
        call = asyncio.create_task(
            connection.client.call_tool(tool, dict(arguments), read_timeout_seconds=within_s)
        )
        self._calls.add(call)
        call.add_done_callback(self._forget)
        either: set[asyncio.Future[Any]] = {call, connection.lost}
        try:
            await asyncio.wait(either, timeout=within_s + GRACE_S, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            call.cancel()  # the server is told by that
            raise
        if call.done():
            return outcome(call, self.server.name, within_s)
        call.cancel()
        if connection.lost.done():
            return lost(self.server.name, self._owner.reason)
        return timed_out(self.server.name, within_s)

    def _forget(self, call: "asyncio.Task[CallToolResult]") -> None:
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()  # it has been looked at, or nobody waits for it any more

    def _settle(self, found: Outcome, connection: Connection, latency_ms: float, *, probe: bool) -> bool:
        """Reckon a call's outcome to the server's health; a connection that is of no use is given up."""
        if found.answered is None:
            return False
        if found.answered:
            self.health.answered(now(), latency_ms, probe=probe)
        else:
            opened = self.health.failed(now(), probe=probe)
            if opened:
                log.warning(
                    "tool_server_failing",
                    server=self.server.name,
                    reason=found.output,
                    failure_rate=round(self.health.failure_rate, 2),
                    latency_ms=self.health.latency_ms,
                )
            why = found.gone
            if opened and found.error == "unavailable":
                why = why or "its requests break off"
            elif probe and found.error == "timeout":
                why = "it does not answer any more"
            if why:
                self._owner.end(connection, why)
        return True

    def _no_such_tool(self, tool: str) -> Outcome:
        if self._owner.word != "up":
            return self._unavailable(self._owner.why_away())
        name = f"{self.server.name}.{tool}"
        for broken in self._owner.broken:
            if broken.tool == tool:
                return self._unavailable(f"its tool {name} is broken: {broken.reason}")
        return Outcome(output=f"there is no tool {name}", error="unknown_tool", answered=None)

    def _unavailable(self, why: str) -> Outcome:
        said = f"tool server {self.server.name} is not available: {why}. The call was not made."
        return Outcome(output=said, error="unavailable", answered=None)
