"""What a model is told of a tool that it asks for by one of its names, and that is not there."""

import asyncio

from agents.ports import ToolCall
from agents.tool_turn import Toolbox
from agents.tools.local import LocalTools
from tests.agents.memory_attempt import MemoryAttempt


def test_a_tool_whose_server_is_away_is_unavailable_by_either_name() -> None:
    """A model may know it from an earlier turn; ``unknown_tool`` would tell it never to ask again."""
    box = Toolbox(LocalTools([]), ("files.read", "noop"))

    async def ask(name: str) -> str | None:
        return (await box.run(ToolCall(id=name, name=name, arguments="{}"), MemoryAttempt())).error

    async def story() -> list[str | None]:
        return [await ask(name) for name in ("files.read", "files__read", "files__write", "noop")]

    assert asyncio.run(story()) == ["unavailable", "unavailable", "unknown_tool", "unknown_tool"]
