"""Stories of money: what an account gives a tenant's jobs, and what becomes of a job that gets no more."""

from dataclasses import replace

from streams.core.events import MoneyAsked, MoneyGiven, PlaceAsked, PlaceGiven, PlaceReturned
from streams.core.goal import Budget, Goal, TenantRules
from streams.core.plan import SubTask
from streams.core.telling import account_of
from streams.core.values import Grant, Inline, Usage
from tests.core.telling import JOB, START, Story

KEY = account_of(JOB)
DAY = Grant(calls=20)


def goal(rules: TenantRules, budget: Budget = Budget()) -> Goal:  # noqa: B008 - frozen
    """A goal of a tenant with limits."""
    return Goal(text=Inline(value="How many boats?"), digest="aa", rules=rules, budget=budget)


def plan(*names: str) -> tuple[SubTask, ...]:
    """Sub-tasks that need nothing of each other."""
    return tuple(SubTask(id=name, goal=f"count {name}") for name in names)


def once(calls: int = 1) -> Usage:
    """What an attempt cost."""
    return Usage(calls=calls, tokens_in=100, tokens_out=10)


def tenant_account(story: Story) -> None:
    """One job of the tenant at a time: by priority, each with a lease of the day, returned at its end."""
    asked = PlaceAsked(job=KEY, of="acme/a", since=START, jobs=1, day=DAY)
    story.see(asked)
    story.see(replace(asked, of="acme/b", since=START + 1))
    story.see(replace(asked, of="acme/urgent", since=START + 2, priority=9))
    story.see(asked)
    story.see(MoneyAsked(job=KEY, of="acme/a", revision=1, n=2, want=Grant(calls=12)))
    story.see(MoneyAsked(job=KEY, of="acme/a", revision=1, n=2, want=Grant(calls=12)))
    returned = PlaceReturned(job=KEY, of="acme/a", revision=1, spent=once(9))
    story.see(returned)
    story.see(returned)
    story.see(MoneyAsked(job=KEY, of="acme/urgent", revision=1, n=2, want=Grant(calls=15)))
    story.see(MoneyAsked(job=KEY, of="acme/urgent", revision=1, n=3, want=Grant(calls=4)))
    story.see(PlaceReturned(job=KEY, of="acme/urgent", revision=1, spent=once(10)))
    story.see(replace(asked, of="acme/c", since=START + 9), after_s=86_400)


def tenant_place(story: Story) -> None:
    """A job waits for its place, begins, asks for more in time, and gives back what it leaves over."""
    story.submitted(goal(TenantRules(jobs=1, day=DAY)), *plan("a", "b", "c"))
    story.see(PlaceGiven(job=JOB, lease=Grant(calls=4)))
    story.see(PlaceGiven(job=JOB, lease=Grant(calls=4)))
    story.see(MoneyGiven(job=JOB, revision=1, n=2, more=Grant(calls=8)))
    story.started("a", "b", "c")
    story.succeeded("a", 1, usage=once())
    story.succeeded("b", 2, usage=once())
    story.succeeded("c", 3, usage=once())
    story.answered("Six boats.")
    story.see(PlaceGiven(job=JOB, lease=Grant(calls=4)))


def tenant_budget(story: Story) -> None:
    """The tenant's day is spent: the job waits until its account says so, and ends with what it has."""
    story.submitted(goal(TenantRules(day=DAY)), *plan("a", "b", "c"))
    story.see(PlaceGiven(job=JOB, lease=Grant(calls=4)))
    story.started("a")
    story.succeeded("a", 1, usage=once(2))
    story.see(MoneyGiven(job=JOB, revision=1, n=2, more=Grant(calls=0), reason="the day is spent"))
    story.started("b")
    story.failed("b", "timeout", "no result within 120 s", final=True, usage=once(2))
    story.see(MoneyGiven(job=JOB, revision=1, n=3, more=Grant(calls=0), reason="the day is spent"))


def sub_task_budget(story: Story) -> None:
    """A sub-task has spent its own budget: it fails for good, and its job goes on without it."""
    budget = Budget(subtask=Grant(calls=3))
    story.submitted(goal(TenantRules(), budget), *plan("a", "b"))
    story.started("a", "b")
    story.failed("a", "refused", "no", usage=once(2))
    story.started("a", attempt=2)
    story.succeeded("b", 2, usage=once(3))
    story.failed("a", "refused", "no", attempt=2, usage=once(1))
    story.answered("Two boats at least.")


STORIES = (tenant_account, tenant_place, tenant_budget, sub_task_budget)
