"""A plan: the graph of sub-tasks that a goal became. Its admission is in admission.py."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from streams.core.values import Json, TaskId

InputShare: TypeAlias = tuple[int, int] | Literal["all"] | None
"""What a sub-task sees of the goal's ``input``: items *first* to *last* (from 0, both included),
all of it, or nothing."""

ITEMS: Final = "items"
"""Where a sub-task that was proposed over a list has its items: ``args["items"]``, without a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubTask:
    """One node of a plan.

    Attributes:
        id: Unique in the plan.
        goal: What the sub-agent is to do. Empty where *tool* runs directly, without a model.
        kind: ``extract``, ``summarize``, ``translate``, ``analyze``, or the user's own word.
        dep: Sub-tasks whose results this one needs.
        model: The model to use, or None for the configured one.
        tool: A tool to run directly with *args*, or None.
        args: The tool's arguments; without a tool ``{"items": [...]}``, what it is given to work on where
            a sub-agent proposed it.
        input: Its share of the goal's input.
        parent: The sub-task that proposed it while it ran, or None where a planner did.
        notes: It may read and write the job's shared notes.
    """

    id: TaskId
    goal: str
    kind: str = "analyze"
    dep: tuple[TaskId, ...] = ()
    model: str | None = None
    tool: str | None = None
    args: Json = None
    input: InputShare = None
    parent: TaskId | None = None
    notes: bool = False


Plan: TypeAlias = tuple[SubTask, ...]
"""Sub-tasks in an order in which every dependency stands before its dependants."""
