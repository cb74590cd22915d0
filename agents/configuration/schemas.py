"""Values that become JSON: scopes of tools, and the JSON Schema of a kind's results."""

import math
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped]  # it ships without types
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]  # likewise
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from agents.configuration.problems import Path, dotted, shown

MOST_DIGITS: Final = 2**63
"""Integers of JSON that every reader keeps as they are stay below this."""

_REFERENCES: Final = ("$ref", "$dynamicRef")


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
    checker = Draft202012Validator(
        Draft202012Validator.META_SCHEMA, format_checker=FormatChecker(formats=("regex",))
    )
    error = best_match(checker.iter_errors(schema))
    if error is not None:
        path = (*at, *error.absolute_path)
        told = f"{dotted(path)} is no JSON Schema: {error.message[:200]}"
        yield path, told, "see https://json-schema.org/draft/2020-12"
        return
    yield from _references(at, schema)


def _references(at: Path, schema: Mapping[str, Any]) -> Iterator[tuple[Path, str, str]]:
    """References that lead to no schema, and those that lead back to themselves before anything is read."""
    whole = dict(schema)
    resolver = Registry().resolver_with_root(DRAFT202012.create_resource(whole))
    places: dict[int, Path] = {}
    same_value: dict[int, list[int]] = {}
    left: list[tuple[Path, object]] = [(at, whole)]
    while left:
        path, each = left.pop()
        if isinstance(each, list):
            left += [((*path, index), inner) for index, inner in enumerate(each)]
        if not isinstance(each, dict):
            continue
        left += [((*path, name), inner) for name, inner in each.items()]
        places[id(each)] = path
        same_value[id(each)] = [id(inner) for inner in _of_the_same_value(each)]
        for name in _REFERENCES:
            reference = each.get(name)
            if not isinstance(reference, str):
                continue  # a property of that name
            try:
                meant = resolver.lookup(reference).contents
            except (Unresolvable, ValueError, TypeError):  # of a pointer into a number, the last
                meant = None
            if not isinstance(meant, dict | bool):
                told = f"{dotted(path)} refers to {shown(reference)}, which is not in the schema"
                yield (*path, name), told, 'write it out, or refer to "#/$defs/NAME"'
            else:
                same_value[id(each)].append(id(meant))
    try:
        TopologicalSorter(same_value).prepare()
    except CycleError as endless:
        path = min((places[each] for each in endless.args[1]), key=lambda path: (len(path), dotted(path)))
        told = f"{dotted(path)} refers to itself before it says anything of a value, without an end"
        yield path, told, "leave the reference out, or put it into properties or items"


def _of_the_same_value(schema: Mapping[str, Any]) -> Iterator[object]:
    """The schemas in this one that are tried on the very value that it is tried on, not on a part of it."""
    for name in ("allOf", "anyOf", "oneOf"):
        yield from schema[name] if isinstance(schema.get(name), list) else ()
    for name in ("not", "if", "then", "else"):
        yield schema.get(name)
    dependent = schema.get("dependentSchemas")
    yield from dependent.values() if isinstance(dependent, dict) else ()
