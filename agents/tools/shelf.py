"""All tools of a process: Python functions and tool servers, by name, as the kinds may use them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, Self

import structlog

from agents.configuration.values import DEFAULT, Configuration, Kind, ToolServer
from agents.ports import NOBODY, Caller, ToolReply, ToolSpec
from agents.tools.local import LocalTools
from agents.tools.scopes import Scope, read_scopes, refusal, refuse_wildcards
from agents.tools.sharing import SharedCalls
from streams.core.values import Json

if TYPE_CHECKING:
    from agents.tools.mcp.supervisor import State, Supervisor

log = structlog.get_logger()

LONG: Final = 1_000
"""Characters of an argument from which on its scope is looked at in a thread."""


class Counter(Protocol):
    """Counts tool calls: :class:`agents.models.metrics.Metrics`."""

    def tool(self, name: str, reply: ToolReply) -> None:
        """A tool call has its reply."""


def _supervisor(server: ToolServer) -> "Supervisor":
    # Imported here because it takes half a second of CPU, which a worker without servers need not pay.
    from agents.tools.mcp.supervisor import Supervisor  # noqa: PLC0415

    return Supervisor(server)


class ToolShelf:
    """The tools of a process. Start it before use and close it at the end.

    What a kind may not use is refused here, whoever asks: this is where calls are made.

    Args:
        local: Tools that are Python functions.
        configuration: Its servers, and its kinds with their allow-lists and scopes.
        metrics: Told of every call.
        supervised: Makes a server's supervisor; None: the one of :mod:`agents.tools.mcp`.

    Raises:
        ValueError: a list of tools has a pattern, a scope cannot be kept, or a tool of a server is
            marked both ``once`` and ``read_only``.
    """

    def __init__(
        self,
        local: LocalTools,
        configuration: Configuration,
        *,
        metrics: Counter | None = None,
        supervised: "Callable[[ToolServer], Supervisor] | None" = None,
    ) -> None:
        check_tools(configuration)
        self._local, self._kind, self._metrics = local, configuration.kind, metrics
        self._scopes: dict[str, dict[str, Scope]] = {
            kind.name: read_scopes(kind.scopes) for kind in configuration.kinds.values()
        }
        make = supervised or _supervisor
        self._servers = {server.name: make(server) for server in configuration.servers.values()}
        self._shared = SharedCalls()
        self._kinds = tuple(configuration.kinds.values())

    async def start(self) -> Self:
        """Start all servers side by side. Those that do not come in time are gone without until they do."""
        for server in self._servers.values():
            server.start()
        await asyncio.gather(*(server.settled() for server in self._servers.values()))
        for name, state in self.states().items():
            if state.word != "up":
                log.error("tool_server_missing", server=name, reason=state.reason)
        self._look_at_names()
        return self

    async def close(self) -> None:
        """End all servers."""
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    def states(self) -> "dict[str, State]":
        """How each server does, by name."""
        return {name: server.state for name, server in self._servers.items()}

    def names(self) -> tuple[str, ...]:
        """The names of all tools that there are now, sorted."""
        served = (tool.spec.name for server in self._servers.values() for tool in server.tools.values())
        return tuple(sorted((*self._local.names(), *served)))

    def specs(self, names: Sequence[str]) -> tuple[ToolSpec, ...]:
        """The tools of these names; unknown names are left out."""
        return tuple(spec for name in names if (spec := self._spec(name)) is not None)

    async def call(
        self, name: str, arguments: Mapping[str, Json], *, timeout_s: float, caller: Caller = NOBODY
    ) -> ToolReply:
        """Run a tool. Never raises: what goes wrong is the reply."""
        reply = await self._call(name, arguments, timeout_s, caller)
        if self._metrics is not None:
            self._metrics.tool(name, reply)
        return reply

    async def _call(
        self, name: str, arguments: Mapping[str, Json], timeout_s: float, caller: Caller
    ) -> ToolReply:
        why_not = await self._why_not(name, arguments, self._kind(caller.kind or DEFAULT))
        if why_not is not None:
            return ToolReply(output={"message": f"not allowed: {why_not}"}, error="not_allowed")

        async def make() -> ToolReply:
            server, tool = self._server_of(name)
            if server is None:
                return await self._local.call(name, arguments, timeout_s=timeout_s, caller=caller)
            return await server.call(tool, arguments, timeout_s=timeout_s)

        spec = self._spec(name)
        if spec is None or not spec.read_only or not caller.job:
            return await make()
        return await self._shared.call(caller.job, name, arguments, make, timeout_s=timeout_s)

    async def _why_not(self, name: str, arguments: Mapping[str, Json], kind: Kind) -> str | None:
        if kind.tools is not None and name not in kind.tools:
            return f"sub-tasks of kind {kind.name} may not use {name}"
        scope = self._scopes[kind.name].get(name)
        if scope is None:
            return None
        if any(isinstance(value, str) and len(value) > LONG for value in arguments.values()):
            return await asyncio.to_thread(refusal, scope, arguments)
        return refusal(scope, arguments)

    def _spec(self, name: str) -> ToolSpec | None:
        server, tool = self._server_of(name)
        if server is None:
            return next(iter(self._local.specs((name,))), None)
        listed = server.tools.get(tool)
        return None if listed is None else listed.spec

    def _server_of(self, name: str) -> "tuple[Supervisor | None, str]":
        server, dot, tool = name.partition(".")
        return (self._servers.get(server), tool) if dot else (None, name)

    def _look_at_names(self) -> None:
        """Say which names of the configuration mean nothing, of servers that are up."""
        for kind in self._kinds:
            for name in {*(kind.tools or ()), *kind.scopes}:
                server, _ = self._server_of(name)
                away = server is not None and server.state.word != "up"
                spec = self._spec(name)
                if spec is None and not away:
                    log.warning("no_such_tool", tool=name, kind=kind.name)
                elif spec is not None:
                    known: Json = spec.parameters.get("properties", {})
                    missing = sorted(set(kind.scopes.get(name, ())).difference(known or ()))  # type: ignore[arg-type]  # JSON Schema has an object there
                    if missing:
                        log.warning("no_such_argument", tool=name, kind=kind.name, arguments=missing)


def check_tools(configuration: Configuration) -> None:
    """Look at everything that the configuration says of tools, without starting a server.

    Raises:
        ValueError: as :class:`ToolShelf` does; the words name the server or kind and the tool.
    """
    for server in configuration.servers.values():
        named = f"servers.{server.name}"
        if not server.name or "." in server.name:
            raise ValueError(f"{named}: the name of a server has no dot, since its tools are server.tool")
        for key, tools in (
            ("tools", server.tools or ()),
            ("once", server.once),
            ("read_only", server.read_only),
        ):
            refuse_wildcards(tools, f"{named}.{key}")
        both = _both(server.once, server.read_only)
        if both:
            raise ValueError(f"{named}: {both} cannot be both once and read_only")
    for kind in configuration.kinds.values():
        refuse_wildcards(kind.tools or (), f"kinds.{kind.name}.tools")
        read_scopes(kind.scopes)


def _both(some: Iterable[str], others: Iterable[str]) -> str:
    return ", ".join(sorted(set(some).intersection(others)))
