"""Which plans a job accepts: the rules, and the graph made of a proposal that keeps them.

A proposal is admitted whole or refused with every reason found; it is never cut, completed or
reordered into another plan. Work is linear in the entries, their dependencies and the result
(input shares are sorted), and nothing here recurses, so that a hostile proposal costs its length.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from streams.core.plan import InputShare, Plan, SubTask
from streams.core.shares import chunks, missing_items, share_fault
from streams.core.values import ANSWER, INLINE_SET_BYTES, PLAN, STEP, Json, TaskId

ID_CHARACTERS: Final = 64
"""Characters of a sub-task's id at most."""

MAX_PLAN_BYTES: Final = INLINE_SET_BYTES
"""A plan travels inside one record, so its goals, arguments and dependencies together stay below
this many bytes of UTF-8, after every ``each`` was expanded."""

MAX_REASONS: Final = 20
"""Reasons of one refusal at most; they go back to the planner, who pays for them by the token."""

# Kafka keys are job/task/attempt, so an id has no slash; the rest are URI's unreserved characters (RFC 3986).
_ID = re.compile(rf"[A-Za-z0-9._~-]{{1,{ID_CHARACTERS}}}")
_RESERVED = frozenset({PLAN, ANSWER})

Share: TypeAlias = InputShare | Literal["each"]
"""What an entry may ask to see of the goal's input. ``each`` makes it one sub-task per item of a
list, or per chunk of consecutive items where there are more items than free places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One entry of a plan as a planner proposes it; the fields are those of :class:`SubTask`."""

    id: TaskId
    goal: str = ""
    kind: str = "analyze"
    dep: tuple[TaskId, ...] = ()
    model: str | None = None
    tool: str | None = None
    args: Json = None
    input: Share = None
    notes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """No plan. ``reasons`` are for the planner and for people, at most :data:`MAX_REASONS` and a count."""

    reasons: tuple[str, ...]


def admit(
    proposed: Sequence[Proposal],
    *,
    max_subtasks: int,
    items: int | None,
    known: Collection[TaskId] = (),
    taken: Collection[TaskId] = (),
) -> Plan | Refused:
    """Make the plan that *proposed* stands for, or say why it is none.

    The plan's order is that of *proposed*, except that dependencies move before their dependants.
    An ``each`` entry ``a`` becomes ``a-1``, ``a-2``, ...; several ``each`` entries share the free
    places evenly. A dependency on ``a`` becomes one on all its parts, also from another ``each``:
    which part would belong to which is the planner's to say, in entries of their own.

    Args:
        max_subtasks: Sub-tasks in the plan at most.
        items: How many items the goal's input has when it is a list; None for any other input.
        known: Sub-tasks of an earlier plan of the job that these may depend on.
        taken: Ids that its earlier plans have used; with one of them not every item needs to be seen again.
    """
    reasons = _faults(proposed, max_subtasks, known, taken)
    reasons += _share_faults(proposed, items, again=bool(taken))
    order = _in_order(proposed, reasons)
    if reasons:
        return Refused(reasons=bounded(reasons))
    plan = _expand([proposed[i] for i in order], max_subtasks, items)
    # Only expansion can bring these: a part's name that is too long, or that another entry has.
    reasons += _id_faults(plan, taken)
    size = size_of(plan)
    if size > MAX_PLAN_BYTES:
        reasons.append(
            f"the plan has {size} bytes once expanded, at most {MAX_PLAN_BYTES}: shorten its goals"
        )
    return Refused(reasons=bounded(reasons)) if reasons else plan


def problems(
    plan: Plan,
    *,
    max_subtasks: int,
    known: Collection[TaskId] = (),
    taken: Collection[TaskId] = (),
) -> tuple[str, ...]:
    """Check an expanded plan that comes from a record; empty where every rule is kept.

    What depends on the goal's input (whether its items are all seen) was checked by :func:`admit`.
    A plan that has grown need not stand in order: whoever waited for a proposer waits for what comes later.

    Args:
        known, taken: As of :func:`admit`.
    """
    reasons = _faults(plan, max_subtasks, known, taken)
    reasons += [f"{show(t.id)}: {fault}" for t in plan if (fault := share_fault(t.input, None, known=False))]
    before = len(reasons)
    _in_order(plan, reasons)
    if len(reasons) == before and not any(task.parent for task in plan):
        seen: set[TaskId] = set()
        ours = {task.id for task in plan}
        for task in plan:
            reasons += [
                f"{show(task.id)} stands before its dependency {show(dep)}"
                for dep in task.dep
                if dep in ours and dep not in seen
            ]
            seen.add(task.id)
    return bounded(reasons)


def dependants(plan: Plan) -> Mapping[TaskId, tuple[TaskId, ...]]:
    """For every sub-task those that wait for it, in the plan's order."""
    found: dict[TaskId, list[TaskId]] = {task.id: [] for task in plan}
    for task in plan:
        for dep in task.dep:
            found[dep].append(task.id)
    return {task: tuple(waiting) for task, waiting in found.items()}


def bounded(reasons: Sequence[str]) -> tuple[str, ...]:
    """The first :data:`MAX_REASONS` reasons, and how many more there are."""
    more = len(reasons) - MAX_REASONS
    return (*reasons[:MAX_REASONS], f"and {more} more") if more > 0 else tuple(reasons)


def show(task: TaskId) -> str:
    """An id as a reason prints it: as it is, or quoted and cut where it breaks the rules for ids."""
    if _ID.fullmatch(task):
        return task
    return repr(task) if len(task) <= ID_CHARACTERS else f"{task[:ID_CHARACTERS]!r}..."


def _faults(
    entries: Sequence[Proposal | SubTask],
    max_subtasks: int,
    before: Collection[TaskId],
    taken: Collection[TaskId],
) -> list[str]:
    """What breaks the rules that hold for proposals and plans alike, but for cycles."""
    if not entries:
        return ["no sub-tasks"]
    reasons: list[str] = []
    if len(entries) > max_subtasks:
        reasons.append(f"{len(entries)} sub-tasks, at most {max_subtasks}")
    reasons += _id_faults(entries, taken)
    known = {*before, *(entry.id for entry in entries)}
    for entry in entries:
        if not entry.goal.strip() and not entry.tool:
            reasons.append(f"{show(entry.id)} has neither a goal nor a tool")
        reasons += [
            f"{show(entry.id)} depends on unknown {show(dep)}"
            for dep in dict.fromkeys(entry.dep)
            if dep not in known
        ]
    return reasons


def _id_faults(entries: Sequence[Proposal | SubTask], taken: Collection[TaskId]) -> list[str]:
    reasons: list[str] = []
    for task, count in Counter(entry.id for entry in entries).items():
        if count > 1:
            reasons.append(f"duplicate id {show(task)}")
        if task in taken:
            reasons.append(f"id {show(task)} is taken by an earlier sub-task")
        if task in _RESERVED or task.startswith(STEP):
            reasons.append(f"id {show(task)} is reserved")
        elif not _ID.fullmatch(task):
            reasons.append(
                f"id {show(task)} must have 1 to {ID_CHARACTERS} letters (a-z, A-Z), digits or . _ ~ -"
            )
    return reasons


def _share_faults(proposed: Sequence[Proposal], items: int | None, *, again: bool) -> list[str]:
    """Which shares do not fit the input, or else which items nobody sees or has seen."""
    faults = [f"{show(p.id)}: {fault}" for p in proposed if (fault := share_fault(p.input, items))]
    if faults or not items or not proposed or again:
        return faults
    if all(p.input is None for p in proposed):
        ways = '"each" (one sub-task per item), [first, last] (items from 0, both included) or "all"'
        return [
            f"no sub-task sees any of the {items} items of the input: give sub-tasks an `input` of {ways}"
        ]
    if any(p.input in ("all", "each") for p in proposed):
        return []
    missing = missing_items([p.input for p in proposed if isinstance(p.input, tuple)], items)
    return [f"no sub-task sees {missing} of the input"] if missing else []


def _in_order(entries: Sequence[Proposal | SubTask], reasons: list[str]) -> list[int]:
    """Places of *entries*, dependencies first; adds to *reasons* the first cycle found.

    A depth-first walk over an explicit stack: an entry is placed once all it depends on are, so
    entries that stand in order already stay where they are. Unknown dependencies are passed over,
    and of entries with the same id the first one counts.
    """
    place: dict[TaskId, int] = {}
    for index, entry in enumerate(entries):
        place.setdefault(entry.id, index)
    order: list[int] = []
    walked: dict[int, bool] = {}  # absent: not reached; False: on the way down; True: placed
    for root in range(len(entries)):
        if root in walked:
            continue
        walked[root] = False
        way = [(root, iter(entries[root].dep))]
        while way:
            index, deps = way[-1]
            for dep in deps:
                below = place.get(dep)
                if below is None or walked.get(below) is True:
                    continue
                if below in walked:
                    members = [i for i, _ in way]
                    reasons.append(_cycle([entries[i].id for i in _rotated(members[members.index(below) :])]))
                    return order
                walked[below] = False
                way.append((below, iter(entries[below].dep)))
                break
            else:
                walked[index] = True
                order.append(index)
                way.pop()
    return order


def _rotated(cycle: list[int]) -> list[int]:
    """The cycle from its first entry on, so that the reason does not depend on where the walk met it."""
    start = cycle.index(min(cycle))
    return cycle[start:] + cycle[:start]


def _cycle(ids: Sequence[TaskId]) -> str:
    """``cycle a -> c -> b -> a``: a depends on c, and so on."""
    shown = [show(task) for task in ids[:100]]
    if len(ids) > len(shown):
        shown.append(f"({len(ids) - len(shown)} more)")
    return f"cycle {' -> '.join([*shown, show(ids[0])])}"


def _expand(ordered: Sequence[Proposal], max_subtasks: int, items: int | None) -> Plan:
    """Entries as sub-tasks, each ``each`` as its parts. Keeps the order."""
    each = sum(p.input == "each" for p in ordered)
    # All get the same number of parts, whatever the order of the entries; a place or two stay free.
    parts = chunks(items or 0, (max_subtasks - len(ordered) + each) // each) if each else ()
    ids: dict[TaskId, tuple[TaskId, ...]] = {
        p.id: tuple(f"{p.id}-{n}" for n in range(1, len(parts) + 1)) if p.input == "each" else (p.id,)
        for p in ordered
    }
    plan: list[SubTask] = []
    for p in ordered:
        dep = tuple(dict.fromkeys(part for name in p.dep for part in ids.get(name, (name,))))
        share: InputShare = None if p.input == "each" else p.input
        if share is None and not dep and not items:
            share = "all"  # there is no list to be divided: a root that says nothing sees what there is
        shares: Sequence[InputShare] = parts if p.input == "each" else (share,)
        for name, seen in zip(ids[p.id], shares, strict=True):
            plan.append(
                SubTask(
                    id=name,
                    goal=p.goal,
                    kind=p.kind,
                    dep=dep,
                    model=p.model,
                    tool=p.tool,
                    args=p.args,
                    input=seen,
                    notes=p.notes,
                )
            )
    return tuple(plan)


def size_of(plan: Sequence[SubTask]) -> int:
    """Bytes of a plan's text, a little less than its JSON has."""
    size = 0
    weighed: dict[int, int] = {}  # parts of one entry share their arguments: weigh them once
    for task in plan:
        if id(task.args) not in weighed:
            weighed[id(task.args)] = _weight(task.args)
        size += weighed[id(task.args)] + sum(len(dep) + 3 for dep in task.dep)
        size += sum(_weight(text) for text in (task.goal, task.kind, task.model, task.tool))
    return size


def _weight(value: Json) -> int:
    """About the bytes of a value's JSON; iterative, for a value of any depth."""
    if value is None:
        return 4
    if isinstance(value, str) and value.isascii():  # nearly all there is to weigh
        return len(value) + 2
    size = 0
    waiting: list[Json] = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                size += len(text.encode("utf-8", "surrogatepass")) + 2
            case Mapping() as members:
                waiting.extend(members.keys())
                waiting.extend(members.values())
                size += 2
            case Sequence() as elements:
                waiting.extend(elements)
                size += 2
            case int(number):  # bits, since Python refuses to print integers of over 4,300 digits
                size += number.bit_length() // 3 + 1
            case scalar:
                size += len(str(scalar))
    return size
