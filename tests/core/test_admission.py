"""Laws of plan admission, and the reasons of its refusals."""

import random
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core import admission
from streams.core.admission import MAX_PLAN_BYTES, MAX_REASONS, Proposal, Refused, admit, dependants, problems
from streams.core.plan import SubTask
from tests.core.proposals import admitted, entry, garbage, proposals, refused


@given(proposals(), st.none() | st.integers(0, 31), st.integers(0, 40))
def test_an_admitted_plan_is_whole_and_in_order(
    proposed: list[Proposal], items: int | None, max_subtasks: int
) -> None:
    """Every rule holds of what is admitted, and nothing proposed is missing from it."""
    outcome = admit(proposed, max_subtasks=max_subtasks, items=items)
    if isinstance(outcome, Refused):
        assert outcome.reasons
        return
    assert problems(outcome, max_subtasks=max_subtasks) == ()
    assert 0 < len(outcome) <= max_subtasks
    place = {task.id: n for n, task in enumerate(outcome)}
    assert len(place) == len(outcome)
    for task in outcome:
        assert all(place[dep] < place[task.id] for dep in task.dep)
    parts = {p.id: [t for t in outcome if t.id == p.id or t.id.rpartition("-")[0] == p.id] for p in proposed}
    for p in proposed:
        assert {t.goal for t in parts[p.id]} == {p.goal}
        wanted = {part.id for dep in p.dep for part in parts[dep]}
        assert all(set(t.dep) == wanted for t in parts[p.id])


@given(proposals(), st.none() | st.integers(0, 31), st.randoms(use_true_random=False))
def test_the_order_of_a_proposal_does_not_change_the_plan(
    proposed: list[Proposal], items: int | None, chance: random.Random
) -> None:
    """Shuffled entries make the same sub-tasks, or are refused too."""
    shuffled = list(proposed)
    chance.shuffle(shuffled)
    one = admit(proposed, max_subtasks=40, items=items)
    other = admit(shuffled, max_subtasks=40, items=items)
    assert isinstance(one, Refused) == isinstance(other, Refused)
    if not isinstance(one, Refused) and not isinstance(other, Refused):
        assert {t.id: t for t in one} == {t.id: t for t in other}


@given(proposals())
def test_a_plan_in_order_keeps_its_order(proposed: list[Proposal]) -> None:
    """Admission moves an entry only where a dependency stands behind it."""
    plan = admitted([replace(p, input=None) for p in proposed])
    again = [Proposal(id=t.id, goal=t.goal, dep=t.dep, input=t.input) for t in plan]
    assert admitted(again) == plan


@given(garbage(), st.none() | st.integers(0, 10**6), st.integers(0, 120))
def test_garbage_is_refused_with_reasons_and_never_an_exception(
    proposed: list[Proposal], items: int | None, max_subtasks: int
) -> None:
    """Whatever stands in a proposal, the outcome is a value; reasons are bounded and printable."""
    outcome = admit(proposed, max_subtasks=max_subtasks, items=items)
    if isinstance(outcome, Refused):
        assert 0 < len(outcome.reasons) <= MAX_REASONS + 1
        assert all(reason and reason.isprintable() for reason in outcome.reasons)
    else:
        assert problems(outcome, max_subtasks=max_subtasks) == ()


@given(st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=1, max_size=10))
def test_a_cycle_is_refused_and_printed_as_it_is(edges: list[list[int]]) -> None:
    """Refused exactly where the graph has a cycle; each arrow of the reason is a dependency."""
    count = len(edges)
    deps = {f"t{n}": [f"t{dep % count}" for dep in to] for n, to in enumerate(edges)}
    outcome = admit([entry(task, *to) for task, to in deps.items()], max_subtasks=100, items=None)
    left = dict(deps)  # Kahn's algorithm, the slow way
    while gone := [task for task, to in left.items() if not set(to) & left.keys()]:
        for task in gone:
            del left[task]
    assert isinstance(outcome, Refused) == bool(left)
    if isinstance(outcome, Refused):
        (reason,) = outcome.reasons
        cycle = reason.removeprefix("cycle ").split(" -> ")
        assert cycle[0] == cycle[-1]
        assert len(set(cycle)) == len(cycle) - 1
        assert all(after in deps[before] for before, after in pairwise(cycle))


def test_the_reason_starts_a_cycle_at_its_first_entry() -> None:
    """The same cycle reads the same, wherever the walk met it."""
    assert refused([entry("a", "c"), entry("b", "a"), entry("c", "b")]) == ("cycle a -> c -> b -> a",)
    assert refused([entry("start", "b"), entry("a", "b"), entry("b", "a")]) == ("cycle a -> b -> a",)
    assert refused([entry("a", "a")]) == ("cycle a -> a",)


def test_a_cycle_of_any_length_needs_no_recursion() -> None:
    """A chain deeper than any stack of Python, and a reason that stays readable."""
    long = [entry(f"t{n}", f"t{(n + 1) % 50_000}") for n in range(50_000)]
    assert refused(long, max_subtasks=50_000)[-1].endswith(" -> t99 -> (49900 more) -> t0")


def test_all_that_is_wrong_is_said() -> None:
    """One refusal names every fault, so that one re-ask can mend them all."""
    reasons = refused(
        [entry("a", "z", "y"), entry("a"), entry("plan"), entry("answer"), entry("b c", goal=" ")]
    )
    assert reasons == (
        "duplicate id a",
        "id plan is reserved",
        "id answer is reserved",
        "id 'b c' must have 1 to 64 letters (a-z, A-Z), digits or . _ ~ -",
        "a depends on unknown z",
        "a depends on unknown y",
        "'b c' has neither a goal nor a tool",
    )


@pytest.mark.parametrize("task", ["", "a/b", "a b", "ä", "a\n", "\ud800", "x" * 65, "a:b", "\uff11"])
def test_an_id_that_no_key_can_hold_is_refused(task: str) -> None:
    """Keys are job/task/attempt: no slash, no space, nothing that looks alike."""
    (reason,) = refused([entry(task)])
    assert reason.startswith("id ")
    assert "must have 1 to 64 letters" in reason


@pytest.mark.parametrize("task", ["a", "x" * 64, "A.b_c~d-9", "Plan", "answers", "-", "."])
def test_an_id_of_unreserved_characters_is_admitted(task: str) -> None:
    """Reserved are two whole words, not their beginnings."""
    assert [t.id for t in admitted([entry(task)])] == [task]


def test_reasons_are_bounded_and_counted() -> None:
    """The planner pays for reasons by the token."""
    reasons = refused([entry(f"t{n}", "z") for n in range(50)])
    assert len(reasons) == MAX_REASONS + 1
    assert reasons[-1] == "and 30 more"


def test_too_many_are_never_cut() -> None:
    """One more than allowed is refused; none is none."""
    assert refused([entry(f"t{n}") for n in range(101)]) == ("101 sub-tasks, at most 100",)
    assert len(admitted([entry(f"t{n}") for n in range(100)])) == 100
    assert refused([]) == ("no sub-tasks",)
    assert refused([], items=5) == ("no sub-tasks",)


def test_a_tool_needs_no_goal() -> None:
    """A tool runs directly with its arguments."""
    (task,) = admitted([Proposal(id="a", tool="read", args={"path": "x"})])
    assert task == SubTask(id="a", goal="", tool="read", args={"path": "x"}, input="all")


def test_a_dependency_named_twice_is_one() -> None:
    """A dependant waits for it once."""
    assert admitted([entry("a"), entry("b", "a", "a")])[1].dep == ("a",)


def test_dependencies_move_before_their_dependants() -> None:
    """Other entries stay where they stood."""
    plan = admitted([entry("join", "b", "c"), entry("b", "a"), entry("c", "a"), entry("a"), entry("d")])
    assert [t.id for t in plan] == ["a", "b", "c", "join", "d"]
    assert plan[3].dep == ("b", "c")


def test_a_plan_too_large_for_a_record_is_refused() -> None:
    """A goal shared by many parts counts once for each."""
    goal = "x" * (MAX_PLAN_BYTES // 50)
    assert len(admitted([entry("a", goal=goal, input="each")], items=49)) == 49
    (reason,) = refused([entry("a", goal=goal, input="each")], items=50)
    assert reason.endswith(f"bytes once expanded, at most {MAX_PLAN_BYTES}: shorten its goals")
    args = {"text": ["ä" * MAX_PLAN_BYTES]}
    assert refused([Proposal(id="a", tool="t", args=args)])[0].startswith("the plan has 524")


def test_arguments_of_any_depth_are_weighed() -> None:
    """Neither depth nor the digits of a number are a problem."""
    args: Any = 10**5000
    for _ in range(10_000):
        args = {"a": [args]}
    assert len(admitted([Proposal(id="a", tool="t", args=args)])) == 1


def test_a_recorded_plan_is_checked_again() -> None:
    """Every rule that needs no input holds for the fold, too."""
    a, b = SubTask(id="a", goal="a"), SubTask(id="b", goal="b", dep=("a",))
    assert problems((a, b), max_subtasks=2) == ()
    assert problems((b, a), max_subtasks=2) == ("b stands before its dependency a",)
    assert problems((a, b), max_subtasks=1) == ("2 sub-tasks, at most 1",)
    assert problems((), max_subtasks=1) == ("no sub-tasks",)
    assert problems((b,), max_subtasks=1) == ("b depends on unknown a",)
    assert problems((a, a), max_subtasks=2) == ("duplicate id a",)
    assert problems((SubTask(id="a", goal="a", dep=("b",)), b), max_subtasks=2) == ("cycle a -> b -> a",)
    assert problems((SubTask(id="plan", goal="a"),), max_subtasks=2) == ("id plan is reserved",)
    assert problems((SubTask(id="a", goal="a", input=(3, 1)),), max_subtasks=2) == (
        "a: input [3, 1] must be [first, last], counted from 0",
    )


def test_dependants_are_told_in_the_plans_order() -> None:
    """A sub-task that nobody waits for is there with none."""
    plan = admitted([entry("a"), entry("c", "a"), entry("b", "a"), entry("d", "b", "c")])
    assert dependants(plan) == {"a": ("c", "b"), "c": ("d",), "b": ("d",), "d": ()}


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of admission.py *work* runs: steps, whatever the machine is busy with."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if frame.f_code.co_filename != admission.__file__:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def dense(size: int) -> list[Proposal]:
    """Half of the entries depend on each of the other half: (size/2) squared dependencies."""
    half = [f"t{n}" for n in range(size // 2)]
    return [*(entry(task) for task in half), *(entry(f"u{n}", *half) for n in range(size // 2))]


@pytest.mark.parametrize("broken", [False, True])
def test_work_is_linear_in_entries_and_dependencies(*, broken: bool) -> None:
    """Four times the dependencies, at most about four times the steps; a cycle at the end costs no more."""

    def steps(size: int) -> int:
        proposed = dense(size)
        if broken:
            proposed[0] = entry("t0", f"u{size // 2 - 1}")
        return lines_run(lambda: admit(proposed, max_subtasks=size, items=None))

    small, large = steps(80), steps(160)
    assert large < 4.5 * small


class Counted(str):
    """An id that counts how often it is hashed or compared: steps that happen inside of C."""

    __slots__ = ()
    lookups = 0

    def __hash__(self) -> int:
        Counted.lookups += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        Counted.lookups += 1
        return super().__eq__(other)


def test_a_hundred_thousand_dependencies_are_looked_up_a_few_times_each() -> None:
    """Steps that happen inside of C count as well."""
    ids = [Counted(f"t{n}") for n in range(640)]
    proposed = [entry(task, *ids[: min(n, 320)]) for n, task in enumerate(ids)]
    edges = sum(len(p.dep) for p in proposed)
    assert edges > 100_000
    Counted.lookups = 0
    outcome = admit(proposed, max_subtasks=640, items=None)
    assert isinstance(outcome, Refused)  # too large for one record, which is the last thing that is found
    assert Counted.lookups < 20 * edges
