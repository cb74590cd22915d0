"""Candidates: sub-agents that all work on the goal itself, where no planner is asked."""

from streams.core.goal import Goal
from streams.core.plan import Plan, SubTask
from streams.core.states import Node

THE_GOAL = "the goal itself"
"""The goal of a candidate, in a word: its command brings the goal's text."""


def candidates(goal: Goal) -> Plan:
    """The plan of a goal that wants candidates; empty for one that wants none."""
    models = goal.join.models or (None,)
    return tuple(
        SubTask(
            id=f"candidate-{number}",
            goal=THE_GOAL,
            model=models[(number - 1) % len(models)],
            input=None if goal.input is None else "all",
        )
        for number in range(1, (goal.join.candidates or 0) + 1)
    )


def is_candidate(goal: Goal, node: Node) -> bool:
    """Whether a sub-task works on the goal itself."""
    return goal.join.candidates is not None and node.task.goal == THE_GOAL
