"""The kinds of hostile inputs, and how many of each hundred are of which."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tests.hostile import parts, systems
from tests.hostile.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind.

    Attributes:
        put_in: By a seed and a number.
        share: Of a hundred inputs.
    """

    put_in: Callable[[int, int], Tally]
    share: int


KINDS: Final = {
    "goals": Kind(put_in=systems.goals, share=20),
    "headers of goals": Kind(put_in=systems.headers, share=5),
    "planner replies": Kind(put_in=parts.planner_replies, share=12),
    "model turns": Kind(put_in=parts.model_turns, share=10),
    "tool results": Kind(put_in=parts.tool_results, share=6),
    "events": Kind(put_in=systems.events, share=20),
    "commands": Kind(put_in=systems.commands, share=9),
    "transcripts": Kind(put_in=parts.transcripts, share=2),
    "journals": Kind(put_in=systems.journals, share=5),
    "table rows": Kind(put_in=systems.rows, share=7),
    "answers": Kind(put_in=parts.answers, share=2),
    "dead letters": Kind(put_in=parts.letters, share=2),
}


def portions(inputs: int, names: Sequence[str]) -> dict[str, int]:
    """How many of each kind make *inputs* together."""
    whole = sum(KINDS[name].share for name in names)
    found = {name: inputs * KINDS[name].share // whole for name in names}
    found[names[0]] += inputs - sum(found.values())
    return found
