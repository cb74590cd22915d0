"""Whatever a tool does, its call has a reply that the journal can hold, and nothing else ends by it."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from agents.ports import ToolReply
from agents.tools.local import LocalTools, local_tool
from streams.memory_log.virtual_time import run
from streams.wire.values import write_value


class Wordless(Exception):
    """Has no words for itself."""

    def __str__(self) -> str:
        raise RuntimeError("none")


class Odd:
    """No JSON, and not even text."""

    def __str__(self) -> str:
        raise RecursionError


@dataclass
class Linked:
    """Points to itself."""

    name: str
    next: Any = None


def cycle() -> Any:
    value: list[Any] = [1]
    value.append(value)
    return value


def linked() -> Any:
    one = Linked("a")
    one.next = one
    return one


def nested(levels: int) -> Any:
    value: Any = "core"
    for _ in range(levels):
        value = {"in": value}
    return value


RAISED: dict[str, Callable[[], BaseException]] = {
    "an error": lambda: ValueError("no"),
    "an error without words": Wordless,
    "half a character": lambda: OSError("no file a\ud800b"),
    "long words": lambda: ValueError("x" * 10_000_000),
    "StopIteration": lambda: StopIteration(7),
    "StopAsyncIteration": StopAsyncIteration,
    "sys.exit": lambda: SystemExit(3),
    "its own end": GeneratorExit,
    "its own cancellation": asyncio.CancelledError,
    "a timeout of its own": lambda: TimeoutError("mine"),
    "a group": lambda: BaseExceptionGroup("g", [SystemExit(1), ValueError("x")]),
    "an error too deep": lambda: RecursionError("deep"),
}
RETURNED: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "no numbers": lambda: [float("nan"), float("inf"), -0.0, 10**5000, -(2**64)],
    "bytes": lambda: b"\xff\x00",
    "half a character": lambda: {"\ud800": "\udfff"},
    "odd keys": lambda: {(1, 2): 1, None: 2, b"x": 3},
    "an object without words": Odd,
    "a type": lambda: int,
    "a generator": lambda: (n for n in range(3)),
    "a moment": lambda: datetime.now(UTC),
    "a cycle": cycle,
    "a cycle of records": linked,
    "101 levels": lambda: nested(101),
    "300 levels": lambda: nested(300),
    "20,000 levels": lambda: nested(20_000),
    "two megabytes": lambda: "x" * 2_000_000,
    "a set of sets": lambda: {frozenset({1}), frozenset({2})},
}


def replies_of(functions: list[Callable[..., Any]]) -> list[ToolReply]:
    """Call each as a tool, on virtual time. In one loop: to end one with threads takes a second."""

    async def story() -> list[ToolReply]:
        replies = []
        for function in functions:
            function.__doc__ = "Do something."
            replies.append(await LocalTools([local_tool(function, name="t")]).call("t", {}, timeout_s=30))
        return replies

    return run(story())


def both(does: Callable[[], Any]) -> list[Callable[..., Any]]:
    """As a function for a thread, and as one for the event loop."""

    def blocks() -> Any:
        return does()

    async def waits() -> Any:
        return does()

    return [blocks, waits]


def raising(made: Callable[[], BaseException]) -> Callable[[], Any]:
    def raises() -> None:
        raise made()

    return raises


def test_whatever_a_tool_raises_is_its_reply(subtests: pytest.Subtests) -> None:
    """At once, in few words that can be written down; the task that called it goes on."""
    replies = replies_of([tool for made in RAISED.values() for tool in both(raising(made))])
    for place, reply in enumerate(replies):
        with subtests.test([*RAISED][place // 2], blocking=place % 2 == 0):
            assert reply.error == "tool_error"
            assert isinstance(reply.output, str)
            assert len(write_value(reply.output)) < 10_000
            assert reply.latency_ms < 20_000


def test_whatever_a_tool_returns_can_be_written(subtests: pytest.Subtests) -> None:
    """As JSON that a record of the journal has room for."""
    replies = replies_of([tool for returned in RETURNED.values() for tool in both(returned)])
    for place, reply in enumerate(replies):
        with subtests.test([*RETURNED][place // 2], blocking=place % 2 == 0):
            assert reply.error in (None, "tool_error")
            write_value(reply.output)


def test_a_cancelled_call_is_cancelled() -> None:
    """What is not the tool's own doing goes through it."""

    async def story() -> None:
        async def waits() -> None:
            """Wait."""
            await asyncio.Event().wait()

        tools = LocalTools([local_tool(waits)])
        task = asyncio.create_task(tools.call("waits", {}, timeout_s=30))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(story())


def test_the_recursion_limit_is_as_it_was() -> None:
    """Nothing here may raise it to get through."""
    assert sys.getrecursionlimit() <= 3_000
