"""No window of a second or a minute has more than the account allows, as a strict endpoint counts."""

import math
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.models.rates import MINUTE_S, Rates

SHARES = st.sampled_from([1.0, 0.5, 1 / 3, 0.25, 0.1, 1 / 8, 1 / 64])


def leave(rates: Rates, pauses: Sequence[float], tokens: float = 0.0, *, begin: float = 0.0) -> list[float]:
    """Calls that come after these pauses and leave as soon as they may: when they left."""
    now, left = begin, []
    for pause in pauses:
        now += pause
        while (wait := rates.wait(now, tokens)) > 0:
            now += wait
        rates.take(now, tokens)
        left.append(now)
    return left


def most(moments: Sequence[float], span: float, late_s: float = 0.0) -> int:
    """The most in any window of this span, both ends among them, each moved by up to *late_s* on its way."""
    ordered = sorted(moments)
    return max(sum(first <= moment <= first + span + late_s for moment in ordered) for first in ordered)


@given(
    limit=st.integers(1, 3_000),
    share=SHARES,
    pauses=st.lists(st.floats(0, 3) | st.just(0.0), min_size=2, max_size=150),
)
def test_no_second_and_no_minute_is_above_the_share(limit: int, share: float, pauses: list[float]) -> None:
    """Whatever comes when, and though each call may be late by a twentieth of a second on its way."""
    rates = Rates(limit, None)
    rates.share(share, 0.0)
    left = leave(rates, pauses)
    assert most(left, 60, late_s=0.05) <= max(1, math.floor(limit * share + 1e-6))
    assert most(left, 1, late_s=0.05) <= max(1, math.floor(math.ceil(limit / 60) * share + 1e-6))


@given(limit=st.integers(60, 3_000), workers=st.integers(2, 6), data=st.data())
def test_shares_of_several_workers_add_up(limit: int, workers: int, data: st.DataObject) -> None:
    """Each begins when it likes: together they are below the account's limit in any minute."""
    calls: list[float] = []
    for _ in range(workers):
        rates = Rates(limit, None)
        rates.share(1 / workers, 0.0)
        calls += leave(rates, [0.0] * 60, begin=data.draw(st.floats(0, 5)))
    assert most(calls, 60) <= limit
    if math.ceil(limit / 60) >= workers:
        assert most(calls, 1) <= math.ceil(limit / 60)


@given(changes=st.lists(st.tuples(st.floats(0, 20), SHARES), max_size=6), limit=st.integers(6, 600))
def test_a_share_that_changes_never_exceeds_the_account(
    changes: list[tuple[float, float]], limit: int
) -> None:
    """Lanes come and go: what one worker sends stays below the whole limit, and what it gains begins anew."""
    rates, now, left = Rates(limit, None), 0.0, []
    for seconds, share in [*changes, (30.0, 1.0)]:
        until = now + seconds
        while (at := now + rates.wait(now, 0)) < until:
            rates.take(at, 0)
            left.append(at)
            now = at
        now = until
        rates.share(share, now)
    if left:
        assert most(left, 60) <= limit
        assert most(left, 1) <= math.ceil(limit / 60)


def test_what_is_gained_was_anothers_until_now() -> None:
    """A worker whose share grows does not begin with a call: the last one of the share was just sent."""
    rates = Rates(60, None)
    rates.share(0.5, 0.0)
    rates.take(0.0, 0)
    rates.share(1.0, 100.0)
    assert rates.wait(100.0, 0) == pytest.approx(1.1)


@given(calls=st.lists(st.tuples(st.integers(1, 400), st.floats(0, 1), st.floats(0, 5)), min_size=1))
def test_tokens_of_any_minute_stay_below_the_limit(calls: list[tuple[int, float, float]]) -> None:
    """What is reserved, and of what is settled what was used; a call above the limit goes alone."""
    limit, now = 300, 0.0
    rates = Rates(None, limit)
    spent: list[tuple[float, float]] = []
    for tokens, share, pause in calls:
        now += pause
        while (wait := rates.wait(now, tokens)) > 0:
            now += wait
        taken = rates.take(now, tokens)
        inside = [used for at, used in spent if at > now - MINUTE_S]
        assert sum(inside) + tokens <= limit or not sum(inside)
        rates.settle(taken, tokens * share)
        spent.append((now, tokens * share))


def test_what_was_not_used_goes_back() -> None:
    """A call that took a tenth of its estimate holds the next one up by a tenth as long."""
    rates = Rates(None, 600)
    taken = rates.take(0.0, 300)
    assert rates.wait(0.0, 10) == pytest.approx(30)
    rates.settle(taken, 30)
    assert rates.wait(0.0, 10) == pytest.approx(3)


def test_what_was_not_used_leaves_room_in_the_minute() -> None:
    """Two calls that may take most of a limit each, and take little of it, need no two minutes."""
    rates = Rates(None, 600)
    rates.settle(rates.take(0.0, 500), 50)
    assert rates.wait(0.0, 500) == pytest.approx(5)


@given(tokens=st.integers(1, 50))
def test_tokens_are_spread_over_the_minute(tokens: int) -> None:
    """Each call keeps the distance that the one before it has paid for."""
    left = leave(Rates(None, 600), [0.0] * 20, tokens)
    assert all(later - earlier >= tokens / 10 - 1e-6 for earlier, later in pairwise(left))


def test_an_account_without_limits() -> None:
    """Nothing waits."""
    assert leave(Rates(None, None), [0.0] * 100, 1e9) == [0.0] * 100


def test_less_than_one_call_a_minute() -> None:
    """Three calls a minute for eight workers: each one in 160 s."""
    rates = Rates(3, None)
    rates.share(1 / 8, 0.0)
    rates.take(0.0, 0)
    assert rates.wait(0.0, 0) == pytest.approx(160, rel=0.01)
