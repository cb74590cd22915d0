"""What ``anabranch doctor`` says of tools: the user's own, the sandbox, tool servers, and their names."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace

from agents.configuration.problems import nearest
from agents.configuration.values import Configuration, LocalToolSettings, ToolServer
from agents.tools.mcp.connection import where
from agents.tools.mcp.supervisor import Supervisor
from agents.tools.registered import BadTools
from agents.tools.sandbox import sandbox_problem, sandbox_tools
from agents.tools.shipped import local_tools
from streams.cli.finding import Finding

SHOWN = 8
"""Tools that the finding about a server names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What came of starting a tool server.

    Attributes:
        reason: Why it did not start, or did not list its tools; empty where it did.
        tools: What it lists, by its own names.
        broken: Its tools that cannot be offered, each with what is wrong with it.
    """

    server: ToolServer
    reason: str
    tools: tuple[str, ...]
    broken: tuple[tuple[str, str], ...]


async def tools(configuration: Configuration) -> AsyncIterator[Finding]:
    """Every finding; tool servers are started side by side, and ended again."""
    ours, findings = await asyncio.to_thread(_ours, configuration.local)
    for finding in findings:
        yield finding
    started = {
        each.server.name: each
        for each in await asyncio.gather(*(_start(server) for server in configuration.servers.values()))
    }
    for each in started.values():
        for finding in _server(each):
            yield finding
    for finding in _names(configuration, ours, started):
        yield finding


def _ours(settings: LocalToolSettings) -> tuple[tuple[str, ...] | None, list[Finding]]:
    """The names of all tools that are functions, None where some cannot be used; and what was found."""
    found: list[Finding] = []
    names: tuple[str, ...] | None = None
    try:
        names = local_tools(replace(settings, sandbox=False)).names()
    except BadTools as bad:
        todo = "mend it, or take it out of modules of [tools], or uninstall its package"
        found += (Finding(about="tools", level="problem", what=each, to_do=todo) for each in bad.problems)
    else:
        if settings.modules:
            what = f"{len(names)} functions: {', '.join(names)}"
            found.append(Finding(about="tools", level="fine", what=what))
    if settings.sandbox:
        if names is not None:
            names += tuple(tool.spec.name for tool in sandbox_tools(settings))
        problem, _, todo = (sandbox_problem() or "").partition("; ")
        if problem:
            found.append(Finding(about="sandbox", level="problem", what=problem, to_do=todo))
        else:
            found.append(Finding(about="sandbox", level="fine", what="works here"))
    return names, found


async def _start(server: ToolServer) -> Started:
    # All its tools, so that a name which is almost right is found.
    supervisor = Supervisor(replace(server, tools=None))
    supervisor.start()
    try:
        await supervisor.settled()  # bounded by start_s
        state, listed = supervisor.state, tuple(sorted(supervisor.tools))
    finally:
        await supervisor.close()
    reason = "" if state.word == "up" else state.reason or "it did not start"
    return Started(server=server, reason=reason, tools=listed, broken=state.broken)


def _server(started: Started) -> Iterator[Finding]:
    server, at = started.server, f"servers.{started.server.name}"
    if started.reason:
        parts = "url and headers" if server.url else "command and environment"
        todo = f"check {parts} of {at}; try {where(server)}"
        yield Finding(about="tools", level="problem", what=f"{at}: {started.reason}", to_do=todo)
        return
    more = f" and {len(started.tools) - SHOWN} more" if len(started.tools) > SHOWN else ""
    what = f"{at} has {', '.join(started.tools[:SHOWN]) or 'no tools'}{more}"
    yield Finding(about="tools", level="fine", what=what)
    for tool, reason in started.broken:
        what = f"{server.name}.{tool} is left out: {reason}"
        yield Finding(about="tools", level="warning", what=what, to_do="tell its maker")
    there = {*started.tools, *(tool for tool, _ in started.broken)}
    for key, names in (("tools", server.tools or ()), ("once", server.once), ("read_only", server.read_only)):
        for tool in names:
            if tool not in there:
                what = f"{at}.{key} names {tool}, which it does not have"
                yield Finding(about="tools", level="problem", what=what, to_do=nearest(tool, started.tools))


def _names(
    configuration: Configuration, ours: tuple[str, ...] | None, started: Mapping[str, Started]
) -> Iterator[Finding]:
    """Names of tools in kinds; nothing is known of servers that did not start, and of functions likewise."""
    said: set[str] = set()
    for kind in configuration.kinds.values():
        for name in dict.fromkeys((*(kind.tools or ()), *kind.scopes)):
            server, dot, tool = name.partition(".")
            there = started[server].tools if dot else ours
            lost = there is None or (dot and started[server].reason)
            if lost or there is None or (tool if dot else name) in there or name in said:
                continue
            said.add(name)  # a kind has it from `default`, too
            todo = nearest(tool if dot else name, there)
            what = f"kinds.{kind.name} names {name}, and there is no such tool"
            yield Finding(about="tools", level="problem", what=what, to_do=todo)
