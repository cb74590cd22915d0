"""Inputs made wrong, by a seed: valid ones with a few things changed, since those get furthest in.

A change knows the shape of what it changes: fields are dropped, doubled, renamed, exchanged with others
of the same record and of other records; numbers leave their range, words their list; what stands at a
place is replaced by JSON of another type, by JSON that parsers differ on, by nesting without an end.
Then bytes are cut, flipped and spliced.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final

import orjson

from streams.log import Headers

Place = tuple[Any, Any]
"""A container, and the key or index of something in it."""

RAW: Final[tuple[bytes, ...]] = (
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e400",
    b"-0",
    b"1E+2",
    b"01",
    b"+1",
    b".5",
    b"1" + b"0" * 5_000,
    b"-" + b"9" * 400,
    b"18446744073709551616",
    b'"\\ud800"',
    b'"\\udc00\\ud800"',
    b'"\\u0000"',
    b'"\\x41"',
    b'"a\nb"',
    b'"\xff\xfe"',
    b"[" * 100_000,
    b"[" * 101 + b"]" * 101,
    b'{"a":' * 300 + b"1" + b"}" * 300,
    b'{"a":1,"a":2}',
    b'{"id":"x","id":"y"}',
    b"'single'",
    b"undefined",
    b"// comment\n1",
    b"",
)
"""What stands in JSON where a value should, as it is."""

WORDS: Final = (
    "",
    " ",
    "\x00",
    "\n",
    "é",
    "😀",
    "\u202e",
    "null",
    "0",
    "-1",
    "a" * 10_000,
    "../../etc/passwd",
    "@position",
    "a/b",
    "a/b/c",
    "default/g",
    "<think>",
    "```json\n[]\n```",
    "${HOME}",
    "' OR 1=1 --",
)
NUMBERS: Final = (
    0,
    1,
    -1,
    2,
    99,
    100,
    101,
    2**31,
    2**53,
    2**63 - 1,
    -(2**63),
    2**64 - 1,
    0.5,
    -0.0,
    1e308,
    -1e-308,
)
OTHERS: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    [],
    {},
    [None],
    [[]],
    {"": None},
    [0] * 1_000,
    {"a": {"b": {}}},
)


class Mutator:
    """Changes inputs. The same seed changes the same inputs in the same way.

    Args:
        seed: Any number.
        words: Words that mean something where the inputs go: ids of jobs, names of kinds and fields.
    """

    def __init__(self, seed: int, words: Sequence[str] = ()) -> None:
        self.chance = Random(seed)  # noqa: S311 - repeatable, no secret
        self._words = (*WORDS, *words)
        self._raw: list[bytes] = []

    def chosen(self, among: Sequence[Any]) -> Any:
        """One of these."""
        return among[self.chance.randrange(len(among))]

    def json(self, value: Any, others: Sequence[Any] = ()) -> bytes:
        """The JSON of *value* with up to four changes, maybe of its bytes as well.

        Args:
            others: Values of which parts may take the place of parts of this one.
        """
        self._raw.clear()
        changed = _copy(value)
        for _ in range(self.chosen((0, 1, 1, 1, 1, 1, 1, 2, 3, 4))):
            changed = self._change(changed, others)
        data = self._with_raw(_dumps(changed))
        return self.data(data) if self.chance.random() < 0.1 else data

    def value(self, value: Any, others: Sequence[Any] = ()) -> Any:
        """*value* with one to three changes, as Python reads it: nothing that only bytes can hold."""
        changed = _copy(value)
        for _ in range(self.chosen((1, 1, 2, 3))):
            changed = self._change(changed, others, raw=False)
        return changed

    def data(self, data: bytes) -> bytes:
        """Bytes cut, flipped, doubled, spliced, or in another encoding."""
        ways: tuple[Callable[[bytes], bytes], ...] = (
            lambda given: given[: self.chance.randrange(len(given) + 1)],
            lambda given: given[self.chance.randrange(len(given) + 1) :],
            self._flipped,
            self._flipped,
            lambda given: given + given,
            lambda given: self._spliced(given, self.chance.randbytes(self.chosen((1, 3, 40)))),
            lambda given: self._spliced(given, self.chosen(RAW)),
            lambda given: b"\xef\xbb\xbf" + given,
            lambda given: given.decode(errors="replace").encode("utf-16"),
            lambda given: b"\x00\x00\x00\x00\x07" + given,
            lambda given: b"[" + given + b"]",
            lambda given: orjson.dumps(given.decode(errors="replace")),
            lambda given: given.replace(b":", b" :\t").replace(b",", b"\r\n,"),
            lambda given: given.replace(b'"', b"'"),
            lambda given: self.chosen((b"", b" ", b"null", b"0", b"{}", b"[]", b'""', b"true")),
            lambda _: self.chance.randbytes(self.chosen((1, 10, 1_000))),
        )
        way: Callable[[bytes], bytes] = self.chosen(ways)
        return way(data)

    def headers(self, headers: Headers) -> Headers:
        """Headers dropped, doubled, renamed, emptied, made long or many."""
        changed = list(headers)
        for _ in range(self.chosen((1, 2, 3))):
            way = self.chance.randrange(8)
            place = self.chance.randrange(len(changed)) if changed else None
            if place is None or way == 0:
                changed.append((self.word(), self.chosen((None, b"", b"\xff\x00", b"v" * 10_000, b"1"))))
            elif way == 1:
                del changed[place]
            elif way == 2:
                changed.append(changed[place])
            elif way == 3:
                changed[place] = (self.word(), changed[place][1])
            elif way == 4:
                changed[place] = (changed[place][0], None)
            elif way == 5:
                changed[place] = (changed[place][0], self.data(changed[place][1] or b"x"))
            elif way == 6:
                changed[place] = (changed[place][0].upper(), changed[place][1])
            else:
                changed *= self.chosen((2, 10, 100))
                changed = changed[:6_000]
        return tuple(changed)

    def word(self) -> str:
        """A word that is hard to take."""
        return str(self.chosen(self._words))

    def odd(self) -> Any:
        """A value that nobody asked for."""
        way = self.chance.random()
        if way < 0.35:
            return _copy(self.chosen(OTHERS))
        if way < 0.65:
            return self.chosen(NUMBERS)
        return self.word() if way < 0.95 else nested(self.chosen((20, 99, 101, 105)))

    def _change(self, value: Any, others: Sequence[Any], *, raw: bool = True) -> Any:
        found = places(value)
        if not found:
            return self.odd()
        container, key = self.chosen(found)
        if self.chance.random() < 0.35:
            container[key] = self._of_its_type(container[key])
            return value
        way = self.chance.random()
        if way < 0.16:
            del container[key]
        elif way < 0.24 and isinstance(container, dict):
            container[self._near(str(key))] = container.pop(key)
        elif way < 0.32:
            other, at = self.chosen(found)
            container[key], other[at] = other[at], container[key]
            if _holds_itself(value):
                return self.odd()
        elif way < 0.42 and others:
            container[key] = _copy(self._part(self.chosen(others)))
        elif way < 0.50 and isinstance(container, dict):
            container[self.word()] = self.odd()
        elif way < 0.58 and isinstance(container[key], list):
            container[key] = container[key] * self.chosen((0, 2, 3, 40))
        elif way < 0.66 and raw:
            self._raw.append(self.chosen(RAW))
            container[key] = f"@raw{len(self._raw) - 1}@"
        elif way < 0.74 and isinstance(container[key], int | float) and not isinstance(container[key], bool):
            container[key] = self.chosen(
                (-container[key], container[key] + 1, container[key] - 1, str(container[key]))
            )
        else:
            container[key] = self.odd()
        return value

    def _of_its_type(self, value: Any) -> Any:
        """Another value where this one stands, which only its meaning can show to be wrong."""
        match value:
            case bool():
                return not value
            case int():
                return self.chosen((0, 1, 2, 3, value + 1, -value, 7, 100, 10**6, 10**12))
            case float():
                return self.chosen((0.0, 0.5, 1.0, value * 2, -value, 1e-9, 3e7, 1e12))
            case str():
                return self.word()
            case list():
                return self.chance.sample(value, len(value)) + value[:1]
            case _:
                return value

    def _part(self, value: Any) -> Any:
        found = places(value)
        if not found or self.chance.random() < 0.3:
            return value
        container, key = self.chosen(found)
        return container[key]

    def _near(self, name: str) -> str:
        return str(self.chosen((name.upper(), name + "s", name[:-1], f" {name}", f"{name}_", self.word())))

    def _with_raw(self, data: bytes) -> bytes:
        for number, raw in enumerate(self._raw):
            data = data.replace(b'"@raw%d@"' % number, raw)
        return data

    def _flipped(self, data: bytes) -> bytes:
        flipped = bytearray(data or b"\x00")
        for _ in range(self.chosen((1, 1, 2, 8))):
            flipped[self.chance.randrange(len(flipped))] ^= 1 << self.chance.randrange(8)
        return bytes(flipped)

    def _spliced(self, data: bytes, piece: bytes) -> bytes:
        at = self.chance.randrange(len(data) + 1)
        return data[:at] + piece + data[at:]


def places(value: Any) -> list[Place]:
    """Everything inside of a value, by where it stands."""
    found: list[Place] = []
    waiting = [value]
    while waiting and len(found) < 5_000:
        inside = waiting.pop()
        keys = (
            list(inside)
            if isinstance(inside, dict)
            else range(len(inside))
            if isinstance(inside, list)
            else ()
        )
        for key in keys:
            found.append((inside, key))
            waiting.append(inside[key])
    return found


def nested(levels: int) -> Any:
    """Lists and objects inside one another."""
    value: Any = 1
    for level in range(levels):
        value = {"in": value} if level % 2 else [value]
    return value


def _dumps(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # deeper, or with larger numbers, than it writes
        return json.dumps(value).encode(errors="surrogatepass")


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list | tuple) else value


def _holds_itself(value: Any) -> bool:
    """Whether an exchange has put a container into itself."""
    way: list[tuple[Any, set[int]]] = [(value, set())]
    while way:
        inside, above = way.pop()
        if not isinstance(inside, dict | list):
            continue
        if id(inside) in above or len(above) > 400:
            return True
        below = above | {id(inside)}
        way.extend((each, below) for each in (inside.values() if isinstance(inside, dict) else inside))
    return False
