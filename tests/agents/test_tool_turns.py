"""Limits and health of a tool server, and what its results become; on virtual time."""

import asyncio
import base64
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp.types import CallToolResult

from agents.tools.mcp import content
from agents.tools.mcp.content import content_json, error_text
from agents.tools.mcp.health import Health, NotAsked
from agents.tools.mcp.turns import NoTurn, Turns
from streams.memory_log import virtual_time

CALLS = st.lists(
    st.tuples(st.floats(0, 20), st.floats(0, 5), st.floats(0.1, 90), st.booleans()), min_size=1, max_size=25
)
"""When each call comes, how long it takes, how long it waits for a turn, and whether it is given up."""


@given(CALLS, st.integers(1, 4), st.none() | st.integers(1, 30))
@example([(0.0, 0.0, 1.0, False)], 2, 1)
def test_no_limit_is_passed_and_nobody_waits_beyond_its_time(
    calls: Sequence[tuple[float, float, float, bool]], concurrency: int, per_minute: int | None
) -> None:
    begun: list[float] = []
    now_running = [0]

    async def one(turns: Turns, after_s: float, takes_s: float, within_s: float) -> None:
        now = asyncio.get_running_loop().time
        await asyncio.sleep(after_s)
        came = now()
        try:
            async with turns.turn(within_s):
                begun.append(now())
                now_running[0] += 1
                assert now_running[0] <= concurrency
                assert now() <= came + within_s + 0.001
                try:
                    await asyncio.sleep(takes_s)
                finally:
                    now_running[0] -= 1
        except NoTurn:
            assert now() == pytest.approx(came + within_s, abs=0.001)

    async def story() -> None:
        turns = Turns(concurrency=concurrency, per_minute=per_minute)
        tasks = [asyncio.create_task(one(turns, *call[:3])) for call in calls]
        for task, (after_s, takes_s, _, given_up) in zip(tasks, calls, strict=True):
            if given_up:
                asyncio.get_running_loop().call_later(after_s + takes_s / 2, task.cancel)
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert result is None or isinstance(result, asyncio.CancelledError)
        async with asyncio.timeout(61 * (concurrency + 1)):  # every turn was given back
            for _ in range(concurrency):
                async with turns.turn(100):
                    pass
        if per_minute is not None:
            for first, later in zip(begun, begun[per_minute:], strict=False):
                assert later - first >= 60

    virtual_time.run(story())


def test_a_failing_server_is_tried_less_and_told_of() -> None:
    health = Health()
    for _ in range(3):
        health.answered(0.0, 12.0, probe=health.begin(0.0))
    assert [health.failed(0.0, probe=health.begin(0.0)) for _ in range(5)] == [False] * 4 + [True]
    assert (health.failure_rate, health.latency_ms) == (5 / 8, 12.0)
    with pytest.raises(NotAsked, match=r"5 of its last 8 calls failed; it is asked again in 30 s"):
        health.begin(0.0)
    assert health.begin(30.0)  # one tries
    with pytest.raises(NotAsked, match="one call is trying"):
        health.begin(30.0)
    health.dropped(31.0, probe=True)  # it never got there: another tries
    assert health.begin(31.0)
    assert health.failed(31.0, probe=True)
    with pytest.raises(NotAsked):
        health.begin(60.0)
    health.restarted(60.0)
    assert health.begin(60.0)
    health.answered(60.0, 10.0, probe=True)
    assert not health.begin(60.0)
    assert health.failure_rate == 0


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


PNG = {"type": "image", "data": base64.b64encode(b"123456").decode(), "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"content": [text("hello")]}, "hello"),
        ({"content": [text("a"), text("b")]}, "a\nb"),
        ({"content": []}, []),
        ({"content": [text('{"a": 1}')], "structuredContent": {"a": 1}}, {"a": 1}),
        ({"content": [text("5")], "structuredContent": {"result": 5}}, 5),
        ({"content": [], "structuredContent": None}, []),
        (
            {"content": [text("a dot"), PNG]},
            ["a dot", {"left_out": "image", "mime_type": "image/png", "bytes": 6}],
        ),
        (
            {"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}]},
            {"uri": "file:///a", "text": "inside"},
        ),
        (
            {"content": [{"type": "resource", "resource": {"uri": "file:///a", "blob": "AAAA"}}]},
            {"left_out": "file:///a", "mime_type": None, "bytes": 3},
        ),
        (
            {"content": [{"type": "resource_link", "uri": "file:///a", "name": "a"}]},
            {"link": "file:///a", "name": "a", "mime_type": None},
        ),
        ({"content": [text("half \ud83d a sign")]}, "half \ufffd a sign"),
    ],
)
def test_results_become_json(result: dict[str, Any], told: Any) -> None:
    assert content_json(CallToolResult.model_validate(result)) == told


def test_a_huge_result_is_cut_where_it_comes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MAX_BYTES", 1_000)
    cut = content_json(CallToolResult.model_validate({"content": [text("begin " + "x" * 5_000 + " end")]}))
    assert isinstance(cut, dict)
    assert str(cut["head"]).startswith('"begin')
    assert str(cut["tail"]).endswith('end"')
    said = error_text(CallToolResult.model_validate({"content": [text("e" * 9_000)], "isError": True}))
    assert said == "e" * content.MAX_ERROR
    silent = error_text(CallToolResult.model_validate({"content": [], "isError": True}))
    assert silent == "the tool failed and does not say why"
