"""Goals on which parsers differ or despair: a job, or a dead letter, and an answer where the id is known."""

from typing import Any

import orjson
import pytest

from streams.core.events import JobSubmitted
from streams.log import Headers, Record
from streams.wire.events import read_event, write_event
from streams.wire.goals import BadGoal, read_goal
from streams.wire.headers import CARRIED, CARRIED_BYTES
from streams.wire.schemas import schemas

BOM = b"\xef\xbb\xbf"
CLOUD = b'{"specversion":"1.0","id":"c1","source":"/s","type":"t","data":{"goal":"x"}}'
STRUCTURED = (("content-type", b"application/cloudevents+json"),)


def read(value: bytes | None, headers: Headers = ()) -> JobSubmitted | BadGoal:
    return read_goal(Record("goals", 2, 7, 0, b"k", value, headers), lanes=8)


REFUSED: dict[str, tuple[bytes | None, Headers, str, str | None]] = {
    "a goal twice": (b'{"id":"a","goal":"x","goal":"y"}', (), "'goal' stands twice", "default/a"),
    "an id twice": (b'{"id":"a","goal":"x","id":"b"}', (), "'id' stands twice", None),
    "a tenant twice": (b'{"id":"a","tenant":"t","goal":"x","tenant":"u"}', (), "'tenant' stands twice", None),
    "a key of the input twice": (
        b'{"id":"a","goal":"x","input":[{"n":1,"n":2}]}',
        (),
        "'n' stands twice",
        "default/a",
    ),
    "an integer of 65 bits": (
        b'{"id":"a","goal":"x","input":18446744073709551616}',
        (),
        "out of range",
        "default/a",
    ),
    "an integer of 5,001 digits": (
        b'{"id":"a","goal":"x","input":1' + b"0" * 5_000 + b"}",
        (),
        "infinity",
        None,
    ),
    "a float without an end": (b'{"id":"a","goal":"x","input":1e400}', (), "infinity", None),
    "NaN": (b'{"id":"a","goal":"x","input":NaN}', (), "not JSON", None),
    "half a character": (b'{"id":"a","goal":"\\ud800"}', (), "not JSON", None),
    "100,000 levels": (b'{"goal":"x","input":' + b"[" * 100_000, (), "not JSON", None),
    "101 levels": (
        b'{"goal":"x","input":' + b"[" * 100 + b"]" * 100 + b"}",
        (),
        "more than 100 levels",
        None,
    ),
    "UTF-16": ('{"goal":"x"}'.encode("utf-16"), (), "not UTF-8", None),
    "UTF-16 without its mark": ('{"goal":"x"}'.encode("utf-16-le"), (), "not JSON", None),
    "a zero byte": (b"a\x00b", (), "zero byte", None),
    "nothing": (b"", (), "is empty", None),
    "only space": (b" \n\t ", (), "is empty", None),
    "only a byte order mark": (BOM, (), "is empty", None),
    "a tombstone": (None, (), "tombstone", None),
    "a CloudEvent's id twice": (
        CLOUD.replace(b'"id":"c1"', b'"id":"c1","id":"c2"'),
        STRUCTURED,
        "'id' stands twice",
        None,
    ),
    "an id of 10 KB": (orjson.dumps({"id": "i" * 10_240, "goal": "x"}), (), "`id`: should be 1 to 128", None),
    "a tenant of 10 KB": (
        orjson.dumps({"id": "a", "goal": "x", "tenant": "t" * 10_240}),
        (),
        "`tenant`: should be",
        None,
    ),
    "an id with a slash": (orjson.dumps({"id": "a/b", "goal": "x"}), (), "`id`: should be", None),
    "the table's own key": (orjson.dumps({"id": "@position", "goal": "x"}), (), "`id`: should be", None),
    "50,000 unknown fields": (
        orjson.dumps({"id": "a", "goal": "x"} | {f"f{n}": n for n in range(50_000)}),
        (),
        "`f0`",
        "default/a",
    ),
    "200,000 sub-tasks": (
        orjson.dumps({"id": "a", "goal": "x", "plan": [{}] * 200_000}),
        (),
        "200000 sub-tasks",
        "default/a",
    ),
    "headers of 256 KB": (
        b'{"id":"a","goal":"x"}',
        (("h", b"v" * (CARRIED_BYTES + 1)),),
        "at most 262144",
        "default/a",
    ),
    "4,097 headers": (
        b'{"id":"a","goal":"x"}',
        (("h", b""),) * (CARRIED + 1),
        "4097 headers, at most 4096",
        "default/a",
    ),
}


@pytest.mark.parametrize(("value", "headers", "reason", "job"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_goal_says_why(
    value: bytes | None, headers: Headers, reason: str, job: str | None
) -> None:
    """In few words; and where nobody doubts the id, whoever waits for the answer is told."""
    found = read(value, headers)
    assert isinstance(found, BadGoal), found.goal.digest
    assert reason in found.reason
    assert len(found.reason) < 1_000
    assert found.job == job


TAKEN: dict[str, tuple[bytes, Headers, str]] = {
    "a byte order mark before JSON": (BOM + b'{"goal":"x"}', (), "x"),
    "one before text": (BOM + b"Compare", (), "Compare"),
    "one before a CloudEvent": (BOM + CLOUD, STRUCTURED, "x"),
    "odd numbers": (b'{"goal":"x","input":[-0,-0.0,1E2,1e-400,18446744073709551615]}', (), "x"),
    "a zero character": (b'{"goal":"a\\u0000b"}', (), "a\x00b"),
    "JSON that is said to be text": (b'{"a":1,"a":2}', (("content-type", b"text/plain"),), '{"a":1,"a":2}'),
    "a word of JavaScript": (b"NaN", (), "NaN"),
    "1,000 headers": (b'{"goal":"x"}', (("h", b"v"),) * 1_000, "x"),
    "4,096 headers without names": (b'{"goal":"x"}', (("", None),) * CARRIED, "x"),
    "headers that are no text": (
        b'{"goal":"x"}',
        (("content-type", b"\xff"), ("ce_x", b"\xff"), ("h", b"\x00\xff")),
        "x",
    ),
}


@pytest.mark.parametrize(("value", "headers", "text"), TAKEN.values(), ids=TAKEN)
def test_what_is_odd_but_clear_is_a_goal(value: bytes, headers: Headers, text: str) -> None:
    found = read(value, headers)
    assert isinstance(found, JobSubmitted), found.reason
    assert found.goal.text.value == text  # type: ignore[union-attr]  # inline, as all that is read here


def test_a_goal_of_a_megabyte_is_a_goal() -> None:
    """As text, as an input of one value, and of a hundred thousand."""
    inputs: list[Any] = ["x" * 1_000_000, [0] * 500_000, [{"n": n} for n in range(100_000)]]
    for given in inputs:
        assert isinstance(read(orjson.dumps({"goal": "x", "input": given})), JobSubmitted)
    assert isinstance(read(b"x " * 500_000), JobSubmitted)


def extremes(fields: dict[str, Any], whole: dict[str, Any]) -> list[dict[str, Any]]:
    """Goals with one number each at the end of what the printed schema allows, or just inside."""
    made: list[dict[str, Any]] = []
    for name, field in fields.items():
        if "$ref" in field:
            inner = whole["$defs"][field["$ref"].rpartition("/")[2]]["properties"]
            made += [{name: goal} for goal in extremes(inner, whole)]
        for kind in field.get("anyOf", [field]):
            if kind.get("type") not in ("integer", "number"):
                continue
            step = 1 if kind["type"] == "integer" else 1e-6
            low = kind.get("minimum", kind.get("exclusiveMinimum", 0) + step)
            assert "maximum" in kind, f"{name} has no upper bound"
            made += [{name: low}, {name: kind["maximum"]}]
    return made


def test_whatever_number_a_goal_may_have_its_event_is_read() -> None:
    """Else it would be accepted, and then a dead letter that nobody waits for."""
    schema = orjson.loads(schemas()["goals"])
    goals = extremes(schema["properties"], schema)
    assert len(goals) > 20
    for goal in goals:
        submitted = read(orjson.dumps({"goal": "x", **goal}))
        assert isinstance(submitted, JobSubmitted), (goal, submitted.reason)
        record = Record(
            "job-events", 0, submitted.offset, submitted.at, submitted.job.encode(), write_event(submitted)
        )
        assert read_event(record) == submitted, goal
