"""Answers in the shape of a JSON Schema, as far as the simulated model can without inventing anything."""

from collections.abc import Mapping
from typing import Any

import orjson

from agents.simulator.wording import head

_NOTHING: dict[str, Any] = {
    "string": "",
    "integer": 0,
    "number": 0,
    "boolean": False,
    "array": [],
    "object": {},
    "null": None,
}
TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}
"""What JSON Schema calls the types of values."""

_TEXT = 400
_DEEP = 8


def in_shape(text: str, schema: Mapping[str, Any]) -> str:
    """The answer as JSON of this shape.

    It holds what the answer has under the names that the schema asks for, and else as little as the
    schema takes. A schema with more rules than types, names and enumerations is not always kept to.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = text
    return orjson.dumps(_fit(value, schema, _DEEP)).decode()


def _fit(value: Any, schema: Any, deep: int) -> Any:
    if not isinstance(schema, dict) or deep == 0:
        return value
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return value if value in schema["enum"] else schema["enum"][0]
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds or ("object" if "properties" in schema else None)]
    kind = next((kind for kind in kinds if is_a(value, kind)), kinds[0])
    match kind:
        case "object":
            return _object(value, schema, deep)
        case "array":
            items = value if isinstance(value, list) else [] if value in ("", None) else [value]
            return [_fit(item, schema.get("items"), deep - 1) for item in items]
        case "string" if not isinstance(value, str):
            return head(orjson.dumps(value).decode(), _TEXT) if value is not None else ""
        case str() if not is_a(value, kind):
            return _NOTHING.get(kind)
    return value


def _object(value: Any, schema: Mapping[str, Any], deep: int) -> dict[str, Any]:
    """The properties that the answer has or the schema requires.

    An answer that is no object goes to the first property that can hold it.
    """
    given = value if isinstance(value, dict) else {}
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = [name for name in schema.get("required", []) if isinstance(name, str)]
    made = {
        name: _fit(given.get(name), properties.get(name), deep - 1)
        for name in (*required, *(name for name in given if name in properties and name not in required))
    }
    if not given and value not in ("", None):
        for name, inner in properties.items():
            kind = inner.get("type") if isinstance(inner, dict) else None
            if is_a(value, kind) or (kind == "array" and not isinstance(value, list)):
                made[name] = _fit(value, inner, deep - 1)
                break
    return made if schema.get("additionalProperties") is False else {**given, **made}


def is_a(value: object, kind: object) -> bool:
    """Whether a value is of a type of JSON Schema."""
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(kind, str) and kind in TYPES and isinstance(value, TYPES[kind])
