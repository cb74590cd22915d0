"""Reads a planner's reply: leniently what surrounds the plan, strictly the plan itself.

A reply is never repaired into another plan. What is cut off, broken, or says two things at once
is refused, and the reasons go back to the planner: asking again is cheaper than running half of
what was meant.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from agents.json_in_text import find_json
from agents.plan_entries import NAMES, read_entries
from agents.strict_json import NoOneMeaning, decode
from streams.core.admission import MAX_PLAN_BYTES, Refused, bounded
from streams.core.commands import MakePlan
from streams.core.plan import Plan
from streams.core.values import Json

CUT_OFF: Final = "the reply was cut off at the token limit"
NO_PLAN: Final = "no plan in the reply"

MAX_CHARACTERS: Final = MAX_PLAN_BYTES
"""A longer reply is not read: the work is linear, but it is done on the event loop."""

_WRAPPERS: Final = ("tasks", "subtasks")
_WORK: Final = frozenset({"tool", *NAMES["goal"]})
_MARKS: Final = _WORK | {"id", *NAMES["dep"]}


class _Rank(IntEnum):
    """How much a value looks like a plan. The one that looks most like one counts."""

    LIST = 0
    HOLDS_A_LIST = 1
    SOME_SUB_TASKS = 2
    SUB_TASKS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A value that may be the plan.

    Attributes:
        entries: Its entries, or what stands where they should be.
    """

    rank: _Rank
    entries: Json


def read_plan(text: str, finish_reason: str, command: MakePlan) -> Plan | Refused:
    """Read the one plan in a planner's reply and admit it.

    Prose, fences, thoughts and other JSON around the plan do not matter. Two different plans are
    none, since nothing says which one is meant.

    Args:
        text: The reply as the model wrote it.
        finish_reason: Why the model ended; ``length`` is refused whatever the text holds.
        command: What was asked for: it bounds the plan.
    """
    if finish_reason == "length":
        return Refused(reasons=(CUT_OFF,))
    if len(text) > MAX_CHARACTERS:
        return Refused(reasons=(f"{NO_PLAN}: it has {len(text)} characters, at most {MAX_CHARACTERS}",))
    found = find_json(text)
    if found.cut:
        return Refused(reasons=(f"{CUT_OFF}: its JSON has no end",))
    candidates: list[_Candidate] = []
    unreadable: list[str] = []
    for part in found.values:
        try:
            candidate = _candidate(decode(part))
        except NoOneMeaning as error:
            unreadable.append(f"{NO_PLAN} that can be read: {error}")
        else:
            candidates += [candidate] if candidate and candidate not in candidates[-1:] else []
    best = max((c.rank for c in candidates), default=_Rank.LIST)
    plans = [c.entries for c in candidates if c.rank == best]
    if best < _Rank.SOME_SUB_TASKS and (found.broken or unreadable):
        broken = [f"{NO_PLAN} that can be read: its JSON breaks at {found.broken}"] if found.broken else []
        return Refused(reasons=bounded(broken + unreadable))
    if not plans:
        return Refused(reasons=(f"{CUT_OFF}: {NO_PLAN}" if found.cut_early else NO_PLAN,))
    if best >= _Rank.SOME_SUB_TASKS and any(plan != plans[0] for plan in plans[1:]):
        return Refused(reasons=(f"{len(plans)} plans in the reply: send one",))
    outcome = read_entries(
        plans[-1],
        max_subtasks=command.max_subtasks,
        items=command.items,
        tools=command.tools,
        known=[one.task for one in command.known if one.outcome == "succeeded"],
        taken=[one.task for one in command.known],
    )
    if isinstance(outcome, Refused) and best == _Rank.LIST:
        return Refused(reasons=(NO_PLAN, *outcome.reasons))
    return outcome


def _candidate(value: Json) -> _Candidate | None:
    """What *value* is as a plan: a list, or an object that holds one; None where it is neither."""
    if isinstance(value, Mapping) and "plan" in value and not any(name in value for name in _WRAPPERS):
        value = value["plan"]
        if not isinstance(value, (Mapping, list)):
            return None
    if isinstance(value, Mapping):
        held = [value[name] for name in _WRAPPERS if name in value]
        if not held:
            return None
        if any(entries != held[0] for entries in held[1:]):
            raise NoOneMeaning("tasks and subtasks stand in one object and differ")
        return _Candidate(rank=max(_Rank.HOLDS_A_LIST, _rank(held[0])), entries=held[0])
    return _Candidate(rank=_rank(value), entries=value)


def _rank(entries: Json) -> _Rank:
    if not isinstance(entries, list) or not entries:
        return _Rank.LIST
    if all(isinstance(e, Mapping) and "id" in e and _WORK & e.keys() for e in entries):
        return _Rank.SUB_TASKS
    some = any(isinstance(e, Mapping) and _MARKS & e.keys() for e in entries)
    return _Rank.SOME_SUB_TASKS if some else _Rank.LIST
