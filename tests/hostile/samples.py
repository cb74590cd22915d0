"""Valid inputs to begin with, and whatever Python can hand back from a tool."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

import orjson

from streams.log import Headers
from streams.wire.envelope import flat
from tests.agents.scripted_endpoint import completion, tool_call
from tests.wire.samples import SAMPLES

GOALS: Final[tuple[dict[str, Any], ...]] = (
    {"goal": "2"},
    {"id": "g", "goal": "1", "tenant": "acme", "priority": 7},
    {"id": "g", "goal": "3", "input": ["a", "b", {"c": [1, 2.5, None]}], "tools": ["noop"], "model": "m"},
    {"id": "g", "goal": "1", "deadline_s": 600.0, "budget": {"tokens": 1000, "calls": 10, "usd": 0.5}},
    {
        "id": "g",
        "goal": "2",
        "limits": {"max_subtasks": 5, "concurrency": 2, "timeout_s": 60, "max_attempts": 2},
    },
    {"id": "g", "goal": "2", "join": {"min_success_ratio": 0.5, "fail_fast_ratio": 0.5}},
    {
        "id": "g",
        "goal": "x",
        "input": [1, 2, 3],
        "tools": ["noop"],
        "plan": [
            {"id": "a", "goal": "do", "input": "each"},
            {"id": "b", "prompt": "do", "depends_on": ["a"], "type": "extract", "model": "m"},
            {"id": "c", "tool": "noop", "args": {"x": [1]}, "deps": ["a", "b"], "input": [0, 2]},
        ],
    },
    {"specversion": "1.0", "id": "c", "source": "/s", "type": "t", "data": {"goal": "1", "priority": 3}},
    {"specversion": "1.0", "id": "c", "source": "/s", "type": "t", "data_base64": "eyJnb2FsIjoiMSJ9"},
    {
        "specversion": "1.0",
        "id": "c",
        "source": "/s",
        "type": "t",
        "datacontenttype": "text/plain",
        "data": "1",
    },
)
TEXTS: Final = (
    b"Compare three message brokers",
    "größe 😀".encode(),
    b'"1"',
    b"3",
    b"{not json",
    b"[1]",
    b"null",
)
HEADERS: Final[tuple[Headers, ...]] = (
    (),
    (("traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), ("raw", b"\xff\x00")),
    (("content-type", b"application/json; charset=utf-8"),),
    (("content-type", b"application/cloudevents+json"),),
    (("content-type", b"text/plain"),),
    (("ce_specversion", b"1.0"), ("ce_id", b"7"), ("ce_source", b"/s"), ("ce_type", b"t")),
    (("anabranch-reason", b"x"), ("anabranch-topic", b"goals"), ("anabranch-partition", b"0")),
    tuple((f"h{n}", b"v") for n in range(60)),
)
COMPLETIONS: Final = (
    completion("ok"),
    completion('{"answer": [1, 2]}'),
    completion(None, calls=[tool_call("c1", "noop", "{}"), tool_call("c2", "echo", '{"x": 1}')]),
    completion("half", finish="length"),
    completion(None, finish="content_filter"),
    completion("ok", usage=None),
    completion("ok", reasoning_content="first A, then B", refusal=None, annotations=[]),
    {"error": {"type": "rate_limit_reached_error", "code": 429, "message": "try again after 1 seconds"}},
    {"error": {"type": "invalid_request_error", "message": "Input token length too long", "param": None}},
)
REPLIES: Final = tuple(
    (case["reply"], case.get("finish_reason", "stop"))
    for line in Path(__file__).parents[1].joinpath("cases/plans.jsonl").read_text().splitlines()
    if len((case := orjson.loads(line))["reply"]) < 4_000
)


def of(topic: str) -> list[dict[str, Any]]:
    """The records of the golden files' samples on a topic, as JSON."""
    return [orjson.loads(orjson.dumps(flat(sample))) for sample in SAMPLES[topic]]


class Wordless(Exception):
    """Has no words for itself."""

    def __str__(self) -> str:
        raise RuntimeError("none")


class Shy:
    """No JSON, and no text."""

    def __repr__(self) -> str:
        raise ValueError("none")


def a_generator() -> Any:
    yield from range(3)


def in_itself() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


OBJECTS: Final[tuple[Callable[[], Any], ...]] = (
    lambda: None,
    lambda: float("nan"),
    lambda: [float("inf"), -0.0, 10**400],
    lambda: b"\xff\x00" * 100,
    lambda: bytearray(b"x"),
    lambda: memoryview(b"x"),
    lambda: {1, 2, frozenset({3})},
    lambda: {None: 1, (1, 2): 2, b"k": 3, 2.5: 4, "\ud800": 5},
    lambda: "\ud800\udfff",
    lambda: datetime.now(UTC),
    lambda: Decimal("1e400"),
    lambda: UUID(int=1),
    lambda: Path("/"),
    object,
    lambda: int,
    lambda: 1 + 2j,
    lambda: range(10),
    Shy,
    a_generator,
    in_itself,
    lambda: ValueError("x"),
    lambda: "x" * 200_000,
    lambda: [0] * 20_000,
    lambda: {"ok": True},
)
RAISED: Final[tuple[Callable[[], BaseException], ...]] = (
    lambda: ValueError("no"),
    lambda: OSError(2, "no such file", "a\ud800b"),
    Wordless,
    lambda: StopIteration(1),
    StopAsyncIteration,
    lambda: SystemExit(1),
    GeneratorExit,
    asyncio.CancelledError,
    TimeoutError,
    RecursionError,
    MemoryError,
    lambda: ExceptionGroup("g", [ValueError("x")]),
    lambda: ValueError("x" * 100_000),
)


def an_object(chance: Random, depth: int = 0) -> Any:
    """What a tool may return: JSON with something odd in it somewhere, at any depth."""
    way = chance.random()
    if way < 0.4 or depth > 4:
        return OBJECTS[chance.randrange(len(OBJECTS))]()
    inner = [an_object(chance, depth + 1) for _ in range(chance.randrange(3))]
    if way < 0.6:
        return inner
    if way < 0.7:
        return tuple(inner)
    if way < 0.9:
        return {f"k{n}": each for n, each in enumerate(inner)}
    value: Any = inner
    for _ in range(chance.choice((50, 99, 101, 200, 300, 2_000))):
        value = [value]
    return value
