"""Hedging: a second attempt beside a slow one; the first success wins, and the other one is stopped.

The hedge of a sub-task is a step of its own, with one attempt. It runs on another lane where there are
several, and asks the next model of the chain. A sub-task is hedged once, and no more of a job's sub-tasks are
than its goal's share says.
"""

from dataclasses import replace
from math import ceil

from streams.core.commands import Effect, Part
from streams.core.ending import Folded, begun
from streams.core.events import HedgeDue, SubTaskEvent, SubTaskSucceeded
from streams.core.granting import fund
from streams.core.money import charge, charged, lose, over_budget
from streams.core.moves import fail_for_good, succeed
from streams.core.settling import settle
from streams.core.states import (
    Backoff,
    Failed,
    Hedged,
    Node,
    Open,
    Ready,
    Released,
    Running,
    Step,
    Succeeded,
    Suspended,
)
from streams.core.stepping import begin, step_id
from streams.core.stopping import leave, stops
from streams.core.telling import orphaned
from streams.core.values import TaskId

UNDER_WAY = (Ready, Released, Running, Suspended)
"""The states of a hedge that may still bring a result."""

LOST = "another attempt had the result first"

NEARLY = 1e-9
"""A share of a hundred sub-tasks is not one more because no float is exactly 0.07."""


def hedge(job: Open, event: HedgeDue) -> Folded:
    """Begin a second attempt beside one that runs longer than nearly all others of its kind.

    A job that cannot grant it anything now goes on without: the timer comes again.
    """
    state = job.states.get(event.task)
    if not isinstance(state, Running) or state.attempt != event.attempt or not may_hedge(job, event.task):
        return job, ()
    after_ms = max(event.after_ms, floor_ms(job, job.nodes[event.task]))
    if event.at < state.since + after_ms:
        return job, ()
    begun_too = _begin(job, job.nodes[event.task], state)
    if charged(begun_too):
        begun_too = fund(begun_too)
        state_of_it = begun_too.states[hedge_id(job.nodes[event.task])]
        if isinstance(state_of_it, Ready) and state_of_it.grant is None:
            return job, ()
    return begun_too, ()


def may_hedge(job: Open, task: TaskId) -> bool:
    """Whether the rules of a job let a sub-task be hedged, as long as it runs.

    Those that read and write shared notes are not: what both wrote would count. Nor are those whose calls
    a person approves: both attempts would ask for the same one, and what is approved twice is done twice.
    """
    node, goal = job.nodes.get(task), job.submitted.goal
    if node is None or goal.hedge.share <= 0 or node.task.notes or task in job.decided.hedged:
        return False
    if "tools" in goal.approve and (goal.tools or node.task.tool is not None):
        return False
    if hedge_id(node) in job.states:
        return False  # of a sub-task of an earlier plan: no two attempts have one name
    if room(job) <= 0 or not isinstance(job.states.get(task), Running):
        return False
    return job.decided.hold is None and not over_budget(job)


def room(job: Open) -> int:
    """How many more of a job's sub-tasks its share of hedges allows."""
    return ceil(job.submitted.goal.hedge.share * len(job.nodes) - NEARLY) - len(job.decided.hedged)


def floor_ms(job: Open, node: Node) -> int:
    """Milliseconds that an attempt of a sub-task has at least before it is hedged."""
    rule = job.submitted.goal.hedge
    return int((rule.tool_s if is_direct(node) else rule.floor_s) * 1000)


def is_direct(node: Node) -> bool:
    """Whether a sub-task calls a tool and no model."""
    return node.task.tool is not None and not node.task.goal


def hedge_id(node: Node) -> TaskId:
    """The id of the hedge of a sub-task."""
    return step_id("hedge", node.ordinal)


def _begin(job: Open, node: Node, state: Running) -> Open:
    name, task = hedge_id(node), node.task.id
    job = begin(job, name, "hedge", (Part(task=task),))
    step, first = job.steps[name], job.states[name]
    assert isinstance(first, Ready)
    ordinal = step.ordinal
    if (ordinal + first.attempt - node.ordinal - state.attempt) % job.submitted.lanes == 0:
        ordinal += 1  # another lane, where there is one
    step = replace(step, ordinal=ordinal, beside=state.attempt)
    decided = replace(job.decided, hedged=(*job.decided.hedged, task))
    return replace(job, steps={**job.steps, name: step}, decided=decided)


def hedged_by(job: Open, task: TaskId) -> TaskId | None:
    """The hedge of a sub-task that may still bring a result, or None."""
    if task not in job.decided.hedged or (node := job.nodes.get(task)) is None:
        return None
    name = hedge_id(node)
    return name if isinstance(job.states.get(name), UNDER_WAY) else None


def is_hedge(job: Open, task: TaskId) -> bool:
    """Whether this is the hedge of a sub-task."""
    step = job.steps.get(task)
    return step is not None and step.role == "hedge"


def settle_first(job: Open, event: SubTaskSucceeded) -> Folded:
    """A sub-task has succeeded by itself: its hedge, if any, is stopped."""
    name = hedged_by(job, event.task)
    if name is None:
        return settle(job, event)
    job, stopped = leave(job, LOST, (name,))
    after, effects = settle(job, event)
    return after, (*stopped, *effects)


def won(job: Open, event: SubTaskSucceeded) -> Folded:
    """A hedge has succeeded: its result is that of its sub-task, whose own attempt is stopped."""
    task = _of(job.steps[event.task])
    mine, state = job.states[event.task], job.states.get(task)
    if task not in job.nodes or not isinstance(mine, Succeeded):
        return job, ()
    if not isinstance(state, Ready | Backoff | Released | Running | Suspended | Hedged):
        return job, ()
    stopped: tuple[Effect, ...] = (
        *stops(job, LOST, (task,)),
        *orphaned(job, state, f"goes on without it: {LOST}"),
    )
    match state:
        case Suspended(so_far=so_far):
            job = charge(job, task, so_far)  # it will tell nothing more
        case Ready() | Released() | Running():
            job = lose(job, task, state)
        case _:
            pass  # nothing of it is out
    # One that is ready may be out: a lane may tell of it yet.
    newest = begun(state) if isinstance(state, Backoff) else state.attempt
    job = succeed(job, task, replace(mine, attempt=newest))
    after, effects = settle(job, event)
    return after, (*stopped, *effects)


def failed(job: Open, event: SubTaskEvent) -> Folded:
    """A hedge has failed: its sub-task goes on, or had failed before and does so for good now."""
    task = _of(job.steps[event.task])
    match job.states.get(task):
        case Hedged(attempt=attempt, kind=kind, reason=reason) if task in job.nodes:
            return settle(fail_for_good(job, task, Failed(attempt=attempt, kind=kind, reason=reason)), event)
        case _:
            return job, ()


def _of(step: Step) -> TaskId:
    return step.of[0].task
