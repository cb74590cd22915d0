"""JSON Schema's check of ``uniqueItems`` in linear time.

jsonschema compares every two items of a list whose items are objects: 2,000 of them, as a model may write
them into one reply, hold the event loop up for four seconds, and 100,000 for hours.
"""

from collections.abc import Hashable, Iterator
from typing import Any

from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]  # it ships without types
from jsonschema.validators import extend  # type: ignore[import-untyped]  # likewise

from streams.core.values import Json


def quick(validator: Any) -> Any:
    """The same class of validators, quick at ``uniqueItems``."""
    return extend(validator, {"uniqueItems": _unique})


def _unique(_: Any, wanted: Json, items: Json, __: Any) -> Iterator[ValidationError]:
    if wanted is True and isinstance(items, list) and len({_hashable(item) for item in items}) < len(items):
        yield ValidationError("has items that are not unique")


def _hashable(value: Json) -> Hashable:
    """Equal for values that JSON Schema takes for equal: 1 and 1.0 are, 1 and true are not."""
    match value:
        case bool():
            return (bool, value)
        case dict():
            return (dict, frozenset((name, _hashable(inner)) for name, inner in value.items()))
        case list():
            return (list, tuple(_hashable(inner) for inner in value))
    return value
