"""Reads a plan's entries, as planners reply them and as goals bring them: strictly, field by field."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import orjson

from streams.core.admission import ID_CHARACTERS, Proposal, Refused, Share, admit, bounded
from streams.core.plan import Plan
from streams.core.values import Json, TaskId

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "goal": ("goal", "prompt"),
    "kind": ("kind", "type"),
    "dep": ("dep", "deps", "depends_on"),
}
"""Fields that have more than one name, since planners were taught different ones."""

_SHARES: Final = 'must be "all", "each" or [first, last]'
_TEXT: Final = {"type": ["string", "null"]}
_TOOLS_SHOWN: Final = 10
_IDS: Final = {"type": ["array", "null"], "items": {"type": "string"}}

SCHEMA: Final[Mapping[str, Any]] = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["id"],
        "properties": {
            "id": {"type": "string", "description": f"1 to {ID_CHARACTERS} letters, digits or . _ ~ -"},
            "goal": _TEXT | {"description": "What to do; not needed with `tool`. Also: `prompt`."},
            "kind": _TEXT | {"description": "extract, summarize, translate, your own. Also: `type`."},
            "dep": _IDS | {"description": "Whose results it needs. Also: `deps`, `depends_on`."},
            "model": _TEXT,
            "tool": _TEXT | {"description": "Runs directly with `args` where there is no goal."},
            "args": {"type": ["object", "null"]},
            "input": {
                "description": "Its share of a list: items from 0, both included; each: a part an item.",
                "anyOf": [
                    {"enum": ["all", "each", None]},
                    {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
                ],
            },
            "notes": {"type": ["boolean", "null"], "description": "It reads and writes shared notes."},
            "prompt": _TEXT,
            "type": _TEXT,
            "deps": _IDS,
            "depends_on": _IDS,
        },
    },
}
"""JSON Schema of the entries that goals bring; of a planner's, fields that nobody knows are passed over.
The graph they make is :func:`streams.core.admission.admit`'s to judge."""

_KNOWN: Final = tuple(SCHEMA["items"]["properties"])

MAX_ENTRIES: Final = 1_000
"""A longer list is refused for its length alone, and so is a longer list of dependencies: to say of each
entry what is wrong with it would hold up everything else."""


def read_entries(
    entries: Json,
    *,
    max_subtasks: int,
    items: int | None,
    tools: Sequence[str],
    ours: bool = False,
    known: Collection[TaskId] = (),
    taken: Collection[TaskId] = (),
) -> Plan | Refused:
    """Read a plan's entries and admit the plan they stand for, whole or not at all.

    Args:
        max_subtasks: Sub-tasks in the plan at most.
        items: How many items the goal's input has when it is a list; None for any other input.
        tools: Names of the tools that the goal allows.
        ours: A program wrote them and not a model: a field that nobody knows is a mistake, and so
            is a tool that is not allowed beside a goal, which a model may only have meant as a hint.
        known, taken: As of :func:`streams.core.admission.admit`.
    """
    if not isinstance(entries, list):
        return Refused(reasons=(f"the sub-tasks must be a list, are {_type(entries)}",))
    if len(entries) > MAX_ENTRIES:
        return Refused(reasons=(f"{len(entries)} sub-tasks, at most {max_subtasks}",))
    proposals: list[Proposal] = []
    reasons: list[str] = []
    for place, entry in enumerate(entries, 1):
        faults: list[str] = []
        proposal = _proposal(entry, faults)
        if ours and isinstance(entry, Mapping):
            faults += _unknown(entry)
        if proposal and proposal.tool and proposal.tool not in tools and (ours or not proposal.goal.strip()):
            allowed = ", ".join(tools[:_TOOLS_SHOWN]) or "none"
            faults.append(f"tool {proposal.tool[:64]!r} is not among the goal's tools ({allowed[:200]})")
        reasons += [f"sub-task {place}: {fault}" for fault in faults]
        if proposal:
            proposals.append(proposal)
    if reasons:
        return Refused(reasons=bounded(reasons))
    return admit(proposals, max_subtasks=max_subtasks, items=items, known=known, taken=taken)


def _proposal(entry: Json, faults: list[str]) -> Proposal | None:
    """One entry of a plan; adds to *faults* every field that is not what it must be."""
    if not isinstance(entry, Mapping):
        faults.append(f"must be an object, is {_type(entry)}")
        return None
    if "id" not in entry:
        faults.append("id must be a string, is missing")
    proposal = Proposal(
        id=_text(entry, "id", faults) if "id" in entry else "",
        goal=_text(entry, "goal", faults, optional=True),
        kind=_text(entry, "kind", faults, optional=True) or "analyze",
        dep=_dependencies(entry, faults),
        model=_text(entry, "model", faults, optional=True) or None,
        tool=_text(entry, "tool", faults, optional=True) or None,
        args=_arguments(entry, faults),
        input=_share(entry, faults),
        notes=entry.get("notes") is True,
    )
    return proposal if not faults else None


def _unknown(entry: Mapping[str, Json]) -> list[str]:
    """What is wrong with the names of an entry's fields: one fault, however many they are."""
    unknown = [name for name in entry if name not in _KNOWN]
    if not unknown:
        return []
    near = difflib.get_close_matches(unknown[0][:64].lower(), _KNOWN, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(_KNOWN)}"
    return [f"{unknown[0][:64]!r} is unknown, {hint}"]


def _field(entry: Mapping[str, Json], field: str, faults: list[str]) -> tuple[str, Json]:
    """A field by whichever of its names the planner was taught, and that name."""
    if field not in NAMES:
        return field, entry.get(field)
    given = [name for name in NAMES[field] if entry.get(name) is not None]
    if not given:
        return field, None
    if any(entry[name] != entry[given[0]] for name in given[1:]):
        faults.append(f"{' and '.join(given)} are the same field and differ")
    return given[0], entry[given[0]]


def _text(entry: Mapping[str, Json], field: str, faults: list[str], *, optional: bool = False) -> str:
    name, value = _field(entry, field, faults)
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            faults.append(f"{name} holds half a character (a lone surrogate)")
        return value
    if value is not None or not optional:
        faults.append(f"{name} must be a string, is {_type(value)}")
    return ""


def _dependencies(entry: Mapping[str, Json], faults: list[str]) -> tuple[str, ...]:
    name, value = _field(entry, "dep", faults)
    if value is None:
        return ()
    if not isinstance(value, list):
        faults.append(f"{name} must be a list of ids, is {_type(value)}")
        return ()
    if len(value) > MAX_ENTRIES:
        faults.append(f"{name} is a list of {len(value)} ids, more than a plan has sub-tasks")
        return ()
    ids = tuple(task for task in value if isinstance(task, str))
    if len(ids) < len(value):
        odd = next(task for task in value if not isinstance(task, str))
        faults.append(f"{name} must be a list of ids, holds {_type(odd)}")
    return ids


def _arguments(entry: Mapping[str, Json], faults: list[str]) -> Json:
    value = entry.get("args")
    if value is None:
        return None
    if not isinstance(value, Mapping):
        faults.append(f"args must be an object, is {_type(value)}")
        return None
    try:
        orjson.dumps(value)
    except TypeError as error:  # a lone surrogate, an integer of more than 64 bits
        faults.append(f"args cannot be sent on: {error}")
    return value


def _share(entry: Mapping[str, Json], faults: list[str]) -> Share:
    value = entry.get("input")
    match value:
        case None | "all" | "each":
            return value
        case [int(first), int(last)] if not isinstance(first, bool) and not isinstance(last, bool):
            return first, last
        case str():
            faults.append(f"input {_SHARES}, is {value[:40]!r}")
        case list():
            held = ", ".join(_type(item) for item in value[:2])
            faults.append(f"input {_SHARES}, is a list of {len(value)}: {held or 'nothing'}")
        case _:
            faults.append(f"input {_SHARES}, is {_type(value)}")
    return None


def _type(value: Json) -> str:
    """A JSON type with its article, as a reason names it."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case Sequence():
            return "a list"
        case _:
            return "an object"
