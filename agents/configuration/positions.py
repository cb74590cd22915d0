"""On which line of a TOML text each key stands, which :mod:`tomllib` does not tell of values.

No kept library does: tomlkit knows no lines, and spanned-toml has not been touched since 2022. So the
text is cut into its statements (a header, or a key with its value), each the least number of lines that
:mod:`tomllib` reads alone; what they hold is where they stand. It is done only where there is a problem
to tell of, since it reads an array of many lines once a line.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agents.configuration.problems import Path

_TOLD: Final = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


@dataclass(slots=True)
class Positions:
    """Lines of keys.

    Attributes:
        lines: Of the file; at least 1.
        last: Line on which the last statement begins.
        stuck: Line of the first statement that never ends, or that :mod:`tomllib` chokes on.
    """

    lines: int
    last: int = 1
    stuck: int | None = None
    _known: dict[Path, int] = field(default_factory=dict)

    def of(self, path: Path) -> int:
        """The line of this path, or else of what holds it."""
        for length in range(len(path), 0, -1):
            if line := self._known.get(path[:length]):
                return line
        return 1

    def note(self, path: Path, line: int) -> None:
        """The path stands on this line, unless it was seen on an earlier one."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._known:
                return  # and what holds it
            self._known[path[:length]] = line


def find(text: str) -> Positions:
    """The lines of all keys of *text*, up to the first statement that is no TOML."""
    lines = text.replace("\r\n", "\n").split("\n")
    found = Positions(lines=max(1, len(lines) - (not lines[-1])))
    table: Path = ()
    tables: dict[Path, int] = {}
    at = 0
    while at < len(lines):
        if not lines[at].strip(" \t") or lines[at].lstrip(" \t").startswith("#"):
            at += 1
            continue
        found.last = at + 1
        end, value = _statement(lines, at)
        if value is None:
            found.stuck = at + 1
            return found
        if lines[at].lstrip(" \t").startswith("["):
            table = _header(value, tables, found, at + 1)
        else:
            for path, each in _leaves(value):  # what holds others comes before them
                within = next((i + 1 for i, part in enumerate(path) if isinstance(part, int)), None)
                whole = (*table, *path)
                found.note(whole, at + 1 if within is None else found.of((*table, *path[:within])))
                if isinstance(each, list) and within is None:
                    for index, line in enumerate(_elements(lines[at:end], path, len(each), at + 1)):
                        found.note((*whole, index), line)
        at = end
    return found


def syntax(text: str, error: ValueError | RecursionError) -> tuple[int, str]:
    """Line and words of what :mod:`tomllib` says against *text*."""
    said = str(error)
    place = _TOLD.search(said) if isinstance(error, tomllib.TOMLDecodeError) else None
    found = find(text)
    if place and place[1]:
        return min(int(place[1]), found.lines), said[: place.start()]
    line = found.stuck or found.last
    if place:
        return line, said[: place.start()]
    if isinstance(error, RecursionError):
        return line, "Nested too deeply"
    return line, "A number that is too long" if "digits" in said else "Invalid value"


def _statement(lines: Sequence[str], at: int) -> tuple[int, dict[str, Any] | None]:
    """The line behind the statement that begins at *at*, and what it holds; None where it has no end."""
    for end in range(at + 1, len(lines) + 1):
        try:
            return end, tomllib.loads("\n".join(lines[at:end]))
        except tomllib.TOMLDecodeError:
            continue
        except (ValueError, RecursionError):  # a number of thousands of digits; hundreds of brackets
            break
    return len(lines), None


def _header(value: dict[str, Any], tables: dict[Path, int], found: Positions, line: int) -> Path:
    """The path that a header opens; of an array of tables the newest, in the order in which they stand."""
    path: Path = ()
    inner: Any = value
    while inner:
        name = next(iter(inner))
        path, inner = (*path, name), inner[name]
        if isinstance(inner, list):
            tables[path] = tables.get(path, -1) + 1
            inner = None
        if path in tables:
            path = (*path, tables[path])
    found.note(path, line)
    return path


def _leaves(value: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Every path in the value of a statement, those in inline tables and arrays of them too."""
    left: list[tuple[Path, Any]] = [((), value)]
    while left:
        path, each = left.pop()
        if path:
            yield path, each
        if isinstance(each, dict):
            left += [((*path, name), inner) for name, inner in each.items()]
        elif isinstance(each, list) and any(isinstance(inner, dict | list) for inner in each):
            left += [((*path, index), inner) for index, inner in enumerate(each)]


def _elements(lines: Sequence[str], path: Path, count: int, first: int) -> list[int]:
    """The lines of the *count* elements of an array, whose statement begins on the line *first*."""
    found: list[int] = []
    for end in range(1, len(lines)):
        try:
            value: Any = tomllib.loads("\n".join([*lines[:end], "]"]))
            for part in path:
                value = value[part]
        except (ValueError, RecursionError):
            continue  # in the middle of an element
        found += [first + end - 1] * (len(value) - len(found))
    return found + [first + len(lines) - 1] * (count - len(found))
