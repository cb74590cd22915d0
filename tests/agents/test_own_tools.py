"""Tools of the system's own, beside those of a user: their names, their order, and what they are told."""

import asyncio
import json
from collections.abc import Mapping

import pytest

from agents.ports import ToolCall, ToolReply, ToolSpec
from agents.tool_turn import Toolbox
from agents.tools.local import LocalTools, local_tool
from agents.tools.own import OwnTool
from streams.core.values import Json
from tests.agents.memory_attempt import Journal, MemoryAttempt

pytestmark = pytest.mark.asyncio

SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


class Counting:
    """A tool that notes what it ran and what it heard, and takes longer for the first call."""

    def __init__(self, *, in_turn: bool = True) -> None:
        self.ran: list[Json] = []
        self.heard: list[Json] = []
        self.tool = OwnTool(
            spec=ToolSpec(name="add", description="Add.", parameters=SCHEMA),
            run=self._run,
            heard=lambda _, arguments, reply: self.heard.append((arguments["n"], reply.output)),
            in_turn=in_turn,
        )

    async def _run(self, _: ToolCall, arguments: Mapping[str, Json], __: float) -> ToolReply:
        if arguments["n"] == 1:
            for _turn in range(5):
                await asyncio.sleep(0)
        self.ran.append(arguments["n"])
        return ToolReply(output=len(self.ran))


def calls(box: Toolbox, *arguments: Json, name: str = "add") -> list[ToolCall]:
    """Calls as the model makes them, by the tools' own names."""
    made = (ToolCall(id=f"c{k}", name=name, arguments=json.dumps(a)) for k, a in enumerate(arguments))
    return [box.meant(call) for call in made]


async def test_calls_of_one_turn_run_in_the_models_order() -> None:
    counting = Counting()
    box = Toolbox(LocalTools([]), (), own=(counting.tool,))
    assert [spec.name for spec in box.specs] == ["add"]
    replies = await box.run_all(calls(box, {"n": 1}, {"n": 2}), MemoryAttempt())
    assert [reply.output for reply in replies] == [1, 2]
    assert counting.heard == [(1, 1), (2, 2)]


async def test_a_recalled_call_is_heard_and_not_run() -> None:
    journal = Journal()
    box = Toolbox(LocalTools([]), (), own=(Counting().tool,))
    await box.run_all(calls(box, {"n": 1}), MemoryAttempt(journal))
    again = Counting()
    box = Toolbox(LocalTools([]), (), own=(again.tool,))
    await box.run_all(calls(box, {"n": 1}, {"n": 2}), MemoryAttempt(journal))
    assert again.ran == [2]
    assert again.heard == [(1, 1), (2, 1)]


async def test_a_users_tool_keeps_its_name() -> None:
    def add(q: str) -> str:
        """Add to a basket."""
        return f"added {q}"

    counting = Counting()
    box = Toolbox(LocalTools([local_tool(add)]), ("add",), own=(counting.tool,))
    assert [spec.name for spec in box.specs] == ["add", "own_add"]
    attempt = MemoryAttempt()
    [theirs] = await box.run_all(calls(box, {"q": "a pear"}), attempt)
    assert (theirs.output, counting.ran) == ("added a pear", [])
    call = box.meant(ToolCall(id="x", name="own_add", arguments='{"n": 3}'))
    assert (await box.run(call, attempt)).output == 1


async def test_arguments_that_break_the_schema_are_refused_with_it() -> None:
    counting = Counting()
    box = Toolbox(LocalTools([]), (), own=(counting.tool,))
    [reply] = await box.run_all(calls(box, {"n": "one"}), MemoryAttempt())
    assert reply.error == "bad_arguments"
    assert isinstance(reply.output, dict)
    assert reply.output["parameters"] == SCHEMA
    assert (counting.ran, counting.heard) == ([], [])
