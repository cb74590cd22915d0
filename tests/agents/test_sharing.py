"""Equal calls of read-only tools within one job, on virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from agents.ports import ToolReply
from agents.tools import sharing
from agents.tools.sharing import SharedCalls
from streams.memory_log import virtual_time


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a story on virtual time."""
    virtual_time.run(story())


class Tool:
    """Takes a second, and counts how often it is called."""

    def __init__(self, *replies: ToolReply, takes_s: float = 1.0) -> None:
        self.replies = list(replies) or [ToolReply(output="read")]
        self.takes_s = takes_s
        self.begun = self.ended = 0

    async def __call__(self) -> ToolReply:
        self.begun += 1
        await asyncio.sleep(self.takes_s)
        self.ended += 1
        return self.replies[min(self.begun, len(self.replies)) - 1]


def call(
    shared: SharedCalls,
    tool: Callable[[], Awaitable[ToolReply]],
    job: str = "j",
    timeout_s: float = 30.0,
    **arguments: Any,
) -> "asyncio.Task[ToolReply]":
    return asyncio.create_task(_reply(shared.call(job, "files.read", arguments, tool, timeout_s=timeout_s)))


async def _reply(calling: Coroutine[Any, Any, ToolReply]) -> ToolReply:
    return await calling


def test_equal_calls_side_by_side_and_afterwards_are_one() -> None:
    async def story() -> None:
        shared, tool = SharedCalls(), Tool()
        together = await asyncio.gather(call(shared, tool, a=1, b=2), call(shared, tool, b=2, a=1))
        later = await call(shared, tool, a=1, b=2)
        assert tool.begun == 1
        assert [reply.output for reply in (*together, later)] == ["read"] * 3
        assert [reply.shared for reply in (*together, later)] == [False, True, True]

    run(story)


def test_other_arguments_and_other_jobs_are_other_calls() -> None:
    async def story() -> None:
        shared, tool = SharedCalls(), Tool()
        await asyncio.gather(
            call(shared, tool, a=1),
            call(shared, tool, a=2),
            call(shared, tool, a=True),
            call(shared, tool, "k", a=1),
        )
        assert tool.begun == 4

    run(story)


def test_an_error_is_shared_by_those_who_wait_and_then_forgotten() -> None:
    async def story() -> None:
        shared = SharedCalls()
        tool = Tool(ToolReply(output="no such file", error="tool_error"), ToolReply(output="read"))
        together = await asyncio.gather(call(shared, tool), call(shared, tool))
        assert [reply.error for reply in together] == ["tool_error", "tool_error"]
        assert (await call(shared, tool)).output == "read"
        assert tool.begun == 2

    run(story)


def test_the_first_caller_going_away_takes_the_call_from_nobody() -> None:
    async def story() -> None:
        shared, tool = SharedCalls(), Tool()
        first, second = call(shared, tool), call(shared, tool)
        await asyncio.sleep(0.5)
        first.cancel()
        assert (await second).output == "read"
        assert (tool.begun, tool.ended) == (1, 1)

    run(story)


def test_a_call_that_nobody_waits_for_ends() -> None:
    async def story() -> None:
        shared, tool = SharedCalls(), Tool()
        first, second = call(shared, tool), call(shared, tool, timeout_s=0.7)
        await asyncio.sleep(0.5)
        first.cancel()
        assert (await second).error == "timeout"
        await asyncio.sleep(10)
        assert (tool.begun, tool.ended) == (1, 0)
        assert (await call(shared, tool)).output == "read"

    run(story)


def test_a_late_caller_does_not_suffer_from_the_first_ones_short_time() -> None:
    async def story() -> None:
        shared = SharedCalls()
        tool = Tool(ToolReply(output="too late", error="timeout"), ToolReply(output="read"))
        first, second = call(shared, tool), call(shared, tool)
        assert (await first).error == "timeout"
        assert (await second).output == "read"
        assert tool.begun == 2

    run(story)


def test_what_is_remembered_is_bounded_in_time_number_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "MAX_RESULTS", 10)
    monkeypatch.setattr(sharing, "MAX_BYTES", 16_000)

    async def story() -> None:
        shared = SharedCalls()
        large, small = Tool(ToolReply(output="x" * 2_000)), Tool()
        await call(shared, large)
        assert not (await call(shared, large)).shared
        for number in range(20):
            await call(shared, small, number=number)
        assert not (await call(shared, small, number=0)).shared
        assert (await call(shared, small, number=19)).shared
        await asyncio.sleep(sharing.REMEMBER_S)
        assert not (await call(shared, small, number=19)).shared
        assert len(shared._kept) <= 10
        assert shared._bytes == sum(kept.size for kept in shared._kept.values())

    run(story)
