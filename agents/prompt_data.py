"""The variable part of every prompt: data as one JSON object in the user message."""

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
