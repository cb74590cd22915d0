"""A long result in parts, for a step of the tree that works on one of them."""

from collections.abc import Sequence

from agents.plain_json import dumps
from streams.core.commands import Part, TaskResult
from streams.core.values import Inline, Json

_CONTINUES = 0b1000_0000
_CONTINUATION = 0b1100_0000


def part_of(text: bytes, part: int, parts: int) -> str:
    """One of some parts of UTF-8 text; together they are the whole of it, and no character is in two.

    Args:
        part: Which, from 1.
    """
    return text[_edge(text, part - 1, parts) : _edge(text, part, parts)].decode()


def in_parts(results: Sequence[TaskResult], parts: Sequence[Part]) -> tuple[TaskResult, ...]:
    """The results, of each the part that is meant: its text, or that of its JSON."""
    if not any(each.parts > 1 for each in parts):
        return tuple(results)
    return tuple(map(_cut, results, parts))


def _cut(one: TaskResult, part: Part) -> TaskResult:
    if part.parts == 1 or not isinstance(one.result, Inline):
        return one
    value: Json = one.result.value
    text = value.encode() if isinstance(value, str) else dumps(value)
    told: Json = {"part": part.part, "parts": part.parts, "text": part_of(text, part.part, part.parts)}
    return TaskResult(task=one.task, goal=one.goal, outcome=one.outcome, result=Inline(value=told))


def _edge(text: bytes, part: int, parts: int) -> int:
    """Where a part ends: at its share of the bytes, or behind the character that stands there."""
    edge = len(text) * part // parts
    while edge < len(text) and text[edge] & _CONTINUATION == _CONTINUES:
        edge += 1
    return edge
