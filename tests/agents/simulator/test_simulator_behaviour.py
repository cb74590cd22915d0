"""Options of the simulated endpoint, and how wrong ones are told."""

from typing import Any

import pytest

from agents.simulator import BadBehaviour, Behaviour, Fixed, LogNormal, parse_failures, parse_latency


def test_latencies_are_read() -> None:
    """Fixed, or by two quantiles in any order."""
    assert parse_latency("0.3") == Fixed(0.3)
    assert parse_latency("0") == Fixed(0.0)
    assert parse_latency("p50=0.38,p99=1.12") == LogNormal(p50=0.38, p99=1.12)
    assert parse_latency(" P99=1.12, p50=0.38 ") == LogNormal(p50=0.38, p99=1.12)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fast", "'fast' is no number"),
        ("", "is no number"),
        ("-1", "from 0 on"),
        ("inf", "from 0 on"),
        ("nan", "from 0 on"),
        ("p50=1", "both needed"),
        ("p50=1,p50=2", "write seconds"),
        ("p50=1,p95=2", "write seconds"),
        ("p50=x,p99=2", "latency p50: 'x' is no number"),
        ("p50=2,p99=1", "not above p99"),
        ("p50=0,p99=1", "above 0"),
    ],
)
def test_wrong_latencies_are_told(text: str, words: str) -> None:
    """With what is wrong."""
    with pytest.raises(BadBehaviour, match=words):
        parse_latency(text)


def test_failures_are_read() -> None:
    """From several options, or one with commas."""
    assert parse_failures([]) == ()
    assert parse_failures(["rate_limited=0.05", "timeout=0.1,cut=0"]) == (
        ("rate_limited", 0.05),
        ("timeout", 0.1),
        ("cut", 0.0),
    )


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["timeout"], "write KIND=RATE"),
        (["time_out=0.1"], "did you mean timeout"),
        (["fire=0.1"], "'fire' is not one of rate_limited"),
        (["cut=x"], "failure cut: 'x' is no number"),
        (["cut=1.1"], "from 0 to 1"),
        (["cut=nan"], "from 0 to 1"),
        (["cut=0.1", "cut=0.2"], "given twice"),
        (["cut=0.6", "timeout=0.6"], "add up to 1.2"),
    ],
)
def test_wrong_failures_are_told(texts: list[str], words: str) -> None:
    """With what is wrong, and what was meant."""
    with pytest.raises(BadBehaviour, match=words):
        parse_failures(texts)


@pytest.mark.parametrize(
    "options",
    [{"requests_per_minute": 0}, {"concurrency": -1}, {"hang_s": -1.0}, {"retry_after_s": float("nan")}],
)
def test_wrong_limits_are_told(options: dict[str, Any]) -> None:
    """By their name."""
    with pytest.raises(BadBehaviour, match=next(iter(options))):
        Behaviour(**options)


def test_each_failure_has_its_share_of_chance() -> None:
    """And the rest goes well."""
    behaviour = Behaviour(failures=(("cut", 0.25), ("timeout", 0.5)))
    assert [behaviour.failure(c) for c in (0.0, 0.24, 0.25, 0.74, 0.75, 0.99)] == [
        *["cut"] * 2,
        *["timeout"] * 2,
        *[None] * 2,
    ]
