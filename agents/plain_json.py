"""JSON that every endpoint can read, whatever stood in a goal, a reply or a tool's output."""

import math
import re
from collections.abc import Mapping
from typing import Any

import orjson

from streams.core.values import Json

MAX_INT = 2**64 - 1
"""The largest integer that orjson writes (https://github.com/ijl/orjson#int)."""

MIN_INT = -(2**63)

MAX_DEPTH = 200
"""orjson refuses more than 254 nested levels; what is deeper becomes text."""

FENCED = re.compile(r"\A```[a-zA-Z]*\s*\n(.*?)\n?\s*```\Z", re.DOTALL)


def dumps(value: object) -> bytes:
    """Compact JSON of *value*, which may hold what JSON cannot: see :func:`scrub`."""
    try:
        return orjson.dumps(value)
    except TypeError:  # orjson.JSONEncodeError: a lone surrogate, a huge integer, an odd type
        return orjson.dumps(scrub(value))


def dumps_text(value: object) -> str:
    """:func:`dumps`, as text."""
    return dumps(value).decode()


def scrub(value: object, depth: int = 0) -> Any:
    """*value* as plain JSON.

    Lone surrogates become U+FFFD, NaN and infinities null (as orjson writes them), integers
    beyond 64 bits floats, keys text, and what JSON has no form for the text that ``str`` makes.
    """
    if isinstance(value, str):
        # Through UTF-16, so that two halves of one character come together and a lone half is replaced.
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if MIN_INT <= value <= MAX_INT else _finite(_as_float(value))
    if isinstance(value, float):
        return _finite(value)
    if depth >= MAX_DEPTH:
        return scrub(str(value))
    if isinstance(value, Mapping):
        return {scrub(str(key)): scrub(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [scrub(item, depth + 1) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    return scrub(str(value))


def plain(value: object) -> Json:
    """*value* as it will be read back from its JSON."""
    read_back: Json = orjson.loads(dumps(value))
    return read_back


def text_or_json(text: str) -> Json:
    """What a model's final words are: JSON (an object or a list, maybe fenced), else text."""
    stripped = text.strip()
    fenced = FENCED.match(stripped)
    inner = fenced.group(1).strip() if fenced else stripped
    if inner[:1] in ("{", "["):
        try:
            value: Json = orjson.loads(inner)
        except orjson.JSONDecodeError:
            return stripped
        return value
    return stripped


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
