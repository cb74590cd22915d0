"""Results by a JSON Schema: read leniently, checked strictly, asked for once more where they are wrong.

What a model writes is read as it stands, else as the JSON that stands in it, else, as a last resort,
repaired by json-repair; whatever was read is a result only if the schema takes it. Nothing that may be
a part only is ever repaired into a whole: no reply that was cut off, and no JSON without an end.

A plan is never repaired (:mod:`agents.plan_reply`): a schema says what a result must hold, but nothing
says of a plan with a sub-task less that it is another plan.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from json_repair import repair_json
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships without types
from referencing import Registry

from agents.json_in_text import find_json
from agents.plain_json import FENCED, dumps, plain, text_or_json
from agents.ports import Done, GaveUp, ModelReply
from agents.prompt_data import user
from agents.schema_checks import quick
from agents.strict_json import NoOneMeaning, loads
from streams.core.values import Json, Usage

Schema: TypeAlias = Mapping[str, Json]

REPAIRED_CHARACTERS: Final = 65_536
"""A longer text is not repaired: some texts cost json-repair more than their length."""

READ_AT_ONCE: Final = 16_384
"""Characters that are read on the event loop; a longer text, and a repair, goes to a thread."""

SHOWN: Final = 200
"""Characters of one reason."""

REASONS: Final = 5
"""Reasons that the model is told at once."""

_PARSED_SCHEMAS: Final = 64
_LOOKED_BACK: Final = 200
_BEGINNING: Final = re.compile(r"(?:\A|[\n:`])[ \t]*+([{\[])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A result that its schema takes."""

    result: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class BadJson:
    """A reply that holds no result, and why, in words for the model that wrote it."""

    reasons: tuple[str, ...]


async def settled(
    reply: ModelReply,
    schema: Schema | None,
    *,
    again: Callable[[Mapping[str, Json]], Awaitable[ModelReply | GaveUp]],
    usage: Callable[[], Usage],
) -> Done | GaveUp:
    """The result that a model's last words are; where its schema refuses them, it is asked once more.

    Call it where a sub-agent would make ``Done(result=text_or_json(reply.text), ...)``::

        return await settled(reply, kind.schema, again=self._once_more, usage=lambda: self._usage)

    Args:
        reply: A whole reply without tool calls, that :func:`agents.verdicts.unfit` has let pass.
        schema: The kind's schema; None takes any text or JSON.
        again: Adds this message to the conversation and asks the model once more, without tools and
            with ``ModelRequest.schema`` set; gives a reply as *reply* is one, or why there is none.
        usage: What the attempt has cost until now, asked at the end.

    Returns:
        ``Done``, or ``GaveUp`` of kind ``bad_json``: another attempt may do better.
    """
    if schema is None:
        return Done(result=text_or_json(reply.text), usage=usage())
    read = await read_result(reply.text, schema)
    if isinstance(read, BadJson):
        second = await again(user({"refused": list(read.reasons), "result_schema": schema}))
        if isinstance(second, GaveUp):
            return second
        read = await read_result(second.text, schema)
    if isinstance(read, Read):
        return Done(result=read.result, usage=usage())
    reason = f"the result of {reply.model} is not what its schema asks for, after one more try: "
    return GaveUp(kind="bad_json", reason=reason + "; ".join(read.reasons), final=False, usage=usage())


async def read_result(text: str, schema: Schema) -> Read | BadJson:
    """The result in a text that was not cut off."""
    if len(text) > READ_AT_ONCE:
        return await asyncio.to_thread(_read, text, schema)
    read = _as_it_stands(text, schema)
    if isinstance(read, _Broken) and (part := repairable(text)):
        return await asyncio.to_thread(_repaired, part, schema) or read
    return read


def _read(text: str, schema: Schema) -> Read | BadJson:
    read = _as_it_stands(text, schema)
    if isinstance(read, _Broken) and (part := repairable(text)):
        return _repaired(part, schema) or read
    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class _Broken(BadJson):
    """Nothing in the reply could be read, so that it may be repaired."""


def _as_it_stands(text: str, schema: Schema) -> Read | BadJson:
    """The text as JSON, else the one JSON in it that fits, else the text itself where text is asked for."""
    stripped = text.strip()
    fenced = FENCED.match(stripped)
    try:
        value = loads(fenced.group(1).strip() if fenced else stripped)
    except NoOneMeaning as unclear:
        read: Read | BadJson = BadJson(reasons=(str(unclear)[:SHOWN],))
    except ValueError as broken:
        read = _in_it(stripped, schema, str(broken)[:SHOWN])
    else:
        read = _checked(value, schema)
    if isinstance(read, BadJson) and not faults(stripped, schema):
        return Read(result=stripped)
    return read


def _checked(value: Json, schema: Schema) -> Read | BadJson:
    why = faults(value, schema)
    return BadJson(reasons=why) if why else Read(result=value)


def _in_it(text: str, schema: Schema, broken: str) -> Read | BadJson:
    """The one value among the words of *text* that the schema takes, or why there is none."""
    found = find_json(text)
    if found.cut:  # whatever else there is: the last of it is not whole
        return BadJson(reasons=("the JSON of the reply has no end",))
    read: Read | BadJson | None = None
    place = 0
    for part in found.values:
        place = text.index(part, place)
        if part.startswith("{") or _on_its_own(text, place):
            try:
                another = _checked(loads(part), schema)
            except ValueError as unclear:
                another = BadJson(reasons=(str(unclear)[:SHOWN],))
            if not isinstance(read, Read):
                read = another
            elif isinstance(another, Read) and dumps(another.result) != dumps(read.result):
                return BadJson(reasons=("several different results in the reply: send one",))
        place += len(part)
    if read is not None:
        return read
    if found.broken:
        return _Broken(reasons=(f"the JSON of the reply breaks at {found.broken}",))
    return _Broken(reasons=(f"the reply is no JSON: {broken}",))


def _on_its_own(text: str, place: int) -> bool:
    """What begins there begins a line, or stands behind a colon or a fence: it is no ``[3]`` of the prose."""
    before = text[max(0, place - _LOOKED_BACK) : place].rpartition("\n")[2].strip()
    return not before or before.endswith((":", "`"))


def repairable(text: str) -> str:
    """The part of a text that json-repair may read as one value; empty where there is none.

    From the first bracket that begins a line or stands behind a colon to the last one, and only where
    as many are closed as are opened: what has no end may be half of what was meant.
    """
    start = _BEGINNING.search(text)
    if start is None or len(text) > REPAIRED_CHARACTERS:
        return ""
    part = text[start.start(1) : max(text.rfind("}"), text.rfind("]")) + 1]
    opened, closed = part.count("{") + part.count("["), part.count("}") + part.count("]")
    return part if opened <= closed else ""


def _repaired(part: str, schema: Schema) -> Read | None:
    """The value that json-repair makes of *part*, if the schema takes it."""
    try:
        value: Any = repair_json(part, return_objects=True, skip_json_loads=True)
    except (ValueError, RecursionError):  # nested deeper than it goes
        return None
    if not isinstance(value, (dict, list)) or not value:
        return None
    value = plain(value)
    return None if faults(value, schema) else Read(result=value)


def faults(value: Json, schema: Schema) -> tuple[str, ...]:
    """What the schema says against *value*, the first few, each with its place."""
    found: list[str] = []
    try:
        for error in _checker(dumps(schema)).iter_errors(value):
            found.append(f"{error.json_path}: {error.message}"[:SHOWN])
            if len(found) == REASONS:
                break
    except RecursionError:
        found.append("$: it is nested deeper than its schema can be followed")
    return tuple(found)


@lru_cache(maxsize=_PARSED_SCHEMAS)
def _checker(schema: bytes) -> Any:
    """What checks by this schema. It follows references within the schema, and fetches none from anywhere."""
    return quick(Draft202012Validator)(loads(schema), registry=Registry())
