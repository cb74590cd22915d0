"""Growing plans: what a sub-agent proposed beside its result becomes part of the plan, whole or not at all.

Proposals pass the rules of every plan (:mod:`streams.core.admission`), and some of their own: their ids are
``parent-1``, ``parent-2``, ... in order and new to the job, they depend on each other and on what has
succeeded, and the plan with them stays below the goal's cap and the size of a record. What is refused is
told by the answer; the proposer's success stays. Whoever waits for the proposer waits for them, too, so that
a sub-task which puts a list's results together sees all of them.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from streams.core.admission import MAX_PLAN_BYTES, MAX_REASONS, bounded, problems, size_of
from streams.core.events import SubTaskSucceeded
from streams.core.moves import first, put
from streams.core.opening import nodes_of
from streams.core.plan import Plan, SubTask
from streams.core.room import free
from streams.core.states import (
    Backoff,
    Hedged,
    Open,
    Ready,
    Released,
    Running,
    SubTaskState,
    Succeeded,
    Suspended,
    Waiting,
)
from streams.core.values import TaskId

WHY_CHARACTERS: Final = 1_000
"""Characters of a refusal: they stand in the job's row, and in its answer."""

STILL_OPEN: Final = (Ready, Backoff, Released, Running, Suspended, Hedged)
"""The states of a sub-task whose hedge may still bring its result."""


def grow(job: Open, event: SubTaskSucceeded) -> Open:
    """The job with what a success proposes, before that success is counted."""
    if not event.proposed:
        return job
    parent = proposer(job, event.task)
    if parent != event.task and not isinstance(job.states.get(parent), STILL_OPEN):
        return job  # the hedge came second
    if wrong := _faults(job, parent, event.proposed):
        return refuse(job, f"{event.task}: {'; '.join(wrong)}")
    return _grown(job, parent, event.proposed)


def proposer(job: Open, task: TaskId) -> TaskId:
    """The sub-task of the plan for which an attempt proposes: a hedge works for another one."""
    step = job.steps.get(task)
    return step.of[0].task if step is not None and step.role == "hedge" else task


def refuse(job: Open, why: str) -> Open:
    """The job with a refusal that its answer tells: :data:`MAX_REASONS` of them, and that there are more."""
    told, shown = job.decided.refused, why[:WHY_CHARACTERS]
    if shown in told or len(told) > MAX_REASONS:
        return job
    if len(told) == MAX_REASONS:
        shown = "and more"
    return replace(job, decided=replace(job.decided, refused=(*told, shown)))


def added(job: Open, tasks: Plan) -> dict[TaskId, SubTaskState]:
    """The first states of sub-tasks that come to a plan."""
    states: dict[TaskId, SubTaskState] = {}
    for task in tasks:
        missing = sum(not isinstance(job.states.get(dep), Succeeded) for dep in set(task.dep))
        states[task.id] = Waiting(missing=missing) if missing else first(job, task.id)
    return states


def there(job: Open) -> frozenset[TaskId]:
    """Sub-tasks that further ones may depend on: they have their result."""
    return frozenset(name for name in job.nodes if isinstance(job.states[name], Succeeded))


def _faults(job: Open, parent: TaskId, proposed: Plan) -> tuple[str, ...]:
    """Why these cannot become part of the plan."""
    goal = job.submitted.goal
    if parent not in job.nodes or not goal.grow:
        return ("its plan may not grow",)
    wrong = [*problems(proposed, max_subtasks=free(job), known=there(job), taken=job.nodes.keys())]
    for number, task in enumerate(proposed, 1):
        wrong += _own_faults(job, parent, task, number)
    whole = size_of([*(node.task for node in job.nodes.values()), *proposed])
    if whole > MAX_PLAN_BYTES:
        wrong.append(f"the plan would have {whole} bytes, at most {MAX_PLAN_BYTES}")
    return bounded(wrong)


def _own_faults(job: Open, parent: TaskId, task: SubTask, number: int) -> Iterator[str]:
    if task.id != f"{parent}-{number}":
        yield f"the id of proposal {number} must be {parent}-{number}"
    if task.parent != parent:
        yield f"{task.id} must name {parent} as its parent"
    if not task.goal.strip() and task.tool not in job.submitted.goal.tools:
        yield f"{task.id} calls a tool that the goal does not allow"
    if task.notes and not job.nodes[parent].task.notes:
        yield f"{task.id} may not share notes, since {parent} may not"


def _grown(job: Open, parent: TaskId, proposed: Plan) -> Open:
    """The job with these in its plan; whoever waits for their parent waits for all of them."""
    more = tuple(task.id for task in proposed)
    waiting = {
        name: state for name in job.nodes[parent].dependants if isinstance(state := job.states[name], Waiting)
    }
    plan = [
        replace(node.task, dep=(*node.task.dep, *more)) if name in waiting else node.task
        for name, node in job.nodes.items()
    ]
    states = added(job, proposed)
    for name, state in waiting.items():
        states[name] = Waiting(missing=state.missing + len(more))
    return put(replace(job, nodes=nodes_of((*plan, *proposed))), states)
