"""Scenarios as JSON, so that a life can be lived again elsewhere, and later."""

from functools import cache
from typing import Any

import orjson
from pydantic import TypeAdapter

from streams.chaos.scenarios import Incident, Job, Poison, Scenario


def write_scenario(scenario: Scenario) -> bytes:
    """The fields that are not at their defaults, as JSON to read."""
    return orjson.dumps(_told(scenario), option=orjson.OPT_INDENT_2)


def read_scenario(written: bytes) -> Scenario:
    """The scenario that :func:`write_scenario` wrote.

    Raises:
        ValueError: it is none. A field that is not known any more is an error, too: without it the
            scenario would be another one.
    """
    scenario = _adapter().validate_json(written)
    if not _holds(orjson.loads(orjson.dumps(scenario)), orjson.loads(written)):
        raise ValueError("not all of it is known to a scenario")
    return scenario


@cache
def _adapter() -> TypeAdapter[Scenario]:
    return TypeAdapter(Scenario)


def _holds(whole: Any, part: Any) -> bool:
    """Whether *whole* has all that *part* has, at the same places."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(name in whole and _holds(whole[name], part[name]) for name in part)
    if isinstance(whole, list) and isinstance(part, list):
        return len(whole) == len(part) and all(map(_holds, whole, part))
    return bool(whole == part)


def _told(value: Any) -> Any:
    """A value of ours as a JSON object without what is at its default."""
    if isinstance(value, Scenario | Incident | Job | Poison):
        fields = type(value).__dataclass_fields__
        told = {name: getattr(value, name) for name in fields}
        return {
            name: _told(part)
            for name, part in told.items()
            if part != fields[name].default and not (part in ({}, ()) and name != "goal")
        }
    return [_told(part) for part in value] if isinstance(value, tuple | list) else value
