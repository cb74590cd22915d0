"""Votes: sub-tasks that answer the same question, counted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal, TypeAlias

from streams.core.commands import Votes
from streams.core.fingerprints import exact, normalised
from streams.core.goal import JoinRule
from streams.core.states import Failed, Open, Skipped, Stopped, Succeeded
from streams.core.values import TaskId

Ruling: TypeAlias = Literal["vote", "tie", "no_quorum"]
"""The rule that ends a vote: somebody has won; several lead with the same; nobody has enough."""

LIKE_NOBODY = "like nobody: "
"""What stands for the vote of a result without a fingerprint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The votes so far.

    Attributes:
        votes: What was said alike, most votes first; among equals in the plan's order.
        open: Those who have not voted, and still may.
        all: The weight of all voters, those who will never vote among them.
    """

    votes: tuple[Votes, ...]
    open: tuple[TaskId, ...]
    all: float


def weights(job: Open) -> dict[TaskId, float]:
    """What the vote of each sub-task counts, in the plan's order."""
    goal = job.submitted.goal
    if goal.join.counting != "weighted":
        return dict.fromkeys(job.nodes, 1.0)
    by_model = {each.model: each.weight for each in goal.join.weights}
    return {name: by_model.get(node.task.model or goal.model or "", 1.0) for name, node in job.nodes.items()}


def groups(job: Open, *, by: Literal["exact", "normalised"]) -> list[list[TaskId]]:
    """Those who said the same, in the plan's order."""
    part = exact if by == "exact" else normalised
    found: dict[str, list[TaskId]] = {}
    for name in job.nodes:
        if isinstance(state := job.states[name], Succeeded):
            found.setdefault(part(state.fingerprint) or LIKE_NOBODY + name, []).append(name)
    return list(found.values())


def counted(job: Open, alike: Iterable[Sequence[TaskId]]) -> Count:
    """The votes of a job, by who said the same.

    Sums are exact and rounded once, so that they grow with each vote and do not depend on its place.
    """
    weight = weights(job)
    votes = [Votes(tasks=tuple(each), weight=_sum(weight, each)) for each in alike]
    ended = Succeeded | Failed | Skipped | Stopped
    return Count(
        votes=tuple(sorted(votes, key=lambda each: -each.weight)),
        open=tuple(name for name in job.nodes if not isinstance(job.states[name], ended)),
        all=_sum(weight, job.nodes),
    )


def early(job: Open, count: Count) -> bool:
    """Whether the leader has won already: enough, and more than any other can still get."""
    if not count.votes:
        return False
    weight = weights(job)
    leader, *others = count.votes
    rest = [(), *(each.tasks for each in others)]  # those who are still to vote may agree on something new
    return enough(job.submitted.goal.join, count, leader) and all(
        _sum(weight, (*each, *count.open)) < leader.weight for each in rest
    )


def leads(rule: JoinRule, count: Count) -> bool:
    """Whether one answer has enough votes, and more than any other."""
    return bool(count.votes) and ruling(rule, count) == "vote"


def ruling(rule: JoinRule, count: Count) -> Ruling:
    """How a vote ends in which all have voted who will."""
    leader, *others = count.votes
    alone = not others or others[0].weight < leader.weight
    if enough(rule, count, leader):
        return "vote" if alone else "tie"
    return "no_quorum" if alone or rule.counting == "quorum" else "tie"


def enough(rule: JoinRule, count: Count, votes: Votes) -> bool:
    """Whether these votes are as many as the rule asks for."""
    if rule.counting == "quorum":
        return len(votes.tasks) >= (rule.quorum or 1)
    return votes.weight * 2 > count.all


def _sum(weight: Mapping[TaskId, float], tasks: Iterable[TaskId]) -> float:
    return fsum(weight[task] for task in tasks)
