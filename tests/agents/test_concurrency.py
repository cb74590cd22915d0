"""How many calls at once an endpoint is given."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.models.concurrency import LEAST_CUT, MOST_CUT, START, WINDOW_S, Adaptive


def busy(adaptive: Adaptive) -> None:
    """As many calls under way as it allows."""
    adaptive.in_use = adaptive.limit


def replies(adaptive: Adaptive, count: int, *, at: float = 0.0, latency_s: float = 0.5) -> None:
    """So many replies of a busy endpoint, one after the other."""
    for _ in range(count):
        busy(adaptive)
        adaptive.in_use -= 1
        adaptive.answered(at, latency_s=latency_s, usual_s=0.5)


def test_it_starts_low_and_doubles() -> None:
    """Each round of replies doubles it."""
    adaptive = Adaptive()
    assert adaptive.limit == START
    for rounds in range(1, 4):
        replies(adaptive, adaptive.limit)
        assert adaptive.limit == START * 2**rounds


def test_after_trouble_it_grows_by_one_a_round() -> None:
    """A tenth less, then one more for each round of replies."""
    adaptive = Adaptive()
    replies(adaptive, 56)
    assert adaptive.limit == 64
    adaptive.failed(WINDOW_S, congested=True)
    assert adaptive.limit == int(64 * (1 - LEAST_CUT))
    replies(adaptive, 59, at=WINDOW_S)
    assert adaptive.limit == 58


@pytest.mark.parametrize("most", [1, 5, 20])
def test_the_accounts_limit_is_never_exceeded(most: int) -> None:
    """However well it goes."""
    adaptive = Adaptive()
    adaptive.cap(most)
    replies(adaptive, 500)
    assert adaptive.limit <= most


def test_one_window_cuts_as_deep_as_its_share_of_refusals() -> None:
    """At most half, however many calls say the same; the next window may cut again. One always remains."""
    adaptive = Adaptive()
    adaptive.failed(1.0, congested=True)
    assert adaptive.limit == int(START * (1 - LEAST_CUT))
    for _ in range(50):
        adaptive.failed(1.0, congested=True)
    assert adaptive.limit == START * MOST_CUT
    for window in range(1, 10):
        for _ in range(10):
            adaptive.failed(1.0 + window * WINDOW_S, congested=True)
    assert adaptive.limit == 1


def test_one_refusal_in_twenty_is_no_reason_to_give_little() -> None:
    """It stays far above where it began."""
    adaptive, limits = Adaptive(), []
    for window in range(60):
        for call in range(100):
            at = window * WINDOW_S + call / 25
            busy(adaptive)
            adaptive.in_use -= 1
            if call % 20 == 7:
                adaptive.failed(at, congested=True)
            else:
                adaptive.answered(at, latency_s=0.5, usual_s=0.5)
        limits.append(adaptive.limit)
    assert min(limits[10:]) > 2 * START


def test_what_nobody_asks_for_is_not_known_to_be_taken_well() -> None:
    """One call at a time raises nothing."""
    adaptive = Adaptive()
    for _ in range(100):
        adaptive.in_use = 0
        adaptive.answered(0.0, latency_s=0.5, usual_s=0.5)
    assert adaptive.limit == START


def test_a_few_errors_cut_nothing_but_more_and_more_do() -> None:
    """One in ten is noise; three in ten, where it was one in ten before, is too much."""
    adaptive = Adaptive()
    for window, errors in enumerate((1, 1, 3)):
        before = adaptive.limit
        for call in range(30):
            at = window * WINDOW_S + call / 100
            if call % 10 < errors:
                adaptive.failed(at, congested=False)
            else:
                adaptive.answered(at, latency_s=0.5, usual_s=0.5)
        assert (adaptive.limit < before) == (errors == 3)


@pytest.mark.parametrize(("latency_s", "cut"), [(0.9, False), (1.9, False), (3.0, True)])
def test_latency_that_grows_cuts(latency_s: float, cut: bool) -> None:
    """Against what such calls usually take, 1 s here; quick calls are in nobody's way."""
    adaptive = Adaptive()
    for _ in range(20):
        adaptive.answered(0.0, latency_s=latency_s, usual_s=1.0 if latency_s > 1 else 0.1)
    assert (adaptive.limit < START) == cut


@given(events=st.lists(st.tuples(st.floats(0, 2), st.sampled_from(["fine", "error", "congested"]))))
def test_it_stays_within_its_bounds(events: list[tuple[float, str]]) -> None:
    """At least one call, at most what the account allows."""
    adaptive, now = Adaptive(), 0.0
    adaptive.cap(40)
    for pause, event in events:
        now += pause
        if event == "fine":
            replies(adaptive, 3, at=now)
        else:
            adaptive.failed(now, congested=event == "congested")
        assert 1 <= adaptive.limit <= 40
