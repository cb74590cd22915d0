"""A plan that never stops growing stops at its caps: sub-tasks, budget, and its tenant's day."""

from dataclasses import replace

import pytest

from streams.core.commands import Answer, Effect, Tell
from streams.core.events import BUDGET, Event, JobSubmitted, SubTaskFailed, SubTaskSucceeded
from streams.core.goal import Budget, Goal, Limits, Source, TenantRules
from streams.core.job import fold
from streams.core.plan import SubTask
from streams.core.release import places, release
from streams.core.states import Job, New, Open
from streams.core.telling import account_of
from streams.core.values import ANSWER, Grant, Inline, Usage
from tests.core.histories import JOB, START

KEY = account_of(JOB)
FIRST = (SubTask(id="t0", goal="find more"),)
MOST = 100_000


@pytest.mark.parametrize(
    ("limits", "budget", "day", "rule", "sub_tasks", "calls"),
    [
        (Limits(max_subtasks=12), Budget(), None, "all_done", 12, 25),
        (Limits(), Budget(calls=20), None, "budget", 100, 20),
        (Limits(), Budget(), Grant(calls=30), "tenant_budget", 100, 30),
    ],
)
def test_proposals_without_end_stop_at_the_caps(
    limits: Limits, budget: Budget, day: Grant | None, rule: str, sub_tasks: int, calls: int
) -> None:
    """Each result proposes five sub-tasks more; there is one answer, and it says what ended the job."""
    goal = Goal(text=Inline(value="x"), grow=True, limits=limits, budget=budget, rules=TenantRules(day=day))
    source = Source(topic="goals", partition=0, offset=0)
    jobs: dict[str, Job] = {JOB: New(), KEY: New()}
    queue: list[Event] = [JobSubmitted(job=JOB, goal=goal, source=source, plan=FIRST)]
    answers: list[Answer] = []
    made = at = 0
    while queue:
        at += 1
        assert at < MOST, "it runs for ever"
        event = replace(queue.pop(0), at=START + at, offset=at)
        jobs[event.job], effects = fold(jobs[event.job], event)
        queue += told(effects)
        answers += [effect for effect in effects if isinstance(effect, Answer)]
        job = jobs[JOB]
        if not isinstance(job, Open):
            continue
        assert len(job.nodes) <= sub_tasks
        jobs[JOB], commands = release(job, places(job), START + at)
        for order in commands:
            if order.grant is not None and order.grant.calls == 0:
                reason = "no call is granted"
                failed = SubTaskFailed(
                    job=JOB, task=order.task, attempt=order.attempt, kind=BUDGET, reason=reason, final=True
                )
                queue.append(failed)
                continue
            made += 1
            further = tuple(
                SubTask(id=f"{order.task}-{n}", goal="find more", parent=order.task) for n in range(1, 6)
            )
            queue.append(
                SubTaskSucceeded(
                    job=JOB,
                    task=order.task,
                    attempt=order.attempt,
                    result=Inline(value=1),
                    size=1,
                    usage=Usage(calls=1, tokens_in=10),
                    proposed=() if order.task == ANSWER else further,
                )
            )
    (answer,) = answers
    assert (answer.rule, len(answer.subtasks) <= sub_tasks) == (rule, True)
    assert made <= calls
    assert answer.usage.calls == made
    assert (answer.outcome == "succeeded") == (rule == "all_done")


def told(effects: tuple[Effect, ...]) -> list[Event]:
    """What is told to others."""
    return [effect.event for effect in effects if isinstance(effect, Tell)]
