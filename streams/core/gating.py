"""The gate: a model looks at a goal before anything else is done for it, and may refuse it.

It fails closed. A goal is let in by a verdict that says so and by nothing else: one that was refused ends
``rejected``, and one that nobody could look at ``failed``, both by the rule ``gate`` and with the reason.
"""

from collections.abc import Mapping
from dataclasses import replace

from streams.core.beginning import begin
from streams.core.commands import Judge, TaskResult
from streams.core.ending import Folded, finish
from streams.core.events import JobReopened, SubTaskEvent, SubTaskSucceeded
from streams.core.seconds import seconds_of
from streams.core.states import NO_STEPS, Failed, Open, Ready, Revision
from streams.core.stepping import begin as begin_step
from streams.core.stepping import step_id
from streams.core.values import Inline, TaskId

GATE = step_id("gate")

REASON_CHARS = 1_000
"""Characters that the answer keeps of the reason."""


def ask(job: Open) -> Open:
    """The job with the question whether its goal is let in; it has nothing else yet."""
    return begin_step(job, GATE, "gate")


def again(event: JobReopened) -> Open | None:
    """The job opened again at the gate, where it came no further before; else None."""
    if not event.submitted.goal.gate or event.kept or any(each.task != GATE for each in event.tried):
        return None
    return ask(
        Open(
            submitted=replace(event.submitted, plan=event.plan),
            nodes={},
            states={},
            usage=event.spent,
            revision=Revision(number=event.revision, opened_at=event.at, tried=event.tried),
        )
    )


def gate_command(job: Open, task: TaskId, state: Ready) -> Judge:
    """The question, with the sub-tasks of a plan that the goal brings: they are its words, too.

    The model is the one configured for judges, since the goal is not to choose who judges it.
    """
    goal = job.submitted.goal
    return Judge(
        job=job.submitted.job,
        task=task,
        attempt=state.attempt,
        ordinal=job.steps[task].ordinal,
        timeout_s=seconds_of(job, task),
        asks="gate",
        text=goal.text,
        results=tuple(
            TaskResult(task=each.id, goal=each.goal, outcome="unfinished") for each in job.submitted.plan
        ),
        priority=goal.priority,
        grant=state.grant,
        weight=goal.rules.weight,
    )


def succeeded(job: Open, event: SubTaskSucceeded) -> Folded:
    """There is a verdict."""
    said = event.result.value if isinstance(event.result, Inline) else None
    allow = said.get("allow") if isinstance(said, Mapping) else None
    if allow is True:
        return begin(replace(job, steps=NO_STEPS, states={}, ready=(), outstanding=0), event)
    if allow is not False:
        return _closed(job, event, "its verdict is none")
    why = said.get("reason") if isinstance(said, Mapping) else None
    reason = why[:REASON_CHARS] if isinstance(why, str) and why.strip() else "the gate refused the goal"
    return finish(job, event, rule="gate", reason=reason, outcome="rejected")


def failed(job: Open, event: SubTaskEvent) -> Folded:
    """No attempt brought a verdict."""
    state = job.states[event.task]
    return _closed(job, event, state.reason if isinstance(state, Failed) else "it failed")


def _closed(job: Open, event: SubTaskEvent, why: str) -> Folded:
    reason = f"the gate could not look at the goal, so that it is not let in: {why}"[:REASON_CHARS]
    return finish(job, event, rule="gate", reason=reason, outcome="failed")
