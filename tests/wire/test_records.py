"""Laws of the records: what is written reads back, and what is no record says why."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships without types
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.core.commands import Answer
from streams.core.events import DeadlinePassed, JobReopened, SubTaskSucceeded
from streams.core.values import Inline
from streams.log import Record
from streams.transcript import AttemptEnded
from streams.wire.answers import ANSWERS, read_answer, write_answer
from streams.wire.commands import COMMANDS, read_command, write_command
from streams.wire.envelope import Kinds, Unreadable, Unwritable
from streams.wire.events import EVENTS, read_event, write_event
from streams.wire.marks import MARKS, read_mark, write_mark
from streams.wire.schemas import schemas
from streams.wire.transcripts import TRANSCRIPTS, read_transcript, write_transcript
from tests.wire.samples import SAMPLES
from tests.wire.strategies import JSON, TEXT, values_of

GOLDEN = Path(__file__).parent / "golden" / "v1"
REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
KINDS: dict[str, Kinds[Any]] = {
    "job-events": EVENTS,
    "subtasks": COMMANDS,
    "transcripts": TRANSCRIPTS,
    "answers": ANSWERS,
    "dead-letters": MARKS,
}
READ: dict[str, Callable[[Record], Any]] = {
    "job-events": read_event,
    "subtasks": read_command,
    "transcripts": read_transcript,
    "answers": read_answer,
    "dead-letters": read_mark,
}
WRITE: dict[str, Callable[[Any], bytes]] = {
    "job-events": write_event,
    "subtasks": write_command,
    "transcripts": write_transcript,
    "answers": lambda answer: write_answer(answer)[0],
    "dead-letters": lambda mark: write_mark(mark)[0],
}
# Run for each kind of record, so a quarter of the examples for each.
FEW = settings(max_examples=settings().max_examples // 4)
EACH = [(topic, sample) for topic, samples in SAMPLES.items() for sample in samples]
KINDS_BEFORE = [[type(sample) for _, sample in EACH[:n]] for n in range(len(EACH))]
NAMES = [
    type(sample).__name__ + (f"-{before.count(type(sample)) + 1}" if type(sample) in before else "")
    for (_, sample), before in zip(EACH, KINDS_BEFORE, strict=True)
]


def record(value: bytes | None, *, topic: str = "job-events", headers: Any = ()) -> Record:
    return Record(topic, 3, 77, 1_790_000_000_000, job_of(value), value, headers)


def job_of(value: bytes | None) -> bytes:
    """The job that a record's value names, which is the key of events."""
    try:
        return str(orjson.loads(value or b"")["job"]).encode()
    except (ValueError, KeyError, TypeError, IndexError):
        return b"acme/audit-7"


def placed(value: Any) -> Any:
    """The value as it reads from :func:`record`."""
    return replace(value, at=1_790_000_000_000, offset=77) if hasattr(value, "at") else value


def told(read: Callable[[Record], Any], value: bytes) -> str:
    """Why a record is unreadable; empty where it is not."""
    try:
        read(record(value))
    except Unreadable as error:
        return str(error)
    return ""


@pytest.mark.parametrize("topic", KINDS)
def test_every_kind_has_a_sample(topic: str) -> None:
    assert {type(sample) for sample in SAMPLES[topic]} == set(KINDS[topic].types)


@pytest.mark.parametrize(
    ("topic", "kind"),
    [(topic, kind) for topic in KINDS if topic != "answers" for kind in KINDS[topic].types],
)
@FEW
@given(data=st.data())
def test_a_record_reads_as_what_was_written(topic: str, kind: type, data: st.DataObject) -> None:
    value = data.draw(values_of(kind))
    if isinstance(value, JobReopened):
        value = replace(value, submitted=replace(value.submitted, job=value.job))
    assert READ[topic](record(WRITE[topic](value))) == placed(value)


@given(values_of(Answer), st.lists(st.tuples(TEXT, st.none() | st.binary(max_size=9))))
def test_an_answer_reads_as_what_was_written(answer: Answer, headers: Any) -> None:
    """The goal's headers come back byte for byte, as the record's own."""
    plain = replace(answer, headers=())
    written, none = write_answer(plain)
    assert none == ()
    read = read_answer(record(written, headers=tuple(headers)))
    assert replace(read, headers=()) == plain
    assert write_answer(read)[1] == tuple(headers)


@pytest.mark.parametrize(
    ("topic", "sample", "name"),
    [(*each, name) for each, name in zip(EACH, NAMES, strict=True)],
    ids=NAMES,
)
def test_version_1_stays_readable(topic: str, sample: Any, name: str) -> None:
    """A golden file is never written again: logs hold such records."""
    assert READ[topic](record((GOLDEN / f"{name}.json").read_bytes())) == placed(sample)


@pytest.mark.parametrize(("topic", "sample"), EACH, ids=NAMES)
def test_what_is_written_fits_the_printed_schema(topic: str, sample: Any) -> None:
    jsonschema.validate(orjson.loads(WRITE[topic](sample)), orjson.loads(schemas()[topic]))


@pytest.mark.parametrize("topic", schemas())
def test_the_reference_holds_what_the_code_prints(topic: str) -> None:
    printed = schemas()[topic]
    assert (REFERENCE / f"{topic}.schema.json").read_bytes() == printed, (
        "the models changed: run `python -m streams.wire.schemas docs/reference`"
    )


@given(st.binary() | TEXT.map(str.encode) | JSON.map(orjson.dumps) | st.none())
def test_anything_else_is_unreadable(value: bytes | None) -> None:
    for read in READ.values():
        with pytest.raises(Unreadable):
            read(record(value))


@pytest.mark.parametrize(("topic", "sample"), EACH, ids=NAMES)
@FEW
@given(data=st.data())
def test_a_damaged_record_reads_or_says_why(topic: str, sample: Any, data: st.DataObject) -> None:
    """Any JSON in place of any field, at any depth: a value or Unreadable, short and nothing else."""
    written = orjson.loads(WRITE[topic](sample))
    inside: Any = written
    key = data.draw(st.sampled_from(sorted(inside)))
    while isinstance(inside[key], dict | list) and inside[key] and data.draw(st.booleans()):
        inside = inside[key]
        key = data.draw(st.sampled_from(sorted(inside) if isinstance(inside, dict) else range(len(inside))))
    inside[key] = data.draw(JSON)
    assert len(told(READ[topic], orjson.dumps(written))) < 500


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x00",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"v":1,"type":"DeadlinePassed","job":NaN}',
        b'{"v":1,"type":"DeadlinePassed","job":"\\ud800"}',
        b'{"v":1,"type":"RetryDue","job":"a/b","task":"t","attempt":1e400}',
        b'{"v":1,"type":"RetryDue","job":"a/b","task":"t","attempt":' + b"9" * 400 + b"}",
        b'{"v":1,"type":"RetryDue","job":"a/b","task":"t","attempt":"1"}',
        b'{"v":1,"type":"RetryDue","job":"a/b","task":"t","attempt":true}',
        b'{"v":1,"type":["RetryDue"]}',
        b'{"v":true,"type":"DeadlinePassed","job":"a/b"}',
        b'{"type":"DeadlinePassed","job":"a/b"}',
    ],
)
def test_what_parsers_trip_over(value: bytes) -> None:
    with pytest.raises(Unreadable):
        read_event(record(value))


def test_the_reason_names_the_field_and_not_the_value() -> None:
    secret = "sk-" + "x" * 1000
    value = {"v": 1, "type": "RetryDue", "job": "a/b", "task": 7, "attempt": secret}
    with pytest.raises(Unreadable) as caught:
        read_event(record(orjson.dumps(value)))
    assert "task: " in str(caught.value)
    assert "attempt: " in str(caught.value)
    assert "sk-" not in str(caught.value)


def test_a_newer_version_is_named() -> None:
    with pytest.raises(Unreadable, match="version 2 is newer than 1"):
        read_event(record(b'{"v":2,"type":"DeadlinePassed","job":"a/b"}'))


def test_fields_of_a_newer_minor_version_are_ignored() -> None:
    read = read_event(record(b'{"v":1,"type":"DeadlinePassed","job":"a/b","why":{"x":[1]},"at":5}'))
    assert read == placed(DeadlinePassed(job="a/b"))


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_a_deep_result_still_fits_where_it_goes_next() -> None:
    """A result that an event can hold can be held by a command and by the journal as well."""
    event = SubTaskSucceeded(job="a/b", task="t", attempt=1, result=Inline(value=nested(108)))
    assert read_event(record(write_event(event))) == placed(event)
    with pytest.raises(Unwritable, match="deep"):
        write_event(replace(event, result=Inline(value=nested(109))))
    command = SAMPLES["subtasks"][1]
    dep = (replace(command.dep[0], result=event.result),)
    assert read_command(record(write_command(replace(command, dep=dep)))) == replace(command, dep=dep)
    ended = AttemptEnded(job="a/b", task="t", attempt=1, run="r", event=event)
    assert read_transcript(record(write_transcript(ended))) == placed(ended)


@pytest.mark.parametrize("value", [2**64, "\ud800", {1: 2}, {3}, b"x", nested(2_000)])
def test_what_has_no_json_is_unwritable(value: Any) -> None:
    with pytest.raises(Unwritable):
        write_event(SubTaskSucceeded(job="a/b", task="t", attempt=1, result=Inline(value=value)))
