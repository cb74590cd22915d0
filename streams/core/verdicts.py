"""What a judge said, as far as it makes sense: the lane checked its form, and the fold trusts nobody."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from streams.core.commands import Contradiction
from streams.core.states import SubTaskState, Succeeded
from streams.core.values import Inline, Json, TaskId

ABOUT_CHARS = 1_000
"""Characters that the answer keeps of what a contradiction is about."""

MOST_CONTRADICTIONS = 100
"""Contradictions that the answer keeps."""


def contradictions(state: SubTaskState | None, known: Collection[TaskId]) -> tuple[Contradiction, ...]:
    """Which results contradict each other, by their verdict; none without one."""
    found = []
    for entry in _list(state, "contradictions"):
        if not isinstance(entry, Mapping):
            continue
        tasks = _names(entry.get("tasks"), known)
        about = entry.get("about")
        if len(tasks) > 1:
            text = about[:ABOUT_CHARS] if isinstance(about, str) else ""
            found.append(Contradiction(tasks=tuple(tasks), about=text))
    return tuple(found[:MOST_CONTRADICTIONS])


def alike(state: SubTaskState | None, voters: Sequence[TaskId]) -> list[list[TaskId]] | None:
    """Who said the same, in the order of *voters*; None without a verdict that names each of them once."""
    entries = _list(state, "groups")
    groups = [_names(entry, voters) for entry in entries]
    named = [name for group in groups for name in group]
    if not entries or sorted(named) != sorted(voters):
        return None
    order = {name: place for place, name in enumerate(voters)}
    groups = [sorted(group, key=order.__getitem__) for group in groups if group]
    return sorted(groups, key=lambda group: order[group[0]])


def order(state: SubTaskState | None, candidates: Sequence[TaskId]) -> list[TaskId] | None:
    """The candidates, the best first; None without a verdict that names each of them once."""
    named = _names(_list(state, "order"), candidates)
    return named if sorted(named) == sorted(candidates) else None


def _list(state: SubTaskState | None, field: str) -> Sequence[Json]:
    if not isinstance(state, Succeeded) or not isinstance(state.result, Inline):
        return ()
    said = state.result.value
    found = said.get(field) if isinstance(said, Mapping) else None
    return found if isinstance(found, Sequence) and not isinstance(found, str) else ()


def _names(said: Json, known: Iterable[TaskId]) -> list[TaskId]:
    """Those of the known names that were said, once each."""
    if isinstance(said, str) or not isinstance(said, Sequence):
        return []
    there = set(known)
    return [*dict.fromkeys(name for name in said if isinstance(name, str) and name in there)]
