"""The join rule, said once more in another way: what a job's outcome must be.

Sets and definitions instead of states and counters; it knows nothing of attempts under way.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from streams.core.goal import Goal
from streams.core.plan import Plan
from streams.core.values import ANSWER, PLAN, TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One attempt that ended; *tokens* is what it cost."""

    task: TaskId
    attempt: int
    good: bool
    final: bool = False
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a job should end."""

    outcome: str
    rule: str
    succeeded: frozenset[TaskId]
    failed: frozenset[TaskId]
    skipped: frozenset[TaskId]


def verdict(
    goal: Goal, plan: Plan, attempts: Iterable[Ended], *, brought: bool = False, deadline: bool = False
) -> Verdict | None:
    """How a job with these attempts ended, in this order; None where it has not.

    Args:
        brought: The plan came with the goal, as if it had been planned before all attempts.
        deadline: Its time is over after these attempts.
    """
    good: set[TaskId] = {PLAN} if brought else set()
    bad: set[TaskId] = set()
    tokens = 0

    def skipped() -> set[TaskId]:
        lost = set(bad)
        for task in plan:  # dependencies stand before their dependants
            if lost & set(task.dep):
                lost.add(task.id)
        return lost - bad

    def end(rule: str) -> Verdict:
        nodes = {task.id for task in plan} if PLAN in good else set()
        wins = good & nodes
        enough = bool(wins) and len(wins) >= goal.join.min_success_ratio * len(nodes)
        all_done = enough and wins == nodes and rule == "all_done"
        return Verdict(
            outcome="succeeded" if all_done else "partial" if enough and rule != "planning" else "failed",
            rule=rule,
            succeeded=frozenset(wins),
            failed=frozenset(bad & nodes),
            skipped=frozenset(skipped()),
        )

    for attempt in attempts:
        tokens += attempt.tokens
        spent = goal.budget.tokens is not None and tokens >= goal.budget.tokens
        if attempt.good:
            good.add(attempt.task)
        elif attempt.final or attempt.attempt == goal.limits.max_attempts or spent:
            bad.add(attempt.task)
        if PLAN in bad:
            return end("planning")
        if ANSWER in good | bad:
            return end("all_done" if ANSWER in good else "synthesis")
        if PLAN not in good or attempt.task not in good | bad:
            continue
        if {task.id for task in plan} <= good | bad | skipped():
            if len(plan) == 1 or end("all_done").outcome == "failed":
                return end("all_done")
        elif len(bad) > goal.join.fail_fast_ratio * len(plan):
            return end("fail_fast")
        if spent:
            return end("budget")
    return end("deadline") if deadline else None
