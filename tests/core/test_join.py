"""Jobs driven to their end: whatever their attempts do, they finish, and as the join rule says."""

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings

from streams.core.commands import Answer
from streams.core.events import (
    AttemptOverdue,
    DeadlinePassed,
    Event,
    JobSubmitted,
    Planned,
    RetryDue,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
)
from streams.core.goal import Budget, JoinRule, Source, TenantRules
from streams.core.job import fold
from streams.core.plan import Plan
from streams.core.release import places, release
from streams.core.states import Backoff, Finished, Job, New, Open, Released, Running
from streams.core.values import NO_USAGE, PLAN, Inline, TaskId, Usage
from tests.core.histories import JOB, START, Choices, a_goal, a_plan, choices
from tests.core.join_model import Ended, verdict

MINUTE = 60_000


@dataclass(kw_only=True)
class Drive:
    """Plays lanes, pacing and timers for one job, and remembers how each attempt ended."""

    choices: Choices
    plan: Plan
    job: Job = field(default_factory=New)
    at: int = START
    events: int = 0
    ended: list[Ended] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)

    def see(self, event: Event) -> None:
        """Fold the event, a minute later than the one before."""
        self.at += MINUTE
        self.events += 1
        self.job, effects = fold(self.job, replace(event, at=self.at, offset=self.events))
        self.answers += [effect for effect in effects if isinstance(effect, Answer)]

    def step(self, job: Open) -> None:
        """Let something go, or let something that is out move on."""
        free = places(job)
        out = [(t, s) for t, s in job.states.items() if isinstance(s, Released | Running | Backoff)]
        assert free > 0 or out, f"stuck: {job.states}"
        if free > 0 and (not out or self.choices.below(2)):
            self.job, _ = release(job, 1 + self.choices.below(free), self.at)
            return
        task, state = self.choices.of(out)
        if isinstance(state, Backoff):
            self.see(RetryDue(job=JOB, task=task, attempt=state.attempt))
        elif isinstance(state, Released) and self.choices.below(3):
            self.see(SubTaskStarted(job=JOB, task=task, attempt=state.attempt, run="r"))
        else:
            self.end(task, state.attempt)

    def granted(self, task: TaskId) -> int:
        """Tokens that the sub-task's present attempt may spend; 0 where there is no limit."""
        assert isinstance(self.job, Open)
        grant = getattr(self.job.states[task], "grant", None)
        return (grant.tokens or 0) if grant else 0

    def end(self, task: TaskId, attempt: int) -> None:
        """One attempt succeeds, fails, or is never heard of again."""
        tokens, wait = self.choices.below(40), self.choices.of((0.0, 3.0))
        usage = Usage(tokens_out=tokens) if tokens else NO_USAGE
        name: dict[str, Any] = {"job": JOB, "task": task, "attempt": attempt}
        fate = self.choices.below(8)
        final = fate == 6
        if fate < 5 and task == PLAN:
            self.see(Planned(**name, plan=self.plan, usage=usage))
        elif fate < 5:
            self.see(SubTaskSucceeded(**name, result=Inline(value=task), size=9, usage=usage))
        elif fate < 7:
            self.see(
                SubTaskFailed(**name, kind="refused", reason="no", final=final, retry_in=wait, usage=usage)
            )
        else:
            tokens = self.granted(task)  # nobody tells what it cost
            self.see(AttemptOverdue(**name, retry_in=wait))
        self.ended.append(Ended(task=task, attempt=attempt, good=fate < 5, final=final, tokens=tokens))


def as_usual(rule: JoinRule) -> JoinRule:
    """The rule without what other laws are about."""
    return JoinRule(min_success_ratio=rule.min_success_ratio, fail_fast_ratio=rule.fail_fast_ratio)


@settings(max_examples=300)
@given(choices(400))
def test_every_job_ends_as_the_join_rule_says(made: Choices) -> None:
    """No mix of successes, failures and timeouts leaves a job stuck, or with another outcome."""
    goal = replace(a_goal(made), deadline_s=made.of((None, None, 600.0)))
    goal = replace(goal, budget=Budget(tokens=goal.budget.tokens), join=as_usual(goal.join))
    goal = replace(goal, rules=TenantRules(), approve=(), gate=False)
    goal = replace(goal, grow=False, on_failure="go_on")
    drive = Drive(choices=made, plan=a_plan(made))
    brought = made.below(4) == 3
    source = Source(topic="goals", partition=0, offset=0)
    drive.see(JobSubmitted(job=JOB, goal=goal, source=source, plan=drive.plan if brought else ()))
    deadline = START + MINUTE + 600_000 if goal.deadline_s else None
    late = False
    most = 4 * goal.limits.max_attempts * (len(drive.plan) + 2)  # release, start, end, retry
    while isinstance(drive.job, Open):
        most -= 1
        assert most >= 0, "more steps than its attempts have"
        if deadline is not None and drive.at >= deadline:
            late = True
            drive.see(DeadlinePassed(job=JOB))
        else:
            drive.step(drive.job)
    assert isinstance(drive.job, Finished)
    (answer,) = drive.answers
    should = verdict(goal, drive.plan, drive.ended, brought=brought, deadline=late)
    assert should is not None
    assert (answer.outcome, answer.rule) == (should.outcome, should.rule)
    told = {
        outcome: {report.task for report in answer.subtasks if report.outcome == outcome}
        for outcome in ("succeeded", "failed", "skipped")
    }
    assert told == {"succeeded": should.succeeded, "failed": should.failed, "skipped": should.skipped}
    earlier = verdict(goal, drive.plan, drive.ended[:-1], brought=brought)
    assert earlier is None, "it should have ended earlier"
    assert answer.usage.tokens == sum(ended.tokens for ended in drive.ended)
