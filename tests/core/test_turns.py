"""Turns: to each its weight's share, priorities first, and nobody starves."""

from collections import Counter
from math import ceil
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from streams.core.turns import AGEING, HIGHEST, Turns

Named: TypeAlias = tuple[int, int]
"""For whom something waits, and its number."""

WEIGHT = st.integers(1, 12) | st.sampled_from((100, 1_000))
WEIGHTS = st.lists(WEIGHT, min_size=1, max_size=6)
ROUNDING = 1e-6


def backlog(weights: list[int], length: int, into: "Turns[int, Named] | None" = None) -> "Turns[int, Named]":
    waiting = Turns[int, Named]() if into is None else into
    for who, weight in enumerate(weights):
        for each in range(length):
            waiting.add(who, (who, each), weight=weight)
    return waiting


def taken(waiting: "Turns[int, Named]") -> Named:
    found = waiting.take()
    assert found is not None
    return found


@given(WEIGHTS, st.integers(1, 300))
def test_of_a_backlog_each_has_its_weights_share_of_the_turns(weights: list[int], turns: int) -> None:
    """At any moment one turn more or less."""
    waiting = backlog(weights, turns)
    had = Counter[int]()
    for turn in range(1, turns + 1):
        had[taken(waiting)[0]] += 1
        for who, weight in enumerate(weights):
            assert abs(had[who] - turn * weight / sum(weights)) <= 1 + ROUNDING
    assert len(waiting) == turns * (len(weights) - 1)


@given(WEIGHTS, WEIGHT, st.integers(0, 200), st.integers(1, 100))
def test_whoever_was_away_has_saved_nothing_up(weights: list[int], mine: int, away: int, turns: int) -> None:
    """It has its share from then on, and not of the turns before."""
    waiting = backlog(weights, away + turns)
    for _ in range(away):
        taken(waiting)
    me = len(weights)
    for each in range(turns):
        waiting.add(me, (me, each), weight=mine)
    had = 0
    for turn in range(1, turns + 1):
        had += taken(waiting)[0] == me
        assert had <= turn * mine / (sum(weights) + mine) + 1 + ROUNDING


@given(WEIGHTS, st.lists(st.integers(-3, 5), max_size=300))
def test_nobody_waits_for_more_than_the_others_shares(weights: list[int], steps: list[int]) -> None:
    """Whoever comes and goes: two turns of everybody as its weight goes, and one of each."""
    waiting: Turns[int, Named] = Turns()
    left = Counter[int]()
    since: dict[int, tuple[int, set[int]]] = {}  # turns that passed, and whose
    for step in [*steps, *([-1] * len(steps))]:
        if step >= 0:
            who = step % len(weights)
            waiting.add(who, (who, 0), weight=weights[who])
            left[who] += 1
            since.setdefault(who, (0, set()))
            continue
        for who, (turns, rivals) in since.items():
            since[who] = turns + 1, rivals | set(since)
        if (found := waiting.take()) is None:
            assert not since
            continue
        who = found[0]
        turns, rivals = since.pop(who)
        whole = sum(weights[each] for each in rivals)
        assert turns <= 2 * ceil(whole / weights[who]) + len(rivals)
        left[who] -= 1
        if left[who]:
            since[who] = 0, set()


@given(st.lists(st.tuples(st.booleans(), st.integers(0, HIGHEST)), min_size=1, max_size=200))
def test_of_one_the_most_urgent_goes_and_what_grew_old(steps: list[tuple[bool, int]]) -> None:
    """And each waits for so many turns at most as those before it in line need by their age alone."""
    waiting: Turns[str, int] = Turns()
    line: dict[int, tuple[int, int, int]] = {}  # by number: priority, how many were before it, turns passed
    turns = 0
    for number, (comes, priority) in enumerate([*steps, *([(False, 0)] * len(steps))]):
        if comes:
            waiting.add("a", number, priority=priority)
            line[number] = priority, len(line), 0
            continue
        if (found := waiting.take()) is None:
            assert not line
            continue
        turns += 1
        if turns % AGEING:
            assert found == min(line, key=lambda each: (-line[each][0], each))
        else:
            assert found == min(line)
        _, before, passed = line.pop(found)
        assert passed < AGEING * (before + 1)
        line = {each: (p, b, n + 1) for each, (p, b, n) in line.items()}
        turns = turns if line else 0  # nothing has waited: it is counted anew


def test_what_goes_before_all_does_so_at_every_turn() -> None:
    """Also before what has grown old."""
    waiting: Turns[str, str] = Turns()
    waiting.add("a", "old")
    for _ in range(3 * AGEING):
        waiting.add("a", "first", priority=HIGHEST + 1)
    assert [waiting.take() for _ in range(3 * AGEING + 1)] == ["first"] * 3 * AGEING + ["old"]


def test_what_is_not_wanted_any_more_costs_nobody_a_turn() -> None:
    """It is dropped, wherever it stands."""
    waiting = backlog([1, 1], 4)
    order = []
    while (found := waiting.take(lambda named: named[1] % 2 == 0)) is not None:
        order.append(found)
    assert order == [(0, 0), (1, 0), (0, 2), (1, 2)]
    assert len(waiting) == 0


@given(WEIGHTS, st.integers(0, 5), st.integers(1, 30))
def test_who_may_have_no_turn_now_costs_nothing_and_keeps_its_place(
    weights: list[int], held: int, turns: int
) -> None:
    """It is asked again only once it was woken, and what goes before all may go meanwhile."""
    held %= len(weights)
    waiting = backlog(weights, turns)
    asked = Counter[int]()

    def least(who: int) -> int | None:
        asked[who] += 1
        return HIGHEST + 1 if who == held else None

    for _ in range((len(weights) - 1) * turns):
        found = waiting.take(least=least)
        assert found is not None
        assert found[0] != held
    assert waiting.take(least=least) is None
    assert asked[held] == 1
    waiting.add(held, (held, -1), priority=HIGHEST + 1, weight=weights[held])
    assert waiting.take(least=least) == (held, -1)
    assert waiting.take(least=least) is None
    waiting.wake_all()
    assert [waiting.take() for _ in range(turns)] == [(held, each) for each in range(turns)]


def test_what_is_over_is_forgotten() -> None:
    """However long some wait beside others that come and go, and however many came and went."""
    waiting: Turns[int, int] = Turns()
    waiting.add(0, 0)
    for number in range(5_000):
        waiting.add(0, number, priority=5)
        waiting.add(1 + number, number)
        for _ in range(2):
            waiting.take()
    line = waiting._lines[0]
    assert len(waiting) <= 400
    assert len(line._heap) + len(line._ages) <= 4 * line.waiting + 200
    assert len(waiting._ahead) <= 2 * len(waiting._lines) + 100


def test_a_weight_counts_from_when_it_is_told() -> None:
    """Of what waits already, too."""
    waiting = backlog([1, 1], 100)
    waiting.add(0, (0, 100), weight=3)
    had = Counter(taken(waiting)[0] for _ in range(80))
    assert 58 <= had[0] <= 62
