"""Which sub-task sees what of a goal's input, and what `each` becomes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.admission import Proposal, Refused, admit
from tests.core.proposals import admitted, entry, proposals, refused


@given(proposals(), st.integers(1, 31), st.integers(1, 60))
def test_items_are_all_seen_and_each_sees_them_once(
    proposed: list[Proposal], items: int, max_subtasks: int
) -> None:
    """No item of a list input is left out; the parts of an `each` are even, in order and do not overlap."""
    outcome = admit(proposed, max_subtasks=max_subtasks, items=items)
    if isinstance(outcome, Refused):
        return
    seen: set[int] = set()
    for task in outcome:
        first, last = (0, items - 1) if task.input == "all" else task.input or (0, -1)
        assert last < items
        seen.update(range(first, last + 1))
    assert seen == set(range(items))
    for p in proposed:
        if p.input == "each":
            shares = [t.input for t in outcome if t.id.rpartition("-")[0] == p.id]
            ranges = [s for s in shares if isinstance(s, tuple)]
            assert [n for first, last in ranges for n in range(first, last + 1)] == list(range(items))
            sizes = {last - first for first, last in ranges}
            assert max(sizes) - min(sizes) <= 1


def test_a_root_without_a_share_sees_an_input_that_is_no_list() -> None:
    """There is nothing to divide; who depends on others sees their results instead."""
    plan = admitted([entry("a"), entry("b", "a"), entry("c", "a", input="all")])
    assert [t.input for t in plan] == ["all", None, "all"]


def test_each_becomes_one_sub_task_per_item() -> None:
    """Whoever depends on it depends on all its parts."""
    plan = admitted([entry("join", "audit"), entry("audit", input="each")], items=3)
    assert [(t.id, t.input, t.dep) for t in plan] == [
        ("audit-1", (0, 0), ()),
        ("audit-2", (1, 1), ()),
        ("audit-3", (2, 2), ()),
        ("join", None, ("audit-1", "audit-2", "audit-3")),
    ]
    assert {t.goal for t in plan[:3]} == {"do audit"}


def test_each_becomes_even_chunks_where_items_exceed_the_free_places() -> None:
    """99 places for 250 items: none dropped."""
    plan = admitted([entry("audit", input="each"), entry("join", "audit")], items=250)
    sizes = [t.input[1] - t.input[0] + 1 for t in plan if isinstance(t.input, tuple)]
    assert len(plan) == 100
    assert sizes == [3] * 52 + [2] * 47
    assert plan[98].input == (248, 249)


def test_several_each_share_the_free_places_and_depend_on_all_parts() -> None:
    """7 places for two of them: 3 each, cut at the same items."""
    plan = admitted(
        [entry("read", input="each"), entry("check", "read", input="each"), entry("join", "check")],
        max_subtasks=8,
        items=20,
    )
    assert [t.id for t in plan] == ["read-1", "read-2", "read-3", "check-1", "check-2", "check-3", "join"]
    assert all(t.dep == ("read-1", "read-2", "read-3") for t in plan[3:6])
    assert [t.input for t in plan[:3]] == [t.input for t in plan[3:6]] == [(0, 6), (7, 13), (14, 19)]


def test_each_without_a_free_place_is_refused() -> None:
    """It needs at least one, which then sees all items."""
    proposed = [entry(f"t{n}") for n in range(100)]
    assert refused([*proposed, entry("audit", input="each")], items=3) == ("101 sub-tasks, at most 100",)
    assert len(admitted([*proposed[:99], entry("audit", input="each")], items=3)) == 100


def test_names_of_parts_keep_the_rules_too() -> None:
    """Parts clash with nobody, fit into a key, and are no names that a planner can use."""
    assert refused([entry("a", input="each"), entry("a-2")], items=3) == ("duplicate id a-2",)
    (reason,) = refused([entry("x" * 63, input="each")], items=1)
    assert "must have 1 to 64 letters" in reason
    assert refused([entry("a", input="each"), entry("b", "a-1")], items=3) == ("b depends on unknown a-1",)


@pytest.mark.parametrize(
    ("share", "items", "reason"),
    [
        ("each", None, 'a: input is "each", but the goal\'s input is no list'),
        ("each", 0, 'a: input is "each", but the goal\'s input is an empty list'),
        ((0, 2), None, "a: input [0, 2], but the goal's input is no list"),
        ((0, 0), 0, "a: input [0, 0], but the goal's input is an empty list"),
        ((0, 3), 3, "a: input [0, 3], but the goal's input has items 0 to 2"),
        ((2, 1), 3, "a: input [2, 1] must be [first, last], counted from 0"),
        ((-1, 1), 3, "a: input [-1, 1] must be [first, last], counted from 0"),
        ((0, 10**5000), 3, "a: input [0, (over 20 digits)], but the goal's input has items 0 to 2"),
    ],
)
def test_a_share_that_the_input_has_not_is_refused(share: Any, items: int | None, reason: str) -> None:
    """The reason says what the input has."""
    assert refused([entry("a", input=share)], items=items) == (reason,)


def test_items_that_nobody_sees_are_named() -> None:
    """Briefly: ranges, and how many more."""
    assert refused(
        [entry("a", input=(1, 3)), entry("b", input=(7, 8)), entry("c", input=(2, 5))], items=20
    ) == ("no sub-task sees items 0, 6, 9 to 19 of the input",)
    odd = [entry(f"t{n}", input=(2 * n + 1, 2 * n + 1)) for n in range(10)]
    assert refused(odd, items=20) == ("no sub-task sees items 0, 2, 4, 6, 8 and 5 more ranges of the input",)
    assert len(admitted([entry("a", input=(0, 3)), entry("b", input=(3, 9))], items=10)) == 2


def test_a_list_that_no_sub_task_sees_is_refused_with_the_ways_to_divide_it() -> None:
    """The reason teaches; an empty list needs no dividing."""
    (reason,) = refused([entry("a"), entry("b", "a")], items=50)
    assert "any of the 50 items" in reason
    assert all(way in reason for way in ('"each"', "[first, last]", '"all"'))
    assert admitted([entry("a")], items=0)[0].input == "all"
