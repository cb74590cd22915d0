"""The tool calls of one turn: checked, run side by side, each with exactly one reply."""

import asyncio
from collections.abc import Sequence

import orjson

from agents.ports import NOBODY, Attempt, Caller, ToolCall, ToolReply, Tools, ToolSpec
from agents.strict_json import loads
from streams.core.values import Json

MAX_CALLS = 64
"""Calls of one turn that are run; the rest are answered with a refusal."""

SIDE_BY_SIDE = 8
"""Calls of one turn that run at once."""

NOT_RUN = frozenset({"unknown_tool", "not_allowed", "bad_arguments"})
"""Errors of calls that reached no tool."""


class Toolbox:
    """The tools that one sub-task may use."""

    def __init__(self, tools: Tools, allowed: Sequence[str], caller: Caller = NOBODY) -> None:
        self._tools, self._caller = tools, caller
        self.specs = tools.specs(allowed)
        self._allowed = {spec.name: spec for spec in self.specs}

    async def run_all(self, calls: Sequence[ToolCall], attempt: Attempt) -> list[ToolReply]:
        """The replies in the order of the calls. All go through the attempt, so that each is recorded."""
        if len(calls) == 1:
            return [await self.run(calls[0], attempt)]
        slots = asyncio.Semaphore(SIDE_BY_SIDE)

        async def one(place: int, call: ToolCall) -> ToolReply:
            if place >= MAX_CALLS:
                text = f"not run: at most {MAX_CALLS} calls in one turn; ask again for what you still need"
                return await refuse(call, "not_allowed", text, attempt)
            async with slots:
                return await self.run(call, attempt)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(place, call)) for place, call in enumerate(calls)]
        except BaseExceptionGroup as broken:
            # Whoever runs the attempt knows its own exceptions, not a group of them.
            raise broken.exceptions[0] from broken
        return [task.result() for task in tasks]

    async def run(self, call: ToolCall, attempt: Attempt) -> ToolReply:
        """Run one call, or answer why not."""
        spec = self._allowed.get(call.name)
        if spec is None:
            return await refuse(call, *self._why_not(call.name), attempt)
        try:
            arguments = loads(call.arguments or "{}")
        except ValueError as broken:
            return await refuse(call, "bad_arguments", not_json(spec, str(broken)), attempt)
        if not isinstance(arguments, dict):
            return await refuse(call, "bad_arguments", not_json(spec, "they are no JSON object"), attempt)

        async def make(timeout_s: float) -> ToolReply:
            return await self._tools.call(call.name, arguments, timeout_s=timeout_s, caller=self._caller)

        return await attempt.tool(call, make, once=spec.once)

    def once(self, name: str) -> bool:
        """An unknown outcome of this tool is never tried again."""
        return name in self._allowed and self._allowed[name].once

    def _why_not(self, name: str) -> tuple[str, Json]:
        mine = list(self._allowed)
        if self._tools.specs((name,)):
            return "not_allowed", {"message": f"tool {name} is not allowed in this task", "tools": mine}
        return "unknown_tool", {"message": f"there is no tool {name}", "tools": mine}


async def refuse(call: ToolCall, error: str, output: Json, attempt: Attempt) -> ToolReply:
    """Answer a call without running a tool; the attempt records it like any other."""

    async def answer(_: float) -> ToolReply:
        return ToolReply(output=output, error=error)

    return await attempt.tool(call, answer)


def not_json(spec: ToolSpec, why: str) -> Json:
    """What the model is told of arguments that cannot be read: why, and what is wanted."""
    return {
        "message": f"the arguments of {spec.name} cannot be read: {why}",
        "parameters": dict(spec.parameters),
    }


def same_call(call: ToolCall) -> str:
    """Equal for calls of one tool with the same arguments, however they are spaced and ordered."""
    try:
        arguments = orjson.dumps(loads(call.arguments or "{}"), option=orjson.OPT_SORT_KEYS).decode()
    except ValueError:
        arguments = call.arguments
    return f"{call.name} {arguments}"
