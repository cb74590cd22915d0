"""The simulated planner: a plan from the goal's words, its input and its directives."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from agents.simulator import directives, enumeration
from agents.simulator.asked import Asked
from agents.simulator.directives import SHAPES, Directive
from agents.simulator.replanning import another
from agents.simulator.wording import head, slug

Entry = dict[str, Any]

_GOAL_CHARS = 300
_WHOLE_GOAL_CHARS = 2_000  # of a plan with one entry
_LEAST_PARTS = 3  # two, and one that joins them
_MOST_PARTS = 4  # with the sub-task that joins them 5, enough for a goal in plain words
_RESERVED = {"", "plan", "answer"}  # the job's own sub-tasks have these ids


def plan(asked: Asked) -> list[Entry]:
    """The plan for a planner's request, in the format that planners are taught.

    Raises:
        Rejected: a directive makes no sense.
    """
    if asked.data.get("failure") is not None:
        return another(asked)
    entries = _planned(asked)
    if asked.data.get("notes") is True and any(d.word == "note" for d in asked.directives):
        entries = [{**entry, "notes": True} for entry in entries]
    return entries


def _planned(asked: Asked) -> list[Entry]:
    shape = next((d for d in asked.directives if d.word in SHAPES), None)
    others = tuple(d for d in asked.directives if d.word not in SHAPES)
    if shape is not None:
        return _shaped(asked, shape, others)
    copied = _copied(others, None)
    goal = head(asked.goal, _WHOLE_GOAL_CHARS) + copied
    items = _items(asked.data)
    if items:
        return [_entry("item", goal, enumeration.kind(asked.goal), share="each")]
    share = "all" if asked.data.get("input") is not None else None
    parts = _worded(asked.goal, _room(asked.data))
    if asked.again or not parts:
        # Refused before: the smallest plan there is.
        return [_entry("task", goal, enumeration.kind(asked.goal), share=share)]
    return [
        _entry(name, text + _copied(others, k), kind, dep, share=None if dep else share)
        for k, (name, text, kind, dep) in enumerate(parts, 1)
    ]


def _shaped(asked: Asked, shape: Directive, others: Sequence[Directive]) -> list[Entry]:
    """The plan that a directive asks for."""
    match shape.word:
        case "cycle":
            deps = [[2], [1]]
            if asked.again and shape.args == ("once",):
                deps = [[], [1]]
        case "diamond":
            deps = [[], [1], [1], [2, 3]]
        case "chain":
            deps = [[k] if k else [] for k in range(directives.count(shape))]
        case "join":
            number = directives.count(shape)
            deps = [[] for _ in range(number)] + [list(range(1, number + 1))]
        case _:
            deps = [[] for _ in range(directives.count(shape))]
    noop = shape.word == "noop" or shape.args[-1:] == ("noop",)
    # Short goals, so that a plan of 100 fits into a planner's usual 4,096 tokens.
    words = head(asked.goal, max(20, min(_GOAL_CHARS, 4_000 // len(deps))))
    shares = _shares(asked.data, [k for k, dep in enumerate(deps) if not dep])
    entries: list[Entry] = []
    for k, dep in enumerate(deps):
        needs = [f"t{d}" for d in dep]
        if noop:
            entry: Entry = {"id": f"t{k + 1}", "tool": "noop", "args": {}, "dep": needs}
        else:
            goal = f"Part {k + 1} of {len(deps)}: {words}{_copied(others, k + 1)}"
            entry = _entry(f"t{k + 1}", goal, "analyze", needs)
        if k in shares:
            entry["input"] = shares[k]
        entries.append(entry)
    return entries


def _entry(
    name: str, goal: str, kind: str, dep: Sequence[str] = (), share: list[int] | str | None = None
) -> Entry:
    entry: Entry = {"id": name, "goal": goal, "kind": kind, "dep": list(dep)}
    if share is not None:
        entry["input"] = share
    return entry


def _copied(others: Sequence[Directive], place: int | None) -> str:
    """The directives that a sub-task's goal ends with."""
    return "".join(f" {d}" for d in others if d.only is None or d.only == place)


def _items(data: Mapping[str, Any]) -> int:
    """How many items the goal's input has; 0 where it is no list."""
    items = data.get("items")
    if isinstance(items, int):
        return items
    given = data.get("input")
    return len(given) if isinstance(given, list) else 0


def _room(data: Mapping[str, Any]) -> int:
    most = data.get("max_subtasks")
    return most if isinstance(most, int) and most > 0 else 100


def _shares(data: Mapping[str, Any], roots: Sequence[int]) -> dict[int, list[int] | str]:
    """What each root of a plan sees of the input: of a list, every item is in one root's share."""
    items = _items(data)
    if not items:
        return dict.fromkeys(roots, "all") if data.get("input") is not None else {}
    holders = roots[:items]
    bounds = [items * k // len(holders) for k in range(len(holders) + 1)] if holders else []
    return {root: [bounds[k], bounds[k + 1] - 1] for k, root in enumerate(holders)}


def _worded(goal: str, room: int) -> list[tuple[str, str, str, list[str]]]:
    """Id, goal, kind and dependencies of the sub-tasks that the words of a goal suggest, *room* at most."""
    whole = head(goal, _GOAL_CHARS)
    if room < _LEAST_PARTS:
        return []
    most = min(_MOST_PARTS, room - 1)
    things = enumeration.things(goal)
    if things:
        asked = enumeration.kind(goal)
        kind = "analyze" if asked == "summarize" else asked  # the last sub-task sums up
        groups = [", ".join(group) for group in _grouped(things, most)]
        names = _names(groups)
        parts = [
            (name, f"For {group} alone: {whole}", kind, list[str]())
            for name, group in zip(names, groups, strict=True)
        ]
        return [*parts, (_free("summary", names), f"Put together: {whole}", "summarize", names)]
    steps = enumeration.steps(goal)
    if len(steps) > 1:
        groups = [". ".join(group) for group in _grouped(steps, most + 1)]
        return [
            (f"step-{k}", head(step, _GOAL_CHARS), enumeration.kind(step), [f"step-{k - 1}"] if k > 1 else [])
            for k, step in enumerate(groups, 1)
        ]
    return [
        ("facts", f"Collect the facts for: {whole}", "extract", []),
        ("analysis", f"Weigh the facts for: {whole}", "analyze", ["facts"]),
        ("summary", f"Sum up: {whole}", "summarize", ["facts", "analysis"]),
    ]


def _grouped(parts: Sequence[str], most: int) -> list[Sequence[str]]:
    """The parts in order, in at most *most* groups of nearly one size."""
    number = min(most, len(parts))
    bounds = [len(parts) * k // number for k in range(number + 1)]
    return [parts[first:last] for first, last in pairwise(bounds)]


def _names(groups: Sequence[str]) -> list[str]:
    names: list[str] = []
    for k, group in enumerate(groups, 1):
        name = slug(group)
        names.append(f"part-{k}" if name in _RESERVED or name in names else name)
    return names


def _free(name: str, taken: Sequence[str]) -> str:
    return name if name not in taken else f"{name}-of-all"
