"""The simulated synthesis: one table of what the sub-tasks returned, and what stands out in it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from agents.simulator.asked import Asked
from agents.simulator.wording import CUT_FIELDS, LABEL, head, quote

Row = Mapping[str, Any]

_JUDGING = ("verdict", "status", "outcome")
_ALARMING = frozenset({"copyleft", "unknown", "contradictory", "failed", "error", "missing", "conflict"})
_MOST_GROUPS = 12  # a field with more values than this is no judgement
_CELL_CHARS = (80, 64, 48, 40, 32)
_MOST_COLUMNS = 24
_NAMES = ("name", "title", "id", "item", "task")
_WORD = re.compile(r"[a-z0-9_]+")
_KILO = 1_000
_BYTES = "_bytes"  # fields that end so count bytes
_LEAST_NAMED = 3  # a goal that names so many fields asks for a table of them


def join(asked: Asked) -> str:
    """The answer, in Markdown: findings, results that are missing, then a table or quotes."""
    given = asked.data.get("results")
    results = [r for r in given if isinstance(r, dict)] if isinstance(given, list) else []
    good = [r for r in results if r.get("outcome", "succeeded") == "succeeded"]
    bad = [r for r in results if r.get("outcome", "succeeded") != "succeeded"]
    rows: list[Row] = []
    told: list[str] = []
    for result in good:
        own = list(_rows(result.get("result")))
        rows.extend(own)
        if not own:
            told.append(f"- {result.get('task')}: {quote(result.get('result'), 400)}")
    if not _common(rows):
        told = [f"- {r.get('task')}: {quote(r.get('result'), 400)}" for r in good]
        rows = []
    title = (
        f"{LABEL}Joined without a model from {len(good)} of {len(results)} results: {head(asked.goal, 300)}"
    )
    before = [title, *_findings(rows), *_missing(bad)]
    if told:
        before += ["", "## Results", "", *told]
    if not good:
        before += ["", "There is no result to join."]
    sources = ", ".join(f"[{r.get('task')}]" for r in good)
    cites = ["", f"Sources: {sources}"] if any(d.word == "cite" for d in asked.directives) else []
    room = 4 * asked.max_tokens - len("\n".join([*before, *cites]).encode())
    return "\n".join([*before, *_table(rows, asked.goal, room), *cites]) + "\n"


def _rows(value: Any) -> Iterator[Row]:
    """The objects of a result: the result, its ``items``, or those of its JSON text."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return
    if isinstance(value, dict) and set(value) == CUT_FIELDS:
        return
    if isinstance(value, dict) and isinstance(value.get("items"), list):
        value = value["items"]
    values = value if isinstance(value, list) else [value]
    if values and all(isinstance(v, dict) for v in values):
        yield from values


def _common(rows: Sequence[Row]) -> bool:
    """Most of the rows share a field, so that a table says something."""
    fields: dict[str, int] = {}
    for row in rows:
        for field, value in row.items():
            if _cell(value):
                fields[field] = fields.get(field, 0) + 1
    return max(fields.values(), default=0) > len(rows) / 2


def _findings(rows: Sequence[Row]) -> list[str]:
    lines: list[str] = []
    for field in _judgements(rows):
        groups: dict[str, list[str]] = {}
        for row in rows:
            groups.setdefault(str(row.get(field) or "not told"), []).append(_name(row))
        largest = max(groups, key=lambda value: len(groups[value]))
        # What alarms comes first; of the largest harmless group the number is enough.
        for value in sorted(groups, key=lambda v: (v.lower() not in _ALARMING, v == largest, v)):
            names = groups[value]
            plain = value == largest and value.lower() not in _ALARMING and len(groups) > 1
            listed = "" if plain else f": {', '.join(names)}"
            lines.append(f"- {field} **{value}**, {len(names)} of {len(rows)}{listed}")
    return ["", "## Findings", "", *lines] if lines else []


def _judgements(rows: Sequence[Row]) -> list[str]:
    """Fields that judge their row: named so, always a text, with few different values."""
    fields = dict.fromkeys(field for row in rows for field in row if field.lower() in _JUDGING)
    return [
        field
        for field in fields
        if all(isinstance(row.get(field, ""), str | None) for row in rows)
        and len({row.get(field) for row in rows}) <= _MOST_GROUPS
    ]


def _name(row: Row) -> str:
    for field in (*_NAMES, *row):
        value = row.get(field)
        if isinstance(value, str | int) and value != "":
            return head(str(value), 60)
    return "nameless"


def _missing(bad: Sequence[Mapping[str, Any]]) -> list[str]:
    if not bad:
        return []
    lines = [
        f"- {r.get('task')} ({quote(r.get('goal') or 'direct tool call', 80)}) "
        f"{r.get('outcome')}: {quote(r.get('reason') or 'no reason told', 200)}"
        for r in bad
    ]
    return ["", "## Without a result", "", *lines]


def _table(rows: Sequence[Row], goal: str, room: int) -> list[str]:
    """One row an object; narrower, then with fewer columns, where it would not fit into *room* bytes."""
    if not rows:
        return []
    fields = _columns(rows, goal)
    cells = [
        [_size_told(row, f) if f.endswith(_BYTES) else _cell(row.get(f)) for f in fields] for row in rows
    ]
    columns = [field.removesuffix(_BYTES) for field in fields]
    chars, table = 0, list[str]()
    for chars in _CELL_CHARS:
        table = _written(columns, cells, chars)
        if _size(table) <= room:
            return table
    keep = {_column_of_names(columns), *(fields.index(f) for f in _judgements(rows) if f in fields)}
    widths = [sum(min(len(line[k]), chars) for line in cells) for k in range(len(columns))]
    shown = list(range(len(columns)))
    for widest in sorted(shown, key=lambda k: (-widths[k], k)):
        if widest in keep:
            continue
        shown.remove(widest)
        left_out = ", ".join(column for k, column in enumerate(columns) if k not in shown)
        table = _written([columns[k] for k in shown], [[line[k] for k in shown] for line in cells], chars)
        table += ["", f"Left out for length: {left_out}."]
        if _size(table) <= room:
            break
    return table


def _columns(rows: Sequence[Row], goal: str) -> list[str]:
    """Fields with a value that a cell can hold: those that the goal names in its order, else all."""
    columns = dict.fromkeys(field for row in rows for field, value in row.items() if _cell(value) != "")
    words = _WORD.findall(goal.lower())
    named = {f: words.index(w) for f in columns if (w := f.lower().removesuffix(_BYTES)) in words}
    if len(named) >= _LEAST_NAMED:
        # A row must say what it is about, also where the goal takes that for granted.
        names = [] if any(n in named for n in _NAMES) else [n for n in _NAMES if n in columns][:1]
        return [*names, *sorted(named, key=named.__getitem__)]
    return list(columns)[:_MOST_COLUMNS]


def _column_of_names(columns: Sequence[str]) -> int:
    return next((columns.index(name) for name in _NAMES if name in columns), 0)


def _cell(value: Any) -> str:
    """A scalar, or a list of them, as the text of a cell; empty for all else."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case str():
            return " ".join(value.split()).replace("|", "\\|")
        case int() | float():
            return str(value)
        case list():
            return ", ".join(_cell(v) for v in value if isinstance(v, str | int | float))
        case _:
            return ""


def _size_told(row: Row, field: str) -> str:
    """A number of bytes for people, in decimal units."""
    value = row.get(field)
    if not isinstance(value, int):
        return _cell(value)
    size, unit = float(value), "B"
    for larger in ("kB", "MB", "GB"):
        if round(size) < _KILO:
            break
        size, unit = size / _KILO, larger
    return f"{size:.3g} {unit}" if round(size) < _KILO else f"{size:,.0f} {unit}"


def _written(columns: Sequence[str], cells: Sequence[Sequence[str]], chars: int) -> list[str]:
    lines = ["", f"| {' | '.join(map(_cell, columns))} |", f"|{' --- |' * len(columns)}"]
    lines.extend(f"| {' | '.join(head(cell, chars) for cell in line)} |" for line in cells)
    return lines


def _size(lines: Sequence[str]) -> int:
    return len("\n".join(lines).encode()) + 2
