"""The simulated sub-agent: it calls the tools it can call, and answers with what they returned."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from agents.simulator.asked import Asked, Called, Offered
from agents.simulator.behaviour import MODEL
from agents.simulator.proposing import directed
from agents.simulator.shapes import TYPES, is_a
from agents.simulator.wanted import Wanted
from agents.simulator.wording import CUT_FIELDS, LABEL, head, quote

_NAME_CHARS = 100  # a longer text is no name of anything
_LIMITS = (  # characters of a text and entries of a list, tried until the answer fits
    (300, 100_000),
    (120, 100_000),
    (60, 100_000),
    (60, 40),
    (60, 12),
    (60, 4),
)


def work(asked: Asked) -> tuple[Wanted, ...] | str:
    """The next turn: tool calls to make side by side, or the answer.

    All calls go out in one turn, or in as few as *max_tokens* allows.
    """
    if (words := _told_to_say(asked)) is not None:
        return words
    items = _items(asked)
    wanted = [*directed(asked), *_wanted(asked.tools, items)]
    made = {(call.name, call.arguments) for call in asked.called}
    due = {(call.name, call.arguments): call for call in wanted if (call.name, call.arguments) not in made}
    if due:
        return _fitting(tuple(due.values()), asked.max_tokens)
    if asked.called:
        return _extract(asked, items)
    return _text(asked)


def _told_to_say(asked: Asked) -> str | None:
    """The words of a directive for this model, or None."""
    for each in asked.directives:
        if each.word != "say" or each.only is not None:
            continue
        words = list(each.args)
        if words[-2:-1] == ["by"] and words[-1].startswith(MODEL):
            *words, _, model = words
            if model != asked.model:
                continue
        return " ".join(words)
    return None


def _items(asked: Asked) -> Sequence[Any]:
    """The items to answer about: those of the input, else those of the results that tools can take.

    Tools may be gone in the last turn, so calls made before count as well.
    """
    share = asked.data.get("input")
    given = share if isinstance(share, list) else [] if share is None else [share]
    found = tuple(_objects(result.get("result") for result in _results(asked.data)))
    calls = [_read(call.arguments) for call in asked.called]
    for items in (given, found):
        for item in items:
            if any(_arguments(tool, item) is not None for tool in asked.tools):
                return items
            if any(_is_about(arguments, item) for arguments in calls):
                return items
    return given


def _results(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    results = data.get("results")
    return [r for r in results if isinstance(r, dict)] if isinstance(results, list) else []


def _objects(values: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    for value in values:
        if isinstance(value, dict) and isinstance(value.get("items"), list):
            yield from _objects(value["items"])
        elif isinstance(value, dict):
            yield value
        elif isinstance(value, list):
            yield from _objects(value)


def _wanted(tools: Sequence[Offered], items: Sequence[Any]) -> list[Wanted]:
    """A call for each tool and item with values for all that the tool requires.

    Where there are none, the tools that require nothing, once each: whoever knows the items
    has no need of a tool that lists them.
    """
    wanted = [
        Wanted(tool.name, orjson.dumps(arguments).decode())
        for item in items
        for tool in tools
        if (arguments := _arguments(tool, item)) is not None
    ]
    return wanted or [Wanted(tool.name, "{}") for tool in tools if not tool.required]


def _arguments(tool: Offered, item: Any) -> dict[str, Any] | None:
    """The item's values for the tool's parameters, by name; None where a required one is missing."""
    if not tool.required:
        return None
    if not isinstance(item, dict):
        # A bare name is taken for the one value that the tool requires.
        only = tool.required[0]
        bare = isinstance(item, str) and len(item) <= _NAME_CHARS and len(tool.required) == 1
        return {only: item} if bare and _fits(tool, only, item) else None
    if not all(name in item and _fits(tool, name, item[name]) for name in tool.required):
        return None
    known = dict.fromkeys((*tool.properties, *tool.required))
    return {name: item[name] for name in known if name in item and _fits(tool, name, item[name])}


def _fits(tool: Offered, name: str, value: Any) -> bool:
    schema = tool.properties.get(name)
    kind = schema.get("type") if isinstance(schema, dict) else None
    if not isinstance(kind, str) or kind not in TYPES or kind == "null":
        return value is not None
    return is_a(value, kind)


def _fitting(due: tuple[Wanted, ...], max_tokens: int) -> tuple[Wanted, ...]:
    """As many calls as the output may hold, at least one."""
    taken = 0
    left = max_tokens
    for call in due:
        left -= call.tokens
        if left < 0:
            break
        taken += 1
    return due[: max(1, taken)]


def _extract(asked: Asked, items: Sequence[Any]) -> str:
    """A JSON answer of what the tools returned, for one item an object, for several a list of them."""
    calls = [(_read(call.arguments), call) for call in asked.called]
    answers = [_merged(item, [c for arguments, c in calls if _is_about(arguments, item)]) for item in items]
    others = [c for arguments, c in calls if not any(_is_about(arguments, item) for item in items)]
    if others:
        answers.append(_merged(None, others))
    return _shortened(answers, 4 * asked.max_tokens)


def _read(arguments: str) -> dict[str, Any]:
    """The arguments of a call that this model made; a foreign one may be broken, and is about nothing."""
    try:
        read = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return {}
    return read if isinstance(read, dict) else {}


def _is_about(arguments: Mapping[str, Any], item: Any) -> bool:
    if isinstance(item, dict):
        return bool(arguments) and all(item.get(name) == value for name, value in arguments.items())
    return isinstance(item, str) and tuple(arguments.values()) == (item,)


def _merged(item: Any, calls: Iterable[Called]) -> dict[str, Any]:
    """All that the tools said about an item. A field that two tell differently stands twice."""
    merged: dict[str, Any] = {}
    for call in calls:
        output = call.output
        if not isinstance(output, dict) or set(output) == CUT_FIELDS:
            output = {call.name: output}
        for name, value in output.items():
            if name in merged and merged[name] != value:
                merged[f"{call.name}.{name}"] = value
            else:
                merged[name] = value
    known = item if isinstance(item, dict) else {} if item is None else {"item": item}
    return merged if isinstance(item, str) and item in merged.values() else {**known, **merged}


def _shortened(answers: Sequence[dict[str, Any]], limit: int) -> str:
    """The answers as JSON, with shorter texts, then shorter lists, where *limit* bytes are too few."""
    text = b""
    for texts, lists in _LIMITS:
        cut = [_cut(answer, texts, lists) for answer in answers]
        text = orjson.dumps(cut[0] if len(cut) == 1 else {"items": cut})
        if len(text) <= limit:
            break
    return text.decode()


def _cut(value: Any, texts: int, lists: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= texts else head(value, texts)
    if isinstance(value, dict):
        return {name: _cut(v, texts, lists) for name, v in value.items()}
    if isinstance(value, list) and len(value) > lists:
        return [*(_cut(v, texts, lists) for v in value[:lists]), f"and {len(value) - lists} more"]
    if isinstance(value, list):
        return [_cut(v, texts, lists) for v in value]
    return value


def _text(asked: Asked) -> str:
    """A text that quotes what the request holds."""
    quoted = _quoted(asked.data)
    goal = head(asked.goal, 200)
    if not quoted:
        return f"{LABEL}Nothing to extract: this request holds neither input nor results."
    return "\n".join([f"{LABEL}{goal}", *quoted])


def _quoted(data: Mapping[str, Any]) -> list[str]:
    share = data.get("input")
    items = share if isinstance(share, list) else [] if share is None else [share]
    lines = [f"- input: {quote(item, 240)}" for item in items]
    for result in _results(data):
        if result.get("outcome", "succeeded") == "succeeded":
            lines.append(f"- {result.get('task')}: {quote(result.get('result'), 240)}")
        else:
            reason = quote(result.get("reason", ""), 200)
            lines.append(f"- {result.get('task')} {result.get('outcome')}: {reason}")
    return lines
