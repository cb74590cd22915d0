"""What all records of our own topics share: flat JSON, ``{"v": 1, "type": "SubTaskStarted", ...}``."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Generic, TypeVar

import orjson
from pydantic_core import ValidationError

from streams.core.values import Inline, Json
from streams.log import Record
from streams.wire.bounds import RECORDS, Bounds
from streams.wire.models import validator_of

T = TypeVar("T")

VERSION = 1
"""Raised only when an older reader would get a record wrong; a new field alone does not raise it."""

_ORJSON_DEPTH = 254
"""Levels that orjson writes at most (its README); it reads 1,024."""

FROM_THE_RECORD = frozenset({"at", "offset"})
"""Fields that are no part of the JSON: the reader sets them from where the record stands."""


class Unreadable(Exception):
    """A record that is not what its topic should hold; the message names the field and what is wrong."""


class NewerVersion(Unreadable):
    """A record of a later version of its schema than this program reads.

    Attributes:
        kind: The record's type as it says it, empty where it says none.
    """

    def __init__(self, words: str, kind: object = "") -> None:
        super().__init__(words)
        self.kind = kind if isinstance(kind, str) else ""


class Unwritable(Exception):
    """A value that has no JSON: too deep, an integer beyond 64 bits, a lone surrogate, no JSON type.

    (NaN and the infinities are written as null, as JavaScript does.)
    """


def parse(data: bytes | None, *, depth: int) -> Any:
    """The JSON of a record's value.

    Args:
        depth: Levels of nesting at most. What is read here is written again inside something
            else, so each kind of record leaves room for the next.

    Raises:
        Unreadable: no value, no UTF-8, no JSON, or too deep.
    """
    if data is None:
        raise Unreadable("the record has no value (a tombstone)")
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise Unreadable(f"the value is not JSON: {error}") from None
    if _deeper(data, value, depth):
        raise Unreadable(f"the value is nested more than {depth} levels deep")
    return value


def dump(value: object, *, depth: int) -> bytes:
    """JSON of a value, the opposite of :func:`parse`.

    Raises:
        Unwritable: there is no JSON for it, or it is too deep.
    """
    try:
        data = orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise Unwritable(f"no JSON: {error}") from None
    if _deeper(data, value, depth):
        raise Unwritable(f"nested more than {depth} levels deep")
    return data


def _deeper(data: bytes, value: object, depth: int) -> bool:
    """True where *value*, of which *data* is the JSON, has more than *depth* levels.

    Counting brackets clears nearly every record in nanoseconds. For the rest orjson's own limit
    is the measure: with as many lists around it as *depth* is below that limit it fails to write.
    """
    if len(data) <= 2 * depth or data.count(b"[") + data.count(b"{") <= depth:
        return False
    for _ in range(_ORJSON_DEPTH - depth):
        value = [value]
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return True
    return False


def check_version(version: object, kind: object) -> None:
    """Whether this program reads records of this version, and of what type they say they are.

    Raises:
        NewerVersion: it is a later one.
        Unreadable: it is none.
    """
    if type(version) is not int or version < 1:
        raise Unreadable(f"v: should be the version of the record's schema, 1 to {VERSION}")
    if version > VERSION:
        words = f"v: schema version {version} is newer than {VERSION}, which this program reads: upgrade it"
        raise NewerVersion(words, kind)


def why(error: ValidationError) -> str:
    """What is wrong with a record, by field, without its values; at most 300 characters."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{'.'.join(str(part)[:64] for part in p['loc'])}: {p['msg']}" for p in problems[:3]]
    if len(problems) > len(told):
        told.append(f"and {len(problems) - len(told)} more")
    return "; ".join(told)[:300]


def flat(value: object) -> dict[str, object]:
    """The fields of a record, its type first; orjson writes the values inside by itself.

    All of them are written, the ones at their default too: another default in a later version
    must not change what an old record says.
    """
    cls = type(value)
    names = _NAMES.get(cls)
    if names is None:
        names = _NAMES[cls] = tuple(f.name for f in fields(cls) if f.name not in FROM_THE_RECORD)  # type: ignore[arg-type]
    written: dict[str, object] = {"v": VERSION, "type": cls.__name__}
    for name in names:
        part = getattr(value, name)
        # orjson takes three times as long for a dataclass with slots as for a dict.
        written[name] = {"value": part.value} if type(part) is Inline else part
    return written


_NAMES: dict[type, tuple[str, ...]] = {}


class Kinds(Generic[T]):
    """The kinds of records on one topic: reads and writes each of them."""

    def __init__(
        self, types: Iterable[type[T]], *, depth: int, placed: bool, bounds: Bounds = RECORDS
    ) -> None:
        """Make the models of these kinds.

        Args:
            depth: Levels of nesting at most, as of :func:`parse`.
            placed: The kinds have ``at`` and ``offset``, to be set from where the record stands.
            bounds: What the numbers and names in them can be.
        """
        self.types = tuple(types)
        self._depth = depth
        self._placed = placed
        self.bounds = bounds
        self._validators = {cls.__name__: validator_of(cls, bounds) for cls in self.types}

    def read(self, record: Record) -> T:
        """The value of a record.

        Raises:
            Unreadable: it is none of these kinds.
        """
        return self.validate(self.parse(record), record)

    def parse(self, record: Record) -> dict[str, Json]:
        """The fields of a record, their envelope checked.

        Raises:
            Unreadable: no JSON object, or of a newer version.
        """
        written = parse(record.value, depth=self._depth)
        if type(written) is not dict:
            raise Unreadable("the value is not a JSON object")
        check_version(written.get("v"), written.get("type"))
        return written

    def validate(self, written: dict[str, Json], record: Record) -> T:
        """The value of these fields.

        Raises:
            Unreadable: they are none of these kinds.
        """
        kind = written.get("type")
        validator = self._validators.get(kind) if type(kind) is str else None
        if validator is None:
            raise Unreadable(f"type: should be one of {', '.join(self._validators)}")
        if self._placed:
            written["at"] = record.timestamp
            written["offset"] = record.offset
        try:
            value: T = validator(written)
        except ValidationError as error:
            raise Unreadable(f"{kind}: {why(error)}") from None
        return value

    def write(self, value: T) -> bytes:
        """The JSON of a value of these kinds.

        Raises:
            Unwritable: a part of it has no JSON.
        """
        return dump(flat(value), depth=self._depth)
