"""Replanning: a planner is asked again once a plan has come to its end and a sub-task of it failed for good.

Where the goal says so (``on_failure: replan``), and at most ``limits.max_replans`` times: the step
``~replan-N`` is told why the plan failed and what is known, and its plan adds sub-tasks to the job. Those
that failed, and those that were skipped for that, are *replaced*: the rules count them no more. A planner
that fails or whose plan is refused changes nothing: the job goes on as if it had not been asked. Candidates
and voters are no plan of a planner's, and are never replanned.
"""

from dataclasses import replace
from typing import Final

from streams.core.admission import MAX_PLAN_BYTES, bounded, problems, size_of
from streams.core.events import Planned
from streams.core.growing import added, refuse, there
from streams.core.moves import put
from streams.core.opening import nodes_of
from streams.core.plan import Plan
from streams.core.room import ended, free
from streams.core.states import Failed, Open, Skipped, Stopped, Succeeded
from streams.core.stepping import begin, step_id
from streams.core.values import ANSWER, Inline, TaskId

SHOWN: Final = 20
"""Failures that the planner is told; more of them say nothing that these do not."""

SHOWN_CHARACTERS: Final = 300


def replans(job: Open) -> list[TaskId]:
    """The steps by which a planner was asked again."""
    return [name for name, step in job.steps.items() if step.role == "replan"]


def is_replan(job: Open, task: TaskId) -> bool:
    """Whether this step asks a planner again."""
    return task in job.steps and job.steps[task].role == "replan"


def asked(job: Open) -> bool:
    """Whether a planner has been asked again, and has not answered yet."""
    return any(not ended(job, name) for name in replans(job))


def due(job: Open) -> bool:
    """Whether a planner is to be asked again, now that all sub-tasks have ended.

    One that failed to make a plan would not do better the next time.
    """
    goal = job.submitted.goal
    return (
        goal.on_failure == "replan"
        and job.decided.replans < goal.limits.max_replans
        and not job.decided.rule
        and ANSWER not in job.states
        and goal.join.candidates is None
        and goal.join.strategy != "vote"
        and free(job) > 0
        and any(isinstance(job.states[name], Failed) for name in standing(job))
        and not any(isinstance(job.states[name], Failed) for name in replans(job))
    )


def ask(job: Open) -> Open:
    """The job with a further planner, which is ready."""
    number = job.decided.replans + 1
    job = replace(job, decided=replace(job.decided, replans=number))
    return begin(job, step_id("replan", number), "replan")


def taken(job: Open, event: Planned) -> Open:
    """The job with the plan of a planner that was asked again, or with the reasons why it is refused."""
    if wrong := _faults(job, event.plan):
        reason = "; ".join(wrong)
        failed = Failed(attempt=event.attempt, kind="no_plan", reason=reason)
        return refuse(put(job, {event.task: failed}), f"{event.task}: {reason}")
    old = tuple(name for name in standing(job) if isinstance(job.states[name], Failed | Skipped | Stopped))
    plan = tuple(node.task for node in job.nodes.values())
    names = [task.id for task in event.plan]
    done = Succeeded(attempt=event.attempt, result=Inline(value=names), size=0, offset=event.offset)
    states = {event.task: done, **added(job, event.plan)}
    decided = replace(job.decided, replaced=(*job.decided.replaced, *old))
    return put(replace(job, nodes=nodes_of((*plan, *event.plan)), decided=decided), states)


def in_vain(job: Open, step: TaskId) -> Open:
    """The job when a planner that was asked again has failed, which its answer tells."""
    state = job.states[step]
    return refuse(job, f"{step}: {state.kind}: {state.reason}") if isinstance(state, Failed) else job


def standing(job: Open) -> list[TaskId]:
    """The sub-tasks that no other plan has taken the place of."""
    replaced = frozenset(job.decided.replaced)
    return [name for name in job.nodes if name not in replaced]


def failure(job: Open) -> str:
    """Why the plan so far did not come to its end, for a planner."""
    failed = [
        f"{name}: {state.kind}: {state.reason[:SHOWN_CHARACTERS]}"
        for name in standing(job)
        if isinstance(state := job.states[name], Failed)
    ]
    more = [f"and {len(failed) - SHOWN} more"] if len(failed) > SHOWN else []
    return "; ".join([*failed[:SHOWN], *more])


def _faults(job: Open, plan: Plan) -> tuple[str, ...]:
    wrong = [*problems(plan, max_subtasks=free(job), known=there(job), taken=job.nodes.keys())]
    whole = size_of([*(node.task for node in job.nodes.values()), *plan])
    if whole > MAX_PLAN_BYTES:
        wrong.append(f"the plan would have {whole} bytes, at most {MAX_PLAN_BYTES}")
    return bounded(wrong)
