"""Opening a job's sub-tasks: those of a new plan, and those of a job that goes on."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from streams.core.admission import dependants
from streams.core.events import JobReopened
from streams.core.holding import hold_plan
from streams.core.plan import Plan
from streams.core.states import (
    UNDECIDED,
    Node,
    Open,
    Ready,
    Released,
    Revision,
    SubTaskState,
    Succeeded,
    Waiting,
)
from streams.core.values import ANSWER, PLAN, TaskId


def nodes_of(plan: Plan) -> dict[TaskId, Node]:
    """The nodes of an admitted plan, in its order."""
    waiting_on_me = dependants(plan)
    return {
        task.id: Node(task=task, ordinal=place, dependants=waiting_on_me.get(task.id, ()))
        for place, task in enumerate(plan, 1)
    }


def reopened(event: JobReopened) -> Open:
    """The job as *event* brings it: what succeeded stays, all else is as if it had never run.

    A redriven command is out already; any other sub-task begins with the attempt after its last one. What a
    person approved before is asked for again.
    """
    nodes = nodes_of(event.plan)
    revision = Revision(number=event.revision, opened_at=event.at, tried=event.tried)
    states: dict[TaskId, SubTaskState] = {
        kept.task: Succeeded(
            attempt=kept.attempt,
            result=kept.result,
            size=kept.size,
            offset=kept.offset,
            fingerprint=kept.fingerprint,
        )
        for kept in event.kept
        if kept.task in nodes
    }
    succeeded = len(states)

    def begun(task: TaskId) -> SubTaskState:
        before = revision.before(task)
        if before and task in event.redriven:
            return Released(attempt=before, at=event.at)
        return Ready(attempt=before + 1)

    for task, node in nodes.items():
        if task not in states:
            missing = sum(not isinstance(states.get(dep), Succeeded) for dep in set(node.task.dep))
            states[task] = Waiting(missing=missing) if missing else begun(task)
    if not nodes:
        states[PLAN] = begun(PLAN)
    elif succeeded == len(nodes) and ANSWER in event.redriven:
        states[ANSWER] = begun(ANSWER)
    again = Open(
        submitted=event.submitted,
        nodes=nodes,
        states=ordered(states, nodes),
        ready=tuple(task for task in (*nodes, PLAN) if isinstance(states.get(task), Ready)),
        outstanding=sum(isinstance(state, Released) for state in states.values()),
        succeeded=succeeded,
        usage=event.spent,
        revision=revision,
        decided=replace(UNDECIDED, heard=event.heard),
    )
    return hold_plan(again, event.at) if nodes else again


def ordered(states: Mapping[TaskId, SubTaskState], nodes: Iterable[TaskId]) -> dict[TaskId, SubTaskState]:
    """The states in the plan's order, which those of ``plan`` and ``answer`` follow."""
    return {task: states[task] for task in (*nodes, PLAN, ANSWER) if task in states}
