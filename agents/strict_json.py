"""JSON with one meaning: what parsers pass over in silence is refused here.

RFC 8259 leaves open what two equal keys mean (section 4) and how large a number may be (section 6);
orjson keeps the last of the keys and turns integers beyond 64 bits into floats. Whoever wrote that
meant something else, so it is told to them.
"""

import json
import math
from typing import Final, NoReturn

import orjson

from streams.core.values import Json

MAX_DEPTH: Final = 100
"""Levels of nesting of a value that is to become a part of a record: the records have room for this
many and for their own."""

_SHOWN: Final = 40


class NoOneMeaning(ValueError):
    """JSON that is well formed but has no one meaning; its text says why.

    Attributes:
        key: The key that stands twice; empty where it is something else.
    """

    def __init__(self, why: str, key: str = "") -> None:
        super().__init__(why)
        self.key = key


def decode(text: str) -> Json:
    """The value of *text*, which may hold lone surrogates.

    Raises:
        NoOneMeaning: a key stands twice, or a number is out of range.
        ValueError: it is no JSON.
        RecursionError: it is nested some hundred levels deep; nobody who bounds that first sees it.
    """
    value: Json = _DECODER.decode(text)
    return value


def loads(data: bytes | str) -> Json:
    """The value of *data*, at most :data:`MAX_DEPTH` levels deep.

    Raises:
        NoOneMeaning: a key stands twice, a number is out of range, or it is nested too deep.
        ValueError: it is no JSON.
    """
    value: Json = orjson.loads(data)  # the stricter one about the grammar and about Unicode
    text = data if isinstance(data, str) else data.decode()
    if text.count("[") + text.count("{") > MAX_DEPTH and deeper_than(value, MAX_DEPTH):
        raise NoOneMeaning(f"it is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, (dict, list)):
        decode(text.strip())
    return value


def deeper_than(value: object, levels: int) -> bool:
    """Whether lists and objects are nested in *value* in more than so many *levels*."""
    if isinstance(value, dict):
        return levels <= 0 or any(deeper_than(inner, levels - 1) for inner in value.values())
    if isinstance(value, list):
        return levels <= 0 or any(deeper_than(inner, levels - 1) for inner in value)
    return False


def _members(pairs: list[tuple[str, Json]]) -> Json:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise NoOneMeaning(f"key {key[:_SHOWN]!r} stands twice in an object", key)
            seen.add(key)
    return value


def _whole(digits: str) -> int:
    # The integers that orjson writes; Python itself refuses to read more than 4,300 digits.
    if len(digits) > len(str(-(2**64))) or not -(2**63) <= int(digits) < 2**64:
        raise NoOneMeaning(f"number {digits[:_SHOWN]} is out of range")
    return int(digits)


def _fraction(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise NoOneMeaning(f"number {digits[:_SHOWN]} is out of range")
    return number


def _no_number(word: str) -> NoReturn:
    raise NoOneMeaning(f"{word} is no number of JSON")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_whole, parse_float=_fraction, parse_constant=_no_number
)
