"""Words of the simulated model: shortening, and values as a person would write them."""

import re
from typing import Any

import orjson

LABEL = "(simulated) "
"""Stands before every text that the simulated model writes."""

CUT_FIELDS = {"note", "head", "tail"}
"""The fields of the object that stands for a value too long for the prompt: head and tail of its JSON."""

_NOT_IN_ID = re.compile(r"[^a-z0-9]+")


def head(text: str, limit: int) -> str:
    """The beginning of a text on one line, at most *limit* characters, with a mark where it was cut."""
    line = " ".join(text.split()) if len(text) < 4 * limit else " ".join(text[: 4 * limit].split())
    if len(line) <= limit:
        return line
    return line[: max(0, limit - 1)].rstrip() + "…"


def quote(value: Any, limit: int) -> str:
    """The beginning of a value: a text as it is, without the label; anything else as JSON."""
    if isinstance(value, str):
        return head(value.removeprefix(LABEL), limit)
    return head(orjson.dumps(value).decode(), limit)


def slug(text: str) -> str:
    """A text as part of an id: lower case, letters, digits and dashes; empty where nothing is left."""
    return _NOT_IN_ID.sub("-", text.lower()).strip("-")[:24].strip("-")
