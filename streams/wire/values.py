"""Values on their own, as claim checks hold them."""

from streams.core.values import Json
from streams.wire.envelope import dump

DEPTH = 100
"""Levels of nesting; the records that a value goes into have room for this many and their own."""


def write_value(value: Json) -> bytes:
    """The JSON of a value that is to become a part of a record.

    Raises:
        Unwritable: it has no JSON: too deep, an integer beyond 64 bits, a lone surrogate, a foreign type.
    """
    return dump(value, depth=DEPTH)
