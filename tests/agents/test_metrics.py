"""What a monitor needs, counted once per call, and told to the log now and then."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from agents.models.metrics import NAMES, OTHERS, Histogram, Metrics
from agents.ports import ModelError, ToolReply
from streams.core.values import Usage
from tests.agents.scripted_client import reply


@given(values=st.lists(st.floats(1, 600_000), min_size=1), share=st.sampled_from([0.5, 0.99]))
def test_a_quantile_is_at_most_a_tenth_too_high(values: list[float], share: float) -> None:
    """By nearest rank."""
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    rank = max(1, -int(-share * len(values) // 1))
    exact, told = sorted(values)[rank - 1], histogram.quantile(share)
    assert told is not None
    assert exact * 0.999 <= told <= exact * 1.101
    assert Histogram().quantile(share) is None


def test_replies_and_errors() -> None:
    """Latency, time to the first token, what came from the cache, what it cost, what was made again."""
    metrics = Metrics()
    usage = Usage(calls=1, tokens_in=100, tokens_cached=25, tokens_out=10, usd=0.002)
    for _ in range(2):
        metrics.replied("m", replace(reply(), usage=usage, latency_ms=200.0, first_token_ms=50.0))
    for decision in ("retry", "give_up"):
        error = ModelError("timeout", "late", retry=True)
        error.model, error.decision = "m", decision
        metrics.failed(error)
    seen = metrics.snapshot()
    m = seen.models["m"]
    assert (m.replies, m.errors, m.cache_hit_rate) == (2, {"timeout": 2}, 0.25)
    assert m.cents == pytest.approx(0.4)
    assert m.p50_ms == pytest.approx(200, rel=0.1)
    assert m.first_token_p99_ms == pytest.approx(50, rel=0.1)
    assert (seen.retries, seen.decisions) == ({"timeout": 1}, {"retry": 1, "give_up": 1})


def test_tools() -> None:
    """What reached no tool says nothing of it; a shared result is one call."""
    metrics = Metrics()
    for error in (None, None, None, "timeout"):
        metrics.tool("files.read", ToolReply(output="", error=error))
    metrics.tool("files.read", ToolReply(output="", shared=True))
    metrics.tool("invented", ToolReply(output="", error="unknown_tool"))
    seen = metrics.snapshot()
    assert {name: (tool.calls, tool.success_rate) for name, tool in seen.tools.items()} == {
        "files.read": (4, 0.75)
    }
    assert seen.refused_tool_calls == 1


def test_names_are_bounded() -> None:
    """Whatever strangers name."""
    metrics = Metrics()
    for number in range(NAMES + 5):
        metrics.replied(f"m{number}", reply())
    models = metrics.snapshot().models
    assert len(models) == NAMES + 1
    assert models[OTHERS].replies == 5


def test_the_log_is_told_once_a_minute_while_something_happens_and_at_the_end() -> None:
    """Not more often, and not again where nothing is new."""
    now = 0.0
    metrics = Metrics(lambda: now)
    with capture_logs() as logged:
        for second in range(130):
            now = float(second)
            metrics.replied("m", replace(reply(), latency_ms=100.0))
        assert [entry["event"] for entry in logged] == ["models_and_tools"] * 2
        metrics.close()
        metrics.close()
    assert len(logged) == 3
    assert logged[-1]["models"]["m"]["replies"] == 130
