"""Tools that the system itself offers to a sub-agent, beside those of its shelf: each attempt has its own."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships without types
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]  # likewise

from agents.ports import ToolCall, ToolReply, ToolSpec
from agents.tools.local import describe
from streams.core.values import Json

OWN: Final = "~"
"""The names of these tools begin with it in journals and replies; no tool of a user has such a name."""

Arguments: TypeAlias = Mapping[str, Json]


def nothing_to_note(_: ToolCall, __: Arguments, ___: ToolReply) -> None:
    """Nobody needs to know what came of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTool:
    """A tool of the system's own, made for one attempt.

    Attributes:
        spec: As the model sees it; ``spec.name`` is what it is called where no granted tool has that name.
        run: Makes a call: the call itself, its arguments (they keep to the schema), and the seconds it may
            take. All that depends on the world happens here. It may raise what ends the attempt.
        outside: In place of *run*: waits for somebody outside, who may answer when the attempt goes on later.
            Such a call comes after all others of its turn.
        heard: Told of every reply that *run* made, now or before a takeover: what the attempt is to know of
            its calls is kept here, since a call that is recalled from the journal is not run again.
        in_turn: Calls of one turn are made one after the other, in the model's order.
    """

    spec: ToolSpec
    run: Callable[[ToolCall, Arguments, float], Awaitable[ToolReply]] | None = None
    outside: Callable[[ToolCall, Arguments], Awaitable[ToolReply]] | None = None
    heard: Callable[[ToolCall, Arguments, ToolReply], None] = nothing_to_note
    in_turn: bool = True

    def wrong(self, arguments: Arguments) -> str:
        """What is wrong with the arguments, by the schema; empty where nothing is."""
        fault = best_match(Draft202012Validator(self.spec.parameters).iter_errors(arguments))
        return "" if fault is None else describe(fault)


def beside(own: Iterable[OwnTool], taken: Iterable[str]) -> dict[str, OwnTool]:
    """The tools by what a model calls them: a user's tool of the same name keeps it."""
    names = set(taken)
    found: dict[str, OwnTool] = {}
    for tool in own:
        name = tool.spec.name
        while name in names:
            name = f"own_{name}"
        names.add(name)
        found[name] = tool
    return found
