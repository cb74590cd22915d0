r"""The variable part of every prompt: data as one JSON object in the user message.

What tools and other sub-agents said stands in an envelope that says so, ``{"data_from": ..., "data": ...}``
for a tool. Since it is JSON, nothing that they say can end the envelope: a quote in it is a ``\\"``.
"""

from collections.abc import Mapping, Sequence

from agents.plain_json import dumps_text
from streams.core.commands import TaskResult
from streams.core.values import Inline, Json, Value


def inline(value: Value) -> Json:
    """The value itself.

    Raises:
        TypeError: it is a claim check, which whoever runs an agent resolves beforehand.
    """
    if isinstance(value, Inline):
        return value.value
    raise TypeError(
        f"an agent was given a claim check for {value.size} bytes on {value.topic}, not the value"
    )


def system(prompt: str) -> dict[str, Json]:
    """The fixed message that stands first."""
    return {"role": "system", "content": prompt}


def user(data: Mapping[str, Json]) -> dict[str, Json]:
    """A message of data."""
    return {"role": "user", "content": dumps_text(data)}


def from_tool(name: str, encoded: str) -> str:
    """A tool's message: data, and from where.

    Args:
        encoded: The JSON of what it returned.
    """
    return f'{{"data_from":{dumps_text(f"tool {name}")},"data":{encoded}}}'


def results(ended: Sequence[TaskResult]) -> list[dict[str, Json]]:
    """How sub-tasks ended, as their dependants and the synthesis are told."""
    told: list[dict[str, Json]] = []
    for one in ended:
        entry: dict[str, Json] = {"task": one.task, "goal": one.goal, "outcome": one.outcome}
        if one.result is not None:
            entry["result"] = inline(one.result)
        else:
            entry["reason"] = one.reason
        told.append(entry)
    return told
