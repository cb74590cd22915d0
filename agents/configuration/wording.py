"""What pydantic finds in a table, in words for whoever wrote it: what is wrong, and what to do."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from agents.configuration.problems import Path, dotted, near, nearest, shown
from agents.configuration.tables import ALONE, SECTIONS, WITHIN, PricesTable, Table, keys

WANTED: Final = {
    "string_type": "text, in quotes",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a number that is finite",
    "bool_type": "true or false",
    "list_type": "a list, in [ ]",
    "dict_type": "a table",
    "model_type": "a table",
}
"""By pydantic's word for a value of another type."""

MEANT: Final = {
    "args": "command",
    "env": "environment",
    "fallback": "models",
    "fallbacks": "models",
    "max_tokens": "turn_tokens",
    "name": "id",
    "rpm": "requests_per_minute",
    "timeout": "call_s",
    "tpm": "tokens_per_minute",
}
"""What other programs call our keys, where the names are not alike."""

NAMED: Final = 2
"""Parts of the path of a named table."""

_SECRETS: Final = frozenset({"api_key", "apikey", "key", "keys", "api_keys", "token", "secret", "password"})


def worded(error: ErrorDetails, table: type[BaseModel], at: Path) -> tuple[Path, str, str]:
    """Where it is, what is wrong, and what to do.

    Args:
        error: What pydantic found.
        table: The table that it found it in.
        at: The path of that table.
    """
    inner = tuple(part for part in error["loc"] if part != "[key]")
    path: Path = (*at, *inner)
    name, value, bounds = dotted(path), error["input"], error.get("ctx", {})
    match error["type"]:
        case "own":
            return path, f"{name} {bounds['what']}", str(bounds["to_do"])
        case "missing":
            return path, f"{name} is missing", "write it, or leave out the whole table"
        case "extra_forbidden":
            where = _holding(table, inner)
            return path, f"{name} is no key", _instead(str(inner[-1]), value, where, path)
        case "literal_error":
            choices = str(bounds["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
            meant = near(str(value), choices) if isinstance(value, str) else ""
            told = ", ".join(f'"{choice}"' for choice in choices)
            to_do = f'did you mean "{meant}"? ' if meant else ""
            return path, f"{name} is {shown(value)}", f"{to_do}write one of {told}"
        case "greater_than_equal" | "greater_than" | "less_than_equal" | "less_than":
            return path, f"{name} is {shown(value)}", f"write a number {_range(table, inner)}"
        case "too_short" | "string_too_short":
            return path, f"{name} is empty", "name at least one, or leave the key out"
        case kind if kind in WANTED:
            return path, f"{name} is {shown(value)}", f"write {WANTED[kind]}"
        case _:
            return path, f"{name} is {shown(value)}", error["msg"].lower()


def _instead(name: str, value: object, table: type[BaseModel], path: Path) -> str:
    """What to write instead of a key that there is not."""
    known = keys(table) if issubclass(table, Table) else ()
    lower = name.lower()
    if lower in _SECRETS and "key_variables" in known:
        return 'keys stand in environment variables, and their names here: key_variables = ["NAME"]'
    if MEANT.get(lower) in known:
        return f"did you mean {MEANT[lower]}?"
    if meant := near(name, known):
        return f"did you mean {meant}?"
    if isinstance(value, dict) and len(path) == NAMED + 1 and path[0] in SECTIONS:
        return f"a name with a dot in it stands in quotes: [{dotted((path[0], f'{path[1]}.{name}'))}]"
    for section, other in ELSEWHERE.items():
        if lower in keys(other):
            return f"it belongs to [{section}]"
    return nearest(name, known)


ELSEWHERE: Final[Mapping[str, type[Table]]] = {
    **{f"{section}.NAME": table for section, table in SECTIONS.items()},
    "models.NAME.prices": PricesTable,
    **ALONE,
}
"""The tables as one writes their headers."""


def _holding(table: type[BaseModel], inner: Path) -> type[BaseModel]:
    """The table that the last key of a path stands in."""
    return next(
        (WITHIN[part] for part in reversed(inner[:-1]) if isinstance(part, str) and part in WITHIN), table
    )


def _range(table: type[BaseModel], inner: Path) -> str:
    """The bounds of a key: ``from 1 to 1,000``."""
    fields = _holding(table, inner).model_fields
    name = str(inner[-1]) if inner[-1] in fields else str(inner[0])
    found: dict[str, Any] = {}
    for each in _metadata(fields[name].annotation, fields[name].metadata):
        for bound in ("gt", "ge", "lt", "le"):
            value = getattr(each, bound, None)
            if value is not None:
                found[bound] = value
    most = f"{found['le']:,.0f}"
    return f"from {found['ge']:,} to {most}" if "ge" in found else f"above {found['gt']:,} and up to {most}"


def _metadata(annotation: Any, own: list[Any]) -> list[Any]:
    """The constraints of a field, those within a union with None among them."""
    found = list(own)
    left = [annotation]
    while left:
        each = left.pop()
        for constraint in getattr(each, "__metadata__", ()):
            found += getattr(constraint, "metadata", None) or [constraint]
        left += [arg for arg in getattr(each, "__args__", ()) if not isinstance(arg, str)]
    return found
