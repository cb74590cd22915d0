"""Child goals: a sub-agent hands a goal of its own to the system, and waits for its answer."""

from collections.abc import Mapping, Sequence
from typing import Final

from agents.plain_json import dumps
from agents.ports import Attempt, ToolCall, ToolReply, ToolSpec
from agents.prompt_data import inline
from agents.tool_names import spellings
from agents.tools.own import Arguments, OwnTool
from streams.core.commands import RunSubTask
from streams.core.goal import DEPTH, SUBMIT
from streams.core.values import Grant, Json, Usage

GOAL_BYTES: Final = 65_536
"""Bytes of JSON of a child's goal with its input: it is asked for by a tool call, and shown to people."""

_LIMITS: Final = ("calls", "tokens", "usd")


class Children:
    """The child goals of one attempt.

    Attributes:
        tools: The tool that submits them; none where the goal does not grant it.
    """

    def __init__(self, command: RunSubTask, attempt: Attempt) -> None:
        self._command, self._attempt = command, attempt
        names = [name for name in command.tools if name != SUBMIT]
        self._meant = {told: name for name, told in spellings(names).items()}
        granted = command.may_submit and command.depth < DEPTH
        self.tools = (OwnTool(spec=self._spec(), outside=self._ask),) if granted else ()

    def _spec(self) -> ToolSpec:
        amount: Json = {"type": "number", "exclusiveMinimum": 0}
        properties: dict[str, Json] = {
            "goal": {
                "type": "string",
                "minLength": 1,
                "description": "What is to be achieved, complete in itself: nothing else of yours is seen.",
            },
            "input": {"description": "Any JSON to work on; a list's items are divided among sub-agents."},
            "budget": {
                "type": "object",
                "properties": dict.fromkeys(_LIMITS, amount),
                "additionalProperties": False,
                "description": "What it may spend at most, of what you have left.",
            },
        }
        if self._meant:
            properties["tools"] = {
                "type": "array",
                "items": {"enum": list(self._meant)},
                "description": "Those of your tools that it may use.",
            }
        return ToolSpec(
            name=SUBMIT,
            description=(
                "Hand a goal over to other agents, who plan it and work on it in parallel, and wait for "
                "their answer. It may take long and costs much more than a call: use it only for what is a "
                "task of its own and too much for you."
            ),
            parameters={
                "type": "object",
                "properties": properties,
                "required": ["goal"],
                "additionalProperties": False,
            },
        )

    async def _ask(self, call: ToolCall, arguments: Arguments) -> ToolReply:
        if (size := len(dumps(arguments))) > GOAL_BYTES:
            text = f"a goal has {GOAL_BYTES} bytes with its input at most, this one {size}"
            return ToolReply(output=text, error="bad_arguments")
        budget = share(self._attempt.grant, self._attempt.usage, arguments.get("budget"))
        tools = arguments.get("tools", ())
        assert isinstance(tools, Sequence)
        goal: dict[str, Json] = {"goal": arguments["goal"], "priority": self._command.priority}
        goal |= {"tools": [self._meant[str(name)] for name in tools]} if tools else {}
        goal |= {"budget": budget} if budget else {}
        goal |= {"input": arguments["input"]} if "input" in arguments else {}
        ended = await self._attempt.ask_child(call, goal)
        answer = None if ended.answer is None else inline(ended.answer)
        told: dict[str, Json] = {"outcome": ended.outcome, "answer": answer}
        return ToolReply(output=told | ({"reason": ended.reason} if ended.reason else {}))


def share(grant: Grant | None, spent: Usage, asked: Json) -> dict[str, Json]:
    """A child's budget: what is asked for, within what is left of the grant; half of that where nothing is.

    At least one call or token: a child with too little says so itself.
    """
    wanted = asked if isinstance(asked, Mapping) else {}
    budget: dict[str, Json] = {}
    for name, gone in zip(_LIMITS, (spent.calls, spent.tokens, spent.usd), strict=True):
        most, want = getattr(grant, name) if grant else None, wanted.get(name)
        amount = float(want) if isinstance(want, int | float) else None
        if most is not None:
            left = max(0.0, most - gone)
            amount = left / 2 if amount is None else min(amount, left)
        if amount is not None:
            budget[name] = max(amount, 0.000_001) if name == "usd" else max(1, int(amount))
    return budget
