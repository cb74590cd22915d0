"""What open jobs have in common is kept once in memory: of a hundred thousand that wait, most is the same."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from sys import intern
from types import MappingProxyType
from typing import Any, Final, TypeVar

from streams.core.goal import Budget, Hedging, JoinRule, Limits, TenantRules
from streams.core.states import FIRST, UNDECIDED, Open, Ready, SubTaskState
from streams.core.values import PLAN

T = TypeVar("T", bound=Hashable)

_USUAL: Final[Mapping[Any, Any]] = {
    usual: usual
    for usual in (FIRST, UNDECIDED, Budget(), Hedging(), JoinRule(), Limits(), Ready(), TenantRules())
}
_PLANNING: Final = MappingProxyType({PLAN: _USUAL[Ready()]})
_NO_PLAN: Final[Mapping[str, Any]] = MappingProxyType({})


def shared(job: Open) -> Open:
    """The same job, of parts that other jobs have as well."""
    submitted, states = job.submitted, job.states
    goal = replace(
        submitted.goal,
        tenant=intern(submitted.goal.tenant),
        budget=_one(submitted.goal.budget),
        limits=_one(submitted.goal.limits),
        join=_one(submitted.goal.join),
        hedge=_one(submitted.goal.hedge),
        rules=_one(submitted.goal.rules),
    )
    source = replace(submitted.source, topic=intern(submitted.source.topic))
    return replace(
        job,
        submitted=replace(submitted, goal=goal, source=source),
        nodes=job.nodes or _NO_PLAN,
        revision=_one(job.revision),
        decided=_one(job.decided),
        states=_PLANNING if states == _PLANNING else {task: _ready(state) for task, state in states.items()},
    )


def _ready(state: SubTaskState) -> SubTaskState:
    return _one(state) if isinstance(state, Ready) else state


def _one(part: T) -> T:
    """The usual one, where *part* is the same."""
    try:
        found: T = _USUAL.get(part, part)
    except TypeError:  # it holds a JSON Schema, which has no hash, and is not the usual one
        return part
    return found
