"""Proposals of plans, by hand and generated."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from streams.core.admission import Proposal, Refused, admit
from streams.core.plan import Plan

IDS = st.text("abcxyzABC019._~-", min_size=1, max_size=8)
SHARES = (
    st.none()
    | st.sampled_from(["all", "each"])
    | st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda pair: (min(pair), max(pair)))
)


def refused(
    proposed: Sequence[Proposal], *, max_subtasks: int = 100, items: int | None = None
) -> tuple[str, ...]:
    """The reasons of a refusal that must come."""
    outcome = admit(proposed, max_subtasks=max_subtasks, items=items)
    assert isinstance(outcome, Refused), outcome
    return outcome.reasons


def admitted(proposed: Sequence[Proposal], *, max_subtasks: int = 100, items: int | None = None) -> Plan:
    """The plan that must come."""
    outcome = admit(proposed, max_subtasks=max_subtasks, items=items)
    assert not isinstance(outcome, Refused), outcome.reasons
    return outcome


def entry(task: str, *dep: str, **fields: Any) -> Proposal:
    """An entry with some goal."""
    return Proposal(**{"id": task, "goal": f"do {task}", "dep": dep, **fields})


@st.composite
def proposals(draw: st.DrawFn) -> list[Proposal]:
    """Acyclic proposals in any order, some with `each`, without clashing names."""
    ids = draw(st.lists(st.text("abcxyz", min_size=1, max_size=4), min_size=1, max_size=12, unique=True))
    ids = [task for task in ids if task not in ("plan", "answer")] or ["a"]
    made = [
        entry(task, *draw(st.lists(st.sampled_from(ids[:place]), unique=True)), input=draw(SHARES))
        if place
        else entry(task, input=draw(SHARES))
        for place, task in enumerate(ids)
    ]
    return draw(st.permutations(made))


@st.composite
def garbage(draw: st.DrawFn) -> list[Proposal]:
    """Anything the types allow."""
    text = st.text(max_size=5) | IDS | st.sampled_from(["a", "b", "plan", "answer", "a-1", "", "x" * 70])
    share = SHARES | st.tuples(st.integers(), st.integers())
    args = st.sampled_from([None, float("nan"), 10**5000, "\ud800", [[], {"": {}}], {"a": ["ä"]}])
    made = st.builds(
        Proposal,
        id=text,
        goal=text,
        dep=st.lists(text, max_size=3).map(tuple),
        tool=st.sampled_from([None, "", "t"]),
        args=args,
        input=share,
    )
    return draw(st.lists(made, max_size=6))
