"""A job between its plan and its join: sub-tasks open, end, and the rules of its goal decide what follows."""

from collections.abc import Sequence
from dataclasses import replace

from streams.core import replanning
from streams.core.admission import problems
from streams.core.commands import Effect
from streams.core.ending import Folded, finish
from streams.core.events import Event
from streams.core.goal import WITHOUT_A_MODEL
from streams.core.holding import hold_plan
from streams.core.joining import join, voted
from streams.core.money import over_budget
from streams.core.opening import nodes_of
from streams.core.plan import Plan
from streams.core.room import alone, tally
from streams.core.states import Open, Ready, SubTaskState, Waiting
from streams.core.stopping import leave
from streams.core.values import TaskId
from streams.core.votes import counted, early, groups

SINGLE = frozenset({"synthesize", "first", "rank"})
"""Strategies by which the result of a plan's only sub-task is the answer as it is."""


def take_plan(job: Open, event: Event, plan: Plan) -> Folded:
    """Open the plan's sub-tasks; a plan that breaks the rules fails the job with the reasons."""
    if wrong := problems(plan, max_subtasks=job.submitted.goal.limits.max_subtasks):
        return finish(job, event, rule="planning", reason="; ".join(wrong), failed=True)
    states: dict[TaskId, SubTaskState] = {
        task.id: Waiting(missing=len(set(task.dep))) if task.dep else Ready() for task in plan
    }
    ready = tuple(task.id for task in plan if not task.dep)
    planned = replace(job, nodes=nodes_of(plan), states=states, ready=ready, outstanding=0)
    return settle(hold_plan(planned, event.at), event)


def settle(job: Open, event: Event) -> Folded:
    """After a sub-task ended: end the job, begin the join, or go on.

    A plan of one sub-task that succeeded leaves nothing to join: its result is the answer, as it is
    (a claim check stays one), and no model is asked to say it again. Its budget is not asked either,
    since nothing is left to spend it on.
    """
    rule = job.submitted.goal.join
    if rule.strategy == "first" and job.succeeded:
        return finish(job, event, rule="first")
    if rule.strategy == "vote" and (said := won(job)):
        return finish(voted(job, said), event, rule="vote")
    stopped: tuple[Effect, ...] = ()
    if job.succeeded < tally(job).total and not job.decided.rule and enough(job):
        reason = f"{job.succeeded} results are enough"
        job, stopped = leave(job, reason)
        job = replace(job, decided=replace(job.decided, rule="quorum", reason=reason))
    after, effects = join_or_wait(job, event)
    return after, (*stopped, *effects)


def join_or_wait(job: Open, event: Event) -> Folded:
    """End the job, begin the join, or wait for those that have not ended."""
    rule, counted_now = job.submitted.goal.join, tally(job)
    failed, total = counted_now.failed, counted_now.total
    if job.ended < len(job.nodes):
        if failed / total > rule.fail_fast_ratio:
            share = f"{rule.fail_fast_ratio:g}"
            reason = f"{failed} of {total} sub-tasks failed, more than the share of {share}"
            return finish(job, event, rule="fail_fast", reason=reason)
        if spent := over_budget(job):
            return finish(job, event, rule="budget", reason=spent)
        return job, ()
    if replanning.asked(job):
        return job, ()
    if replanning.due(job) and not over_budget(job):
        return replanning.ask(job), ()
    few = not job.decided.rule and job.succeeded / total < rule.min_success_ratio
    if job.succeeded == 0 or few:
        reason = f"{job.succeeded} of {total} sub-tasks succeeded"
        return finish(job, event, rule="all_done", reason=reason)
    if alone(job) and rule.strategy in SINGLE:
        return finish(job, event, rule="all_done")
    if not free_of_charge(job) and (spent := over_budget(job)):
        return finish(job, event, rule="budget", reason=spent)
    return join(job, event)


def free_of_charge(job: Open) -> bool:
    """Whether no model is needed any more, so that a spent budget ends nothing."""
    rule = job.submitted.goal.join
    if rule.strategy == "vote":
        return rule.equality != "judged"
    return rule.strategy in WITHOUT_A_MODEL and not rule.check


def enough(job: Open) -> bool:
    """Whether so many sub-tasks have succeeded that the rest need not."""
    rule = job.submitted.goal.join
    return rule.strategy != "vote" and rule.quorum is not None and job.succeeded >= rule.quorum


def won(job: Open) -> Sequence[Sequence[TaskId]]:
    """Who said the same, once somebody has won the vote whatever the others say; else nothing.

    What a judge is to compare is compared when all have voted.
    """
    equality = job.submitted.goal.join.equality
    if equality == "judged" or not job.succeeded:
        return ()
    said = groups(job, by=equality)
    return said if early(job, counted(job, said)) else ()
