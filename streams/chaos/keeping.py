"""Evidence as files, to be looked at and verified again: a line a record, a file a topic."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

import orjson

from streams.chaos.evidence import Call, Committed, Evidence, Expected, Life
from streams.log import Record

EVIDENCE: Final = "evidence.json"
SEEN: Final = "seen"

_FOLDED: Final = {"calls": Call, "lives": Life, "committed": Committed}


class NoEvidence(Exception):
    """The directory holds no evidence; the message says what is missing."""


def keep(evidence: Evidence, place: Path) -> None:
    """Write it into a directory, which may be there already."""
    place.mkdir(parents=True, exist_ok=True)
    for topic, records in {**evidence.records, SEEN: evidence.seen}.items():
        (place / f"{topic}.jsonl").write_bytes(b"".join(map(_line, records)))
    rest = {
        field.name: getattr(evidence, field.name)
        for field in fields(evidence)
        if field.name not in {"records", "seen"}
    }
    (place / EVIDENCE).write_bytes(
        orjson.dumps(rest | {"topics": sorted(evidence.records)}, option=orjson.OPT_INDENT_2)
    )


def kept(place: Path) -> Evidence:
    """Read it again.

    Raises:
        NoEvidence: it is not there, or not whole.
    """
    try:
        rest: dict[str, Any] = orjson.loads((place / EVIDENCE).read_bytes())
        records = {topic: _records(place, topic) for topic in rest.pop("topics")}
        seen = _records(place, SEEN)
    except (OSError, ValueError) as error:
        raise NoEvidence(f"{place} holds no evidence of a round: {error}") from None
    for name, kind in _FOLDED.items():
        rest[name] = tuple(kind(**_tuples(each)) for each in rest[name])
    rest["open_transactions"] = tuple(rest["open_transactions"])
    rest["expected"] = {job: Expected(**each) for job, each in rest["expected"].items()}
    return Evidence(records=records, seen=seen, **_tuples(rest))


def _tuples(given: Mapping[str, Any]) -> dict[str, Any]:
    """Spans are pairs of numbers, lists in JSON."""
    return {
        name: tuple(map(tuple, value)) if name in {"pauses", "outages"} else value
        for name, value in given.items()
    }


def _line(record: Record) -> bytes:
    return orjson.dumps(
        asdict(record)
        | {
            "key": _text(record.key),
            "value": _text(record.value),
            "headers": [[name, _text(value)] for name, value in record.headers],
        },
        option=orjson.OPT_APPEND_NEWLINE,
    )


def _text(value: bytes | None) -> str | dict[str, str] | None:
    """Text where it is some, for a person."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _bytes(written: str | dict[str, str] | None) -> bytes | None:
    if isinstance(written, dict):
        return base64.b64decode(written["base64"])
    return None if written is None else written.encode()


def _records(place: Path, topic: str) -> tuple[Record, ...]:
    return tuple(_record(line) for line in _lines(place / f"{topic}.jsonl"))


def _lines(file: Path) -> Iterable[bytes]:
    return file.read_bytes().splitlines()


def _record(line: bytes) -> Record:
    read: dict[str, Any] = orjson.loads(line)
    headers = tuple((name, _bytes(value)) for name, value in read["headers"])
    return Record(**read | {"key": _bytes(read["key"]), "value": _bytes(read["value"]), "headers": headers})
