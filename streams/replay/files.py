"""A job in a file: JSON lines, the first says what it is, each other one is a record.

Values that are JSON of ours stand as JSON, so that ``jq`` reads them; any other bytes as text or
base64. Whatever is read back is byte for byte what was written.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from streams.core.goal import Header
from streams.log import Record
from streams.replay.recording import Recording
from streams.topics import ANSWERS, JOB_EVENTS, TRANSCRIPTS
from streams.wire.headers import read_headers, write_headers

KIND: Final = "AnabranchExport"
VERSION: Final = 1


class NotAnExport(Exception):
    """The file is none that ``anabranch export`` of this version wrote; the message names the line."""


def write_lines(recording: Recording) -> Iterator[bytes]:
    """The lines of the file."""
    yield orjson.dumps({"v": VERSION, "type": KIND, "job": recording.job}, option=orjson.OPT_APPEND_NEWLINE)
    for record in recording.records:
        yield orjson.dumps(_written(record), option=orjson.OPT_APPEND_NEWLINE)


def read_lines(lines: Iterable[bytes]) -> Recording:
    """The recording in these lines.

    Raises:
        NotAnExport: they are no export, one of a newer version, or a broken one.
    """
    job = ""
    records: dict[str, list[Record]] = {JOB_EVENTS: [], TRANSCRIPTS: [], ANSWERS: []}
    for number, line in enumerate(lines, 1):
        try:
            written = orjson.loads(line)
            if job:
                record = _record(written)
                records[record.topic].append(record)
            else:
                job = _job(written)
        except (ValueError, KeyError, TypeError) as error:
            raise NotAnExport(
                f"line {number} is none of an export ({error!r}); `anabranch export JOB FILE` writes one"
            ) from None
    if not job:
        raise NotAnExport("the file is empty; `anabranch export JOB FILE` writes one")
    return Recording(
        job=job,
        events=tuple(records[JOB_EVENTS]),
        transcripts=tuple(records[TRANSCRIPTS]),
        answers=tuple(records[ANSWERS]),
    )


def _job(head: Any) -> str:
    if head["type"] != KIND:
        raise ValueError(f"type is {head['type']!r}")
    if head["v"] > VERSION:
        raise ValueError(f"version {head['v']} is newer than {VERSION}, which this program reads: upgrade it")
    job: str = head["job"]
    return job


def _written(record: Record) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": None if record.key is None else record.key.decode(errors="replace"),
        **_value(record.value),
        "headers": read_headers(record.headers),
    }


def _value(value: bytes | None) -> dict[str, Any]:
    if value is None:
        return {}
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError:
        pass
    else:
        if orjson.dumps(parsed) == value:
            return {"value": parsed}
    try:
        return {"text": value.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}


def _record(written: Any) -> Record:
    value: bytes | None = None
    if "value" in written:
        value = orjson.dumps(written["value"])
    elif "text" in written:
        value = written["text"].encode()
    elif "base64" in written:
        value = b64decode(written["base64"], validate=True)
    headers = tuple(Header(**header) for header in written["headers"])
    key = written["key"]
    return Record(
        topic=written["topic"],
        partition=written["partition"],
        offset=written["offset"],
        timestamp=written["timestamp"],
        key=None if key is None else key.encode(),
        value=value,
        headers=write_headers(headers),
    )
