"""The tool calls of one turn: checked, run side by side, each with exactly one reply."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TypeAlias

import orjson
import structlog

from agents.configuration.values import Bounds
from agents.cut import head_and_tail
from agents.plain_json import dumps
from agents.ports import NOBODY, Attempt, Caller, ToolCall, ToolReply, Tools, ToolSpec
from agents.strict_json import loads
from agents.tool_names import spellings
from agents.tools.own import OWN, OwnTool, beside
from streams.core.values import Json

log = structlog.get_logger()

DEFAULT_BOUNDS = Bounds()

MAX_TOOLS = 128
"""Tools that one request may offer, as Moonshot's API has it; OpenAI's is the same."""

KEPT_BYTES = 16_777_216
"""Bytes of JSON of one result that the journal keeps; of a longer one it keeps head and tail."""

ASKED_BYTES = 65_536
"""Bytes of JSON of the arguments that a person is shown and approves, at most: they see all of them."""

APPROVED = "approved"

NEVER = frozenset({"unknown_tool", "not_allowed", "bad_arguments"})
"""Errors of calls that reached no tool, and would not the next time."""

NOT_RUN = NEVER | {"unavailable"}
"""Errors of calls that reached no tool."""


Counted: TypeAlias = Callable[[str, ToolReply], None]
"""Counts a tool call, as :meth:`agents.models.metrics.Metrics.tool` does."""


def not_counted(_: str, __: ToolReply) -> None:
    """Nobody counts."""


class Toolbox:
    """The tools that one sub-task may use.

    Args:
        allowed: Their names; of unknown ones there is no tool.
        caller: On whose behalf they are called.
        bounds: How many calls of a turn are run, how many at once, and how long each may take.
        refused: Told of each call that is answered without *tools*, by its name; not of those recalled.
        own: Tools that the system itself offers, beside those.
        ask: A person is to approve each call of a tool that changes things, before it is made.

    Attributes:
        specs: What a request offers: the tools by names that every endpoint takes.
    """

    def __init__(
        self,
        tools: Tools,
        allowed: Sequence[str],
        caller: Caller = NOBODY,
        bounds: Bounds = DEFAULT_BOUNDS,
        refused: Counted = not_counted,
        *,
        own: Sequence[OwnTool] = (),
        ask: bool = False,
    ) -> None:
        self._tools, self._caller, self._bounds, self._refused = tools, caller, bounds, refused
        self._granted, self._ask = frozenset(allowed), ask
        self._allowed = {spec.name: spec for spec in tools.specs(allowed)}
        if len(self._allowed) > MAX_TOOLS:
            log.warning("tools_not_offered", job=caller.job, task=caller.task, tools=len(self._allowed))
        told = spellings(tuple(self._allowed)[: MAX_TOOLS - len(own)])
        self._meant = {spelled: name for name, spelled in told.items()}
        ours = beside(own, told.values())
        self._own = {f"{OWN}{tool.spec.name}": tool for tool in own}
        self._meant |= {spelled: f"{OWN}{tool.spec.name}" for spelled, tool in ours.items()}
        self._in_turn = asyncio.Lock()
        self.specs = (
            *(_spelled(self._allowed[name], spelled) for name, spelled in told.items()),
            *(_spelled(tool.spec, spelled) for spelled, tool in ours.items()),
        )

    def meant(self, call: ToolCall) -> ToolCall:
        """The model's call by the tool's own name."""
        name = self._meant.get(call.name, call.name)
        return call if name == call.name else replace(call, name=name)

    async def run_all(self, calls: Sequence[ToolCall], attempt: Attempt) -> list[ToolReply]:
        """The replies in the order of the calls. All go through the attempt, so that each is recorded."""
        if len(calls) == 1:
            return [await self.run(calls[0], attempt)]
        slots = asyncio.Semaphore(self._bounds.side_by_side)
        most = self._bounds.calls

        async def one(place: int, call: ToolCall) -> ToolReply:
            if place >= most:
                text = f"not run: at most {most} calls in one turn; ask again for what you still need"
                return await self._refuse(call, "not_allowed", text, attempt)
            async with slots:
                return await self.run(call, attempt)

        replies: dict[int, ToolReply] = {}
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {
                    place: group.create_task(one(place, call))
                    for place, call in enumerate(calls)
                    if not self._waits(call)
                }
        except BaseExceptionGroup as broken:
            # Whoever runs the attempt knows its own exceptions, not a group of them.
            raise broken.exceptions[0] from broken
        for place, call in enumerate(calls):
            # What waits for somebody outside ends the attempt for now: all others come before.
            replies[place] = tasks[place].result() if place in tasks else await one(place, call)
        return [replies[place] for place in range(len(calls))]

    def _waits(self, call: ToolCall) -> bool:
        """Whether somebody outside is to answer before this call is made, or ends."""
        if (own := self._own.get(call.name)) is not None:
            return own.outside is not None
        return self._asks(self._allowed.get(call.name))

    def _asks(self, spec: ToolSpec | None) -> bool:
        return self._ask and spec is not None and not spec.read_only

    async def run(self, call: ToolCall, attempt: Attempt) -> ToolReply:
        """Run one call, or answer why not."""
        own = self._own.get(call.name)
        spec = self._allowed.get(call.name) if own is None else own.spec
        if spec is None:
            return await self._refuse(call, *self._why_not(call.name), attempt)
        try:
            arguments = loads(call.arguments or "{}")
        except ValueError as broken:
            return await self._refuse(call, "bad_arguments", not_json(spec, str(broken)), attempt)
        if not isinstance(arguments, dict):
            why = not_json(spec, "they are no JSON object")
            return await self._refuse(call, "bad_arguments", why, attempt)
        if own is not None:
            return await self._run_own(own, call, arguments, attempt)

        async def make(timeout_s: float) -> ToolReply:
            within_s = min(timeout_s, self._bounds.tool_s)
            reply = await self._tools.call(call.name, arguments, timeout_s=within_s, caller=self._caller)
            return kept(reply)

        if not self._asks(spec):
            return await attempt.tool(call, make, once=spec.once)
        size = len(dumps(arguments))
        if size > ASKED_BYTES:
            text = f"not run: its arguments have {size} bytes, and a person approves {ASKED_BYTES} at most"
            return await self._refuse(call, "not_allowed", text, attempt)
        said = await attempt.wait_outside(call, on="approval", args=arguments)
        if said.outcome != APPROVED:
            return await self._refuse(call, "not_allowed", f"not run: {said.reason or said.outcome}", attempt)
        return await attempt.tool(call, make, once=True)  # one call was approved: it is not made twice

    async def _run_own(
        self, own: OwnTool, call: ToolCall, arguments: dict[str, Json], attempt: Attempt
    ) -> ToolReply:
        """Run a call of a tool of the system's own; it is told of the reply, also of one recalled."""
        if wrong := own.wrong(arguments):
            return await self._refuse(call, "bad_arguments", not_json(own.spec, wrong), attempt)

        said = None if own.outside is None else await own.outside(call, arguments)

        async def make(timeout_s: float) -> ToolReply:
            if said is not None:
                return kept(said)
            assert own.run is not None
            return kept(await own.run(call, arguments, timeout_s))

        async with self._in_turn if own.in_turn else nullcontext():  # a lock is given in the order of asking
            reply = await attempt.tool(call, make, once=own.spec.once)
            own.heard(call, arguments, reply)
        return reply

    def once(self, name: str) -> bool:
        """An unknown outcome of this tool is never tried again."""
        spec = self._own[name].spec if name in self._own else self._allowed.get(name)
        return spec is not None and (spec.once or (name not in self._own and self._asks(spec)))

    async def _refuse(self, call: ToolCall, error: str, output: Json, attempt: Attempt) -> ToolReply:
        """Answer a call without running a tool; the attempt records it like any other."""

        async def answer(_: float) -> ToolReply:
            reply = ToolReply(output=output, error=error)
            self._refused(call.name, reply)
            return reply

        return await attempt.tool(call, answer)

    def _why_not(self, name: str) -> tuple[str, Json]:
        mine = [spec.name for spec in self.specs]
        # A model may know it from an earlier turn, by the name that models are told.
        granted = (one for one, told in spellings(sorted(self._granted)).items() if name in {one, told})
        if away := next((one for one in granted if "." in one and one not in self._allowed), None):
            text = f"tool {away} is not there now: its server is away, or has no such tool"
            return "unavailable", {"message": text, "tools": mine}
        if self._tools.specs((name,)):
            return "not_allowed", {"message": f"tool {name} is not allowed in this task", "tools": mine}
        return "unknown_tool", {"message": f"there is no tool {name}", "tools": mine}


def _spelled(spec: ToolSpec, name: str) -> ToolSpec:
    return spec if spec.name == name else replace(spec, name=name)


def kept(reply: ToolReply) -> ToolReply:
    """The reply as the journal keeps it: whole, unless its output is beyond :data:`KEPT_BYTES`."""
    if isinstance(reply.output, str) and len(reply.output) * 6 < KEPT_BYTES:  # a byte is \u0000 at most
        return reply
    encoded = dumps(reply.output)
    if len(encoded) <= KEPT_BYTES:
        return reply
    return replace(reply, output=head_and_tail(encoded, KEPT_BYTES))


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
