"""The simulated planner that is asked again: other sub-tasks in the place of those that failed."""

from collections.abc import Mapping
from typing import Any

from agents.simulator import directives
from agents.simulator.asked import Asked

Entry = dict[str, Any]


def another(asked: Asked) -> list[Entry]:
    """Each sub-task that failed once more, without the directives that it suffered by.

    Those that never ran need all of these. With ``[[replan again]]`` the directives stay, so that they fail
    again; with ``[[replan cycle]]`` the plan has a cycle.
    """
    known = asked.data.get("known")
    before = [one for one in known if isinstance(one, dict)] if isinstance(known, list) else []
    how = next((d.args[:1] for d in asked.directives if d.word == "replan"), ())
    if how == ("cycle",):
        return [_entry("one", "go round", ["other"]), _entry("other", "go round", ["one"])]
    taken = {str(one.get("task")) for one in before}
    share = "all" if asked.data.get("input") is not None else None
    failed = [_again(one, taken, keep=how == ("again",)) for one in before if _ended(one) == "failed"]
    names = [entry["id"] for entry in failed]
    behind = [_again(one, taken, keep=False) for one in before if _ended(one) == "skipped"]
    entries = [entry if share is None else {**entry, "input": share} for entry in failed]
    room = asked.data.get("max_subtasks")
    return [*entries, *({**entry, "dep": names} for entry in behind)][
        : room if isinstance(room, int) else None
    ]


def _again(one: Mapping[str, Any], taken: set[str], *, keep: bool) -> Entry:
    name, goal = str(one.get("task")), str(one.get("goal"))
    while name in taken:
        name = f"{name}-again"
    taken.add(name)
    return _entry(name, goal if keep else directives.read(goal)[0], [])


def _entry(name: str, goal: str, dep: list[str]) -> Entry:
    return {"id": name, "goal": goal or "Do it another way", "kind": "analyze", "dep": dep}


def _ended(one: Mapping[str, Any]) -> str:
    return str(one.get("outcome"))
