"""What a job's answer is made of: its value, whose results are in it, and what is missing."""

from collections.abc import Sequence

from streams.core.commands import Votes
from streams.core.reduction import frontier, leaves, lost
from streams.core.results import joined
from streams.core.room import alone
from streams.core.states import Open, Succeeded
from streams.core.values import ANSWER, TaskId, Value
from streams.core.verdicts import order
from streams.core.votes import Count, counted, groups, leads

ENOUGH = frozenset({"first", "quorum", "vote"})
"""Rules that are content with fewer results than there are sub-tasks: an answer by them is whole."""

CHECK: TaskId = "~check"
TIE: TaskId = "~tie"
JUDGE: TaskId = "~judge"


def succeeded(job: Open) -> list[TaskId]:
    """Sub-tasks that have their result, in the plan's order."""
    return [name for name in job.nodes if isinstance(job.states[name], Succeeded)]


def used(job: Open) -> Sequence[TaskId]:
    """Sub-tasks whose results are joined: before the join begins all that there are."""
    return job.decided.used or succeeded(job)


def ranked(job: Open) -> Sequence[TaskId]:
    """The candidates that are kept, the best first; as they come where no judge has ordered them."""
    candidates = used(job)
    return (order(job.states.get(JUDGE), candidates) or candidates)[: job.submitted.goal.join.keep]


def to_join(job: Open) -> list[TaskId]:
    """What the last step of the join is given: results, or steps that stand for them, in the plan's order."""
    if job.submitted.goal.join.strategy == "rank":
        return [*ranked(job)]
    return [name for name in frontier(job, sources(job)) if isinstance(job.states[name], Succeeded)]


def sources(job: Open) -> list[TaskId]:
    """The results that are joined, that of the sub-task which settled a contradiction among them."""
    settled = isinstance(job.states.get(TIE), Succeeded)
    return [*used(job), *([TIE] if settled else [])]


def given(job: Open) -> list[TaskId]:
    """What the last step of the join is told of: what it joins, and which sub-tasks have no result.

    A step of the tree that failed among them, whose sub-tasks have.
    """
    if job.submitted.goal.join.strategy == "rank":
        return to_join(job)
    without = [
        name
        for name in job.nodes
        if not isinstance(job.states[name], Succeeded) and name not in job.decided.replaced
    ]
    place = {name: node.ordinal for name, node in job.nodes.items()}
    told = frontier(job, sources(job))
    for name in told:
        place.setdefault(name, min(place.get(leaf, len(place) + 1) for leaf in leaves(job, name)))
    return sorted((*told, *without), key=place.__getitem__)


def may_be_the_answer(job: Open) -> bool:
    """Whether the result of a sub-task may be the answer as it is, so that it must keep to its schema."""
    join = job.submitted.goal.join
    match join.strategy:
        case "first" | "vote":
            return True
        case "rank":
            return join.keep == 1 or alone(job)
        case "synthesize":
            return alone(job)
        case _:
            return False


def shortfall(job: Open) -> str:
    """Why the answer is not all that it could be, for a person; empty where it is."""
    if without := lost(job):
        steps = ", ".join(dict.fromkeys(without.values()))
        return f"something of {', '.join(without)} is missing, since {steps} failed"
    ranks = JUDGE in job.steps and job.submitted.goal.join.strategy == "rank"
    if ranks and order(job.states.get(JUDGE), used(job)) is None:
        return "no judge has ordered the candidates: they stand in the plan's order"
    return ""


def the_answer(job: Open, rule: str) -> tuple[Value, Sequence[TaskId]]:
    """The answer of a job that ends by this rule with something, and the sub-tasks that it is made of."""
    join = job.submitted.goal.join
    if rule == "first":
        return _result(job, first := succeeded(job)[:1]), first
    if rule in {"tie", "no_quorum"}:
        leaders = [each.tasks[0] for each in job.decided.votes if rule != "tie" or _leads(job, each.weight)]
        return joined(job, leaders), leaders
    if rule == "vote" or (join.strategy == "vote" and leads(join, counted_so_far(job))):
        return _result(job, winners := votes(job)[0].tasks), winners
    if isinstance(last := job.states.get(ANSWER), Succeeded):
        made_of = dict.fromkeys(leaf for name in to_join(job) for leaf in leaves(job, name))
        return last.result, [name for name in made_of if name in job.nodes]
    if len(job.nodes) == 1:
        return _result(job, only := succeeded(job)), only
    if rule in {"all_done", "quorum"} and join.strategy == "rank" and join.keep == 1:
        return _result(job, best := ranked(job)), best
    out = {each.task for each in job.decided.duplicates}
    there = [name for name in succeeded(job) if name not in out]
    return joined(job, there), there


def counted_so_far(job: Open) -> Count:
    """The votes by their words, where no rule has decided yet."""
    exact = job.submitted.goal.join.equality == "exact"
    return counted(job, groups(job, by="exact" if exact else "normalised"))


def votes(job: Open) -> tuple[Votes, ...]:
    """How sub-agents voted, most votes first; so far, where the job ends before the vote."""
    if job.decided.votes or job.submitted.goal.join.strategy != "vote":
        return job.decided.votes
    return counted_so_far(job).votes


def cited(job: Open) -> tuple[TaskId, ...]:
    """The sub-tasks that the answer names as its sources; for a step of the tree those that it names."""
    state = job.states.get(ANSWER)
    if not isinstance(state, Succeeded):
        return ()
    given = {leaf for name in to_join(job) for leaf in leaves(job, name)}
    named = [leaf for name in state.cites for leaf in _through(job, name)]
    return tuple(dict.fromkeys(name for name in named if name in given))


def _through(job: Open, name: TaskId) -> list[TaskId]:
    state = job.states.get(name)
    step = job.steps.get(name)
    if step is None or step.role != "reduce" or not isinstance(state, Succeeded):
        return [name]
    below = [part.task for part in step.of]
    inner = [each for each in state.cites if each in below or each in leaves(job, name)]
    return [leaf for each in inner or below for leaf in (_through(job, each) if each in below else [each])]


def _leads(job: Open, weight: float) -> bool:
    return weight == job.decided.votes[0].weight


def _result(job: Open, tasks: Sequence[TaskId]) -> Value:
    state = job.states[tasks[0]]
    assert isinstance(state, Succeeded)
    return state.result
