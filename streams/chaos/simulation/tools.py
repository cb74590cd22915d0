"""Tools of simulated workers: each a fault that a tool can have, on virtual time."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextvars import ContextVar

from agents.ports import NOBODY, Caller, ToolReply, ToolSpec
from streams.core.values import Json

at_work: ContextVar[str] = ContextVar("at_work", default="")
"""The attempt that calls, ``job/task/attempt``: what a tool that must not run twice is told apart by."""

NOTHING: Mapping[str, Json] = {"type": "object", "properties": {}}
A_NAME: Mapping[str, Json] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}

SPECS = (
    ToolSpec(name="noop", description="Do nothing.", parameters=NOTHING),
    ToolSpec(name="look_up", description="What is known of a name.", parameters=A_NAME),
    ToolSpec(name="weigh", description="How heavy a name is.", parameters=A_NAME),
    ToolSpec(
        name="record", description="Record a name, which must not be twice.", parameters=A_NAME, once=True
    ),
    ToolSpec(name="bulk", description="Many kilobytes.", parameters=NOTHING),
    ToolSpec(name="stuck", description="Never returns.", parameters=NOTHING),
    ToolSpec(name="broken", description="Fails.", parameters=NOTHING),
)
BULK_BYTES = 20_000
LOOK_UP_S, WEIGH_S, RECORD_S = 0.4, 1.5, 0.8


class MemoryTools:
    """Implements :class:`agents.ports.Tools`; shared by all workers, as the world outside is.

    Attributes:
        recorded: How often ``record`` was called, by attempt and name.
    """

    def __init__(self) -> None:
        self._specs = {spec.name: spec for spec in SPECS}
        self.recorded: Counter[str] = Counter()

    def specs(self, names: Sequence[str]) -> tuple[ToolSpec, ...]:
        """The tools of these names; unknown names are left out."""
        return tuple(self._specs[name] for name in names if name in self._specs)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Json],
        *,
        timeout_s: float,
        caller: Caller = NOBODY,  # noqa: ARG002 - the port's
    ) -> ToolReply:
        """Run a tool."""
        if name not in self._specs:
            return ToolReply(output=f"there is no tool {name}", error="unknown_tool")
        try:
            async with asyncio.timeout(timeout_s):
                return await self._run(name, str(arguments.get("name", "")))
        except TimeoutError:
            return ToolReply(output=f"no result within {timeout_s:.1f} s", error="timeout")

    async def _run(self, name: str, subject: str) -> ToolReply:
        match name:
            case "look_up":
                await asyncio.sleep(LOOK_UP_S)
                return ToolReply(output={"name": subject, "length": len(subject)})
            case "weigh":
                await asyncio.sleep(WEIGH_S)
                return ToolReply(output={"name": subject, "grams": 7 * len(subject)})
            case "record":
                self.recorded[f"{at_work.get()} {subject}"] += 1
                await asyncio.sleep(RECORD_S)
                return ToolReply(output={"name": subject, "recorded": True})
            case "bulk":
                return ToolReply(output={"bulk": "x" * BULK_BYTES})
            case "stuck":
                await asyncio.Event().wait()
            case "broken":
                await asyncio.sleep(0)
                return ToolReply(output="ValueError: broken on purpose", error="tool_error")
        return ToolReply(output="ok")
