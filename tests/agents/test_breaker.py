"""When a model is left alone, and who tries it again."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.models.breaker import EARLY_S, ENOUGH, IN_A_ROW, OPEN_S, Breaker


def opened(now: float = 0.0) -> Breaker:
    """One that has just opened."""
    breaker = Breaker()
    for _ in range(IN_A_ROW):
        breaker.failed(now, probe=breaker.begin())
    return breaker


def test_five_in_a_row_open_it_for_thirty_seconds_and_one_call_tries() -> None:
    """While it tries, nobody else may."""
    breaker = opened()
    assert (breaker.state, breaker.wait(0.0), breaker.wait(29.0)) == ("open", OPEN_S, 1.0)
    assert breaker.wait(30.0) == 0
    assert breaker.begin()
    assert (breaker.state, breaker.wait(30.0)) == ("half_open", math.inf)


@pytest.mark.parametrize(("works", "state", "wait"), [(True, "closed", 0.0), (False, "open", OPEN_S)])
def test_the_call_that_tries_decides(works: bool, state: str, wait: float) -> None:
    """Closed again, or open for as long again."""
    breaker = opened()
    probe = breaker.begin()
    (breaker.answered if works else breaker.failed)(31.0, probe=probe)
    assert (breaker.state, breaker.wait(31.0)) == (state, wait)


def test_a_try_that_was_given_up_is_made_by_the_next() -> None:
    """It showed nothing."""
    breaker = opened()
    breaker.dropped(30.0, probe=breaker.begin())
    assert (breaker.state, breaker.wait(30.0)) == ("open", 0.0)
    assert breaker.begin()


def test_a_reply_in_between_begins_the_row_anew() -> None:
    """Four failures, a reply, four failures: closed."""
    breaker = Breaker()
    for _ in range(2):
        for _ in range(IN_A_ROW - 1):
            breaker.failed(0.0, probe=False)
        breaker.answered(0.0, probe=False)
    assert breaker.state == "closed"


def test_half_of_enough_calls_open_it_without_a_row() -> None:
    """Every second call fails."""
    breaker, calls = Breaker(), 0
    while breaker.state == "closed":
        (breaker.failed if calls % 2 else breaker.answered)(calls / 10, probe=False)
        calls += 1
    assert calls == ENOUGH


def test_old_failures_do_not_count() -> None:
    """Every second call fails, but there are few of them."""
    breaker = Breaker()
    for call in range(200):
        (breaker.failed if call % 2 else breaker.answered)(call * 2.0, probe=False)
    assert breaker.state == "closed"


@given(late=st.lists(st.booleans(), max_size=20))
def test_calls_that_began_before_it_opened_change_nothing(late: list[bool]) -> None:
    """Neither open nor while one tries."""
    breaker = opened()
    for works in late:
        (breaker.answered if works else breaker.failed)(1.0, probe=False)
    assert (breaker.state, breaker.wait(1.0)) == ("open", OPEN_S - 1)
    breaker.begin()
    for works in late:
        (breaker.answered if works else breaker.failed)(30.0, probe=False)
    assert breaker.state == "half_open"


def test_who_cannot_wait_so_long_may_try_sooner() -> None:
    """Not at once, and one at a time."""
    breaker = opened()
    assert breaker.wait(1.0, ends=20.0) == EARLY_S - 1
    assert breaker.wait(1.0, ends=40.0) == OPEN_S - 1
    assert breaker.wait(EARLY_S, ends=20.0) == 0
    breaker.failed(EARLY_S, probe=breaker.begin())
    assert breaker.wait(EARLY_S, ends=20.0) == EARLY_S
