"""Reading ``anabranch.toml``: the whole configuration, or all that is wrong with it, each with its line."""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError

from agents.configuration import variables
from agents.configuration.building import built, defaults_of
from agents.configuration.positions import find, syntax
from agents.configuration.problems import BadConfiguration, Path, Problem, dotted, is_secret, nearest, shown
from agents.configuration.references import Tables, faults
from agents.configuration.schemas import json_faults
from agents.configuration.tables import (
    ALONE,
    DEFAULTS,
    NAMES,
    SECTIONS,
    CallTable,
    Table,
)
from agents.configuration.values import CALLS, Configuration
from agents.configuration.wording import worded
from agents.strict_json import deeper_than

MAX_BYTES: Final = 1_048_576
"""A file that is longer is no configuration."""

DEEPEST: Final = 64
"""Levels of nesting; a schema within a kind has a few less."""

Fault = tuple[Path, str, str]
_Table = TypeVar("_Table", bound=Table)

GoalFaults: TypeAlias = Callable[[Mapping[str, Any]], Iterable[tuple[Path, str]]]
"""What of some fields cannot be a goal's defaults: where, and why."""


def any_goal(_: Mapping[str, Any]) -> Iterable[tuple[Path, str]]:
    """For whoever does not know goals: nothing is wrong."""
    return ()


def decoded(data: bytes, *, path: str) -> str:
    """The text of a file.

    Raises:
        BadConfiguration: it is too long, or no UTF-8.
    """
    if len(data) > MAX_BYTES:
        what = f"it has {len(data):,} bytes"
        raise BadConfiguration([Problem(path=path, line=1, what=what, to_do="no configuration is so long")])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        what = "there is a byte that is no UTF-8"
        raise BadConfiguration(
            [Problem(path=path, line=line, what=what, to_do="save the file as UTF-8")]
        ) from None


def read_configuration(
    text: str, *, path: str, environment: Mapping[str, str], goal_faults: GoalFaults = any_goal
) -> Configuration:
    """The configuration that *text* and the variables say.

    Args:
        text: What stands in the file; an empty one leaves all to variables and defaults.
        path: The file, for the words of problems.
        environment: All variables, keys among them.
        goal_faults: Looks at the defaults of goals, whose fields are not known here.

    Raises:
        BadConfiguration: it cannot be; all that is wrong, each with its line.
    """
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers with thousands of digits, and brackets
        line, said = syntax(text, error)
        told = f"this is no TOML: {said[:1].lower()}{said[1:]}"
        to_do = "a table or a key stands once" if "Cannot" in said else "see https://toml.io/en/v1.0.0"
        raise BadConfiguration([Problem(path=path, line=line, what=told, to_do=to_do)]) from None
    tables = Tables()
    found = list(_faults(data, tables, environment))
    found += _default_faults(tables, goal_faults, {at for at, _, _ in found})
    if found:
        places = find(text)
        raise BadConfiguration(
            Problem(path=path, line=places.of(at), what=what, to_do=to_do) for at, what, to_do in found
        )
    return replace(built(tables, environment), path=path)


def _faults(data: dict[str, Any], tables: Tables, environment: Mapping[str, str]) -> Iterator[Fault]:
    """All faults, the tables being filled meanwhile."""
    if deeper_than(data, DEEPEST):
        yield (), f"it is nested more than {DEEPEST} levels deep", "leave out some"
        return
    # What is said of a value once is not said again, for another reason, where it does not fit.
    said = set()
    for fault in _read(data, tables, environment):
        said.add(fault[0])
        yield fault
    for at in _secrets(data):
        if at not in said:
            said.add(at)
            told = f"{dotted(at)} holds what looks like a key or a password"
            yield at, told, "put it into an environment variable, and name that one here"
    for fault in faults(tables, model=environment.get(variables.MODEL, "").strip(), environment=environment):
        if fault[0] not in said:
            yield fault


def _read(data: dict[str, Any], tables: Tables, environment: Mapping[str, str]) -> Iterator[Fault]:
    """The faults of the tables, each for itself."""
    known = (*SECTIONS, *ALONE, DEFAULTS)
    for section, value in data.items():
        if section not in known:
            yield (section,), f"{dotted((section,))} is no table that there is", nearest(section, known)
        elif not isinstance(value, dict):
            yield (section,), f"{section} is {shown(value)}", f"write a table, [{_header(section)}]"
        elif section == DEFAULTS:
            tables.defaults = value
        elif section in ALONE:
            read, wrong = _table(ALONE[section], value, (section,), {})
            setattr(tables, section, read)
            tables.unread |= {path for path, _, _ in wrong}
            yield from wrong
        else:
            yield from _section(section, value, tables, environment)


def _default_faults(tables: Tables, goal_faults: GoalFaults, said: set[Path]) -> Iterator[Fault]:
    """What of the defaults of goals cannot be: of all tenants, and of each with its own over them."""
    to_do = "README.md has the fields of goals, docs/tenants.md what a default may be"
    own = {name: each.defaults for name, each in tables.tenants.items() if each.defaults}
    places: list[tuple[Path, dict[str, Any]]] = [((DEFAULTS,), tables.defaults)]
    places += [(("tenants", name, DEFAULTS), given) for name, given in own.items()]
    wrong = [
        (at, f"{dotted(at)} is no default: {what}", to_do)
        for place, given in places
        for at, what in _of_goals(place, given, goal_faults)
    ]
    yield from (fault for fault in wrong if fault[0] not in said)
    if wrong or said:
        return
    for name in ("", *tables.tenants):
        place = ("tenants", name, DEFAULTS) if name else (DEFAULTS,)
        for _, what in goal_faults(defaults_of(tables, name)):
            where = "" if name else ", with the timeouts of kinds"
            yield place, f"{dotted(place)} does not fit with all other defaults{where}: {what}", to_do
            break


def _of_goals(place: Path, given: Mapping[str, Any], goal_faults: GoalFaults) -> Iterator[tuple[Path, str]]:
    no_json = [(at, what) for at, what, _ in json_faults(place, given)]
    yield from no_json
    if not no_json:
        yield from (((*place, *at), what) for at, what in goal_faults(given))


def _section(
    section: str, value: dict[str, Any], tables: Tables, environment: Mapping[str, str]
) -> Iterator[Fault]:
    names = TypeAdapter(NAMES[section])
    tables.names[section] = tuple(value)
    taken: dict[str, str] = {}
    for name, entry in value.items():
        at: Path = (section, name)
        try:
            names.validate_python(name)
        except ValidationError as error:
            bounds = error.errors()[0].get("ctx", {})
            yield at, f"a name in [{section}] {bounds['what']}", str(bounds["to_do"])
        if section in variables.OVERRIDABLE:
            other = taken.setdefault(variables.variable(section, name, ""), name)
            if other != name:
                told = f"{dotted(at)} and {dotted((section, other))} would be set by the same variables"
                yield at, told, "give one another name"
        if not isinstance(entry, dict):
            yield at, f"{dotted(at)} is {shown(entry)}", f"write a table, [{dotted(at)}]"
            continue
        given = dict(entry)
        origins: dict[str, str] = {}
        for key, where, override in variables.overrides(section, name, environment):
            given[key], origins[key] = override, where
        table = CallTable if section == "kinds" and name in CALLS else SECTIONS[section]
        read, wrong = _table(table, given, at, origins)
        yield from wrong
        tables.unread |= {path[:3] for path, _, _ in wrong}
        getattr(tables, section)[name] = read


def _table(
    table: type[_Table], given: Mapping[str, Any], at: Path, origins: Mapping[str, str]
) -> tuple[_Table, list[Fault]]:
    """The table without the keys that are wrong, and what is wrong with them."""
    wrong: list[Fault] = []
    left = dict(given)
    try:
        return table.model_validate(left), wrong
    except ValidationError as error:
        for each in error.errors(include_url=False):
            path, what, to_do = worded(each, table, at)
            key = str(each["loc"][0])
            where = f" (by {origins[key]})" if key in origins else ""
            wrong.append((path, f"{what}{where}", to_do))
            left.pop(key, None)
    return table.model_validate(left), wrong


def _secrets(data: dict[str, Any]) -> Iterator[Path]:
    """Where something stands that looks like a key or a password."""
    left: list[tuple[Path, object]] = [((), data)]
    while left:
        path, each = left.pop()
        if isinstance(each, dict):
            left += [((*path, name), inner) for name, inner in each.items()]
        elif isinstance(each, list):
            left += [((*path, index), inner) for index, inner in enumerate(each)]
        elif isinstance(each, str) and is_secret(each):
            yield path


def _header(section: str) -> str:
    return f"{section}.NAME" if section in SECTIONS else section
