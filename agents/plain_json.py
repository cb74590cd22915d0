"""JSON that every endpoint can read, whatever stood in a goal, a reply or a tool's output."""

import math
import re
from collections.abc import Mapping
from typing import Any

import orjson

from agents.strict_json import MAX_DEPTH, deeper_than, loads
from streams.core.values import Json

MAX_INT = 2**64 - 1
"""The largest integer that orjson writes (https://github.com/ijl/orjson#int)."""

MIN_INT = -(2**63)

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
    beyond 64 bits floats, keys text, and what JSON has no form for the text that ``str`` makes, as
    does what is nested deeper than the records have room for.
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
    if isinstance(value, (Mapping, list, tuple, set, frozenset)) and depth >= MAX_DEPTH:
        return scrub(words_of(value))
    if isinstance(value, Mapping):
        return {scrub(words_of(key)): scrub(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [scrub(item, depth + 1) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    return scrub(words_of(value))


def words_of(value: object) -> str:
    """What ``str`` makes of a value; of one that has no words for itself, its type."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - RecursionError of a deep one, whatever of a foreign one
        return f"<{type(value).__name__}>"


def plain(value: object) -> Json:
    """*value* as it will be read back from its JSON, at most as deep as records have room for."""
    encoded = dumps(value)
    read_back: Json = orjson.loads(encoded)
    if encoded.count(b"[") + encoded.count(b"{") > MAX_DEPTH and deeper_than(read_back, MAX_DEPTH):
        read_back = orjson.loads(orjson.dumps(scrub(read_back)))
    return read_back


def text_or_json(text: str) -> Json:
    """What a model's final words are: JSON (an object or a list, maybe fenced), else text.

    JSON that has no one meaning stays text, so that nothing of it gets lost.
    """
    stripped = text.strip()
    fenced = FENCED.match(stripped)
    inner = fenced.group(1).strip() if fenced else stripped
    if inner[:1] in ("{", "["):
        try:
            return loads(inner)
        except ValueError:
            return stripped
    return stripped


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
