"""Values that become JSON: scopes of tools, and the JSON Schema of a kind's results."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships without types
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]  # likewise
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from agents.configuration.problems import Path, dotted, shown

MOST_DIGITS: Final = 2**63
"""Integers of JSON that every reader keeps as they are stay below this."""


def json_faults(at: Path, value: object) -> Iterator[tuple[Path, str, str]]:
    """What of a TOML value is no JSON: dates, times, numbers without an end."""
    left: list[tuple[Path, object]] = [(at, value)]
    while left:
        path, each = left.pop()
        match each:
            case dict():
                left += [((*path, name), inner) for name, inner in each.items()]
            case list():
                left += [((*path, index), inner) for index, inner in enumerate(each)]
            case float() if not math.isfinite(each):
                yield path, f"{dotted(path)} is {each}, which JSON does not have", "write a finite number"
            case bool() | str() | float():
                pass
            case int() if not -MOST_DIGITS <= each < MOST_DIGITS:
                yield path, f"{dotted(path)} is a number of more than 64 bits", "write a smaller one"
            case int():
                pass
            case _:
                told = f"{dotted(path)} is {shown(each)}, a date or time, which JSON does not have"
                yield path, told, "write it in quotes"


def schema_faults(at: Path, schema: Mapping[str, Any]) -> Iterator[tuple[Path, str, str]]:
    """Why this is no JSON Schema that can be kept to: draft 2020-12, without parts from elsewhere."""
    wrong = list(json_faults(at, schema))
    yield from wrong
    if wrong:
        return
    checker = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    error = best_match(checker.iter_errors(schema))
    if error is not None:
        path = (*at, *error.absolute_path)
        told = f"{dotted(path)} is no JSON Schema: {error.message[:200]}"
        yield path, told, "see https://json-schema.org/draft/2020-12"
        return
    yield from _unresolved(at, schema)


def _unresolved(at: Path, schema: Mapping[str, Any]) -> Iterator[tuple[Path, str, str]]:
    resolver = Registry().resolver_with_root(DRAFT202012.create_resource(dict(schema)))
    left: list[tuple[Path, object]] = [(at, schema)]
    while left:
        path, each = left.pop()
        if isinstance(each, list):
            left += [((*path, index), inner) for index, inner in enumerate(each)]
        if not isinstance(each, dict):
            continue
        left += [((*path, name), inner) for name, inner in each.items()]
        reference = each.get("$ref")
        if not isinstance(reference, str):
            continue  # a property of that name
        try:
            resolver.lookup(reference)
        except (Unresolvable, ValueError):
            told = f"{dotted(path)} refers to {shown(reference)}, which is not in the schema"
            yield (*path, "$ref"), told, 'write it out, or refer to "#/$defs/NAME"'
