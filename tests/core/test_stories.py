"""Stories of jobs, told whole in ``stories/*.txt``: events in, commands and answers out.

To tell them anew after a change of the rules: ``ANABRANCH_RETELL=1 pytest tests/core/test_stories.py``,
and read the difference.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from streams.core.events import GoalRejected, JobBroken, JobSubmitted
from streams.core.goal import Budget, Goal, JoinRule, Limits, Source
from streams.core.plan import SubTask
from streams.core.values import ANSWER, PLAN, Inline, Usage
from tests.core import (
    gating_stories,
    growing_stories,
    hedging_stories,
    joining_stories,
    tenant_stories,
    waiting_stories,
)
from tests.core.telling import JOB, Story

FOLDER = Path(__file__).parent / "stories"
COST = Usage(calls=1, tokens_in=500, tokens_out=100, usd=0.5)


def goal(**rules: object) -> Goal:
    """A goal with these rules."""
    return Goal(text=Inline(value="Count the boats"), digest="aa", **rules)  # type: ignore[arg-type]


def task(name: str, *dep: str) -> SubTask:
    """A sub-task of a plan."""
    return SubTask(id=name, goal=f"count {name}", dep=dep)


def diamond(story: Story) -> None:
    """A diamond: two branches wait for one sub-task, and one waits for both."""
    story.submitted(goal())
    story.planned(task("a"), task("b", "a"), task("c", "a"), task("d", "b", "c"))
    story.started("a")
    story.succeeded("a", 4, usage=COST)
    story.started("c", "b")
    story.succeeded("c", {"boats": 2})
    story.succeeded("b", "two")
    story.started("d")
    story.succeeded("d", 4)
    story.answered("There are four boats.")


def retry(story: Story) -> None:
    """An attempt fails and waits before the next; that one succeeds, the only one, and is the answer."""
    story.submitted(goal())
    story.planned(task("a"))
    story.started("a")
    story.failed("a", "rate_limited", "429, Retry-After: 5", retry_in=5.0, usage=COST)
    story.retry_due("a", 2, after_s=4.9)
    story.retry_due("a", 2, after_s=0.1)
    story.started("a", attempt=2)
    story.succeeded("a", 4, attempt=2, usage=COST)


def failed_branch(story: Story) -> None:
    """A branch fails for good: what needs it is skipped, the rest makes a partial answer that says so."""
    story.submitted(goal(limits=Limits(max_attempts=2)))
    story.planned(task("a"), task("b"), task("c", "b"), task("d", "c"), task("e", "a"))
    story.started("a", "b")
    story.failed("b", "tool_error", "no such harbour")
    story.succeeded("a", 3)
    story.started("e")
    story.started("b", attempt=2)
    story.failed("b", "tool_error", "no such harbour", attempt=2)
    story.succeeded("e", 3)
    story.answered("Three boats; one harbour is unknown.")


def planner_gives_up(story: Story) -> None:
    """Without a plan there is nothing to join."""
    story.submitted(goal())
    story.started(PLAN)
    story.failed(PLAN, "no_plan", "cycle a -> b -> a", final=True, usage=COST)


def deadline(story: Story) -> None:
    """The deadline passes with half of it done: what is there is the answer."""
    story.submitted(goal(deadline_s=60.0))
    story.planned(task("a"), task("b"), task("c", "b"), task("d"))
    story.started("a", "b")
    story.succeeded("a", 3)
    story.started("d")
    story.succeeded("d", 1)
    story.deadline(after_s=50)
    story.deadline(after_s=10)
    story.succeeded("b", 9)


def fail_fast(story: Story) -> None:
    """More failures than the goal puts up with end the job at once, with what is there."""
    story.submitted(goal(join=JoinRule(fail_fast_ratio=0.25)))
    story.planned(*(task(name) for name in "abcdefgh"))
    story.started("a", "b", "c", "d")
    story.succeeded("a", 1)
    for name in "bcd":
        story.failed(name, "refused", "the model will not count boats", final=True)


def budget(story: Story) -> None:
    """A spent budget ends the job: nothing further is started, nothing is tried again."""
    story.submitted(goal(budget=Budget(usd=1.5), limits=Limits(concurrency=1)))
    story.planned(task("a"), task("b"), task("c"), task("d"))
    for name in "ab":
        story.started(name)
        story.succeeded(name, 1, usage=COST)
    story.started("c")
    story.failed("c", "server_error", "500", retry_in=1.0, usage=COST)


def budget_lost(story: Story) -> None:
    """A lost attempt has spent its grant until it tells its end; what it did not spend goes back."""
    story.submitted(goal(budget=Budget(calls=9), limits=Limits(timeout_s=30.0)))
    story.planned(task("a"), task("b"), task("c"), usage=Usage(calls=1, tokens_in=900, tokens_out=100))
    story.started("a", "b")
    story.succeeded("b", 1, usage=Usage(calls=1, tokens_in=500, tokens_out=100))
    story.overdue("a", 1, after_s=35, retry_in=2.0)
    story.retry_due("a", 2, after_s=2)
    story.started("c")
    story.succeeded("c", 1, usage=Usage(calls=2, tokens_in=900, tokens_out=200))
    story.failed("a", "timeout", "no result within 30 s", retry_in=2.0, usage=Usage(calls=1, tokens_in=400))
    story.started("a", attempt=2)
    story.succeeded("a", 1, attempt=2, usage=Usage(calls=1, tokens_in=500, tokens_out=100))
    story.answered("Three.")


def synthesis_fails(story: Story) -> None:
    """No synthesis: the joined results are the answer, partial, with the reason."""
    story.submitted(goal(limits=Limits(max_attempts=2)))
    story.planned(task("a"), task("b"))
    story.started("a", "b")
    story.succeeded("a", 3)
    story.succeeded("b", {"boats": 1})
    story.started(ANSWER)
    story.failed(ANSWER, "server_error", "500", retry_in=1.0)
    story.retry_due(ANSWER, 2, after_s=1)
    story.started(ANSWER, attempt=2)
    story.failed(ANSWER, "content_filter", "stopped by the provider", attempt=2)


def late_attempt(story: Story) -> None:
    """An attempt that is overdue is tried again; what the first one says later is ignored."""
    story.submitted(goal(limits=Limits(timeout_s=30.0)))
    story.planned(task("a"), task("b", "a"))
    story.started("a")
    story.overdue("a", 1, after_s=29)
    story.overdue("a", 1, after_s=6)
    story.succeeded("a", "too late", usage=COST)
    story.started("a", attempt=2)
    story.started("a", attempt=1)
    story.failed("a", "timeout", "no result within 30 s", retry_in=2.0)
    story.succeeded("a", "in time", attempt=2)
    story.succeeded("a", "in time", attempt=2)
    story.started("b")
    story.succeeded("b", 1)
    story.answered("One.")


def never_started(story: Story) -> None:
    """A command that no lane starts counts as lost, and is an attempt."""
    story.submitted(goal(limits=Limits(max_attempts=2, start_timeout_s=900.0)))
    story.overdue(PLAN, 1, after_s=900)
    story.overdue(PLAN, 2, after_s=900)


def ninety_nine_into_one(story: Story) -> None:
    """Ninety-nine results join in one sub-task; never more than 32 are out."""
    names = [f"t{number:02}" for number in range(99)]
    story.submitted(goal())
    story.planned(*(task(name) for name in names), task("sum", *names))
    for number, name in enumerate(names):
        story.succeeded(name, number)
    story.started("sum")
    story.succeeded("sum", sum(range(99)))
    story.answered("4851")


def claim_checks(story: Story) -> None:
    """More results than a record holds: the largest go by claim check, to the events that brought them."""
    story.submitted(goal(join=JoinRule(chunk_bytes=1_000_000)))
    story.planned(*(task(name) for name in "abcd"), task("e", "a", "b"))
    for name, size in (("a", 200_000), ("b", 60_000), ("c", 150_000), ("d", 10)):
        story.succeeded(name, "boat" * (size // 4), size=size)
    story.succeeded("e", 5)
    story.failed(ANSWER, "refused", "no", final=True)


def another_goal(story: Story) -> None:
    """The same goal again is the same job; another one with its id is a dead letter, before and after."""
    story.submitted(goal())
    story.submitted(goal())
    source = Source(topic="goals", partition=2, offset=8)
    other = Goal(text=Inline(value="Count the ships"), digest="bb")
    story.see(JobSubmitted(job=JOB, goal=other, source=source))
    story.planned(task("a"))
    story.see(JobBroken(job=JOB, reason="the event at job-events[3]@5 could not be committed"))
    story.submitted(goal())
    story.see(JobSubmitted(job=JOB, goal=other, source=source))


def brought_plan(story: Story) -> None:
    """A goal brings its plan: nobody is asked for one, and the same goal again changes nothing."""
    plan = (task("a"), task("b"), task("c", "a", "b"))
    story.submitted(goal(), *plan)
    story.started("a", "b")
    story.submitted(goal(), *plan)
    story.succeeded("b", 2)
    story.succeeded("a", 1)
    story.started("c")
    story.succeeded("c", 3)
    story.answered("Three boats.")


def brought_call(story: Story) -> None:
    """A goal brings one call of a tool: its result is the answer, and no model is asked at all."""
    story.submitted(goal(), SubTask(id="a", goal="", tool="count_boats"))
    story.started("a")
    story.claimed("a", size=90_000)


def brought_trouble(story: Story) -> None:
    """A goal brings a plan that breaks the rules, past the intake: its job ends with the reasons."""
    story.submitted(goal(), task("a", "c"), task("a"))
    story.submitted(goal(), task("a", "c"), task("a"))


def redriven(story: Story) -> None:
    """A command that no lane could read is redriven: its job, answered already, goes on from what it has."""
    story.submitted(goal(deadline_s=3600.0, limits=Limits(max_attempts=2)))
    story.planned(task("a"), task("b"), task("c", "a"), task("d", "b"))
    story.started("a")
    story.succeeded("a", 3, usage=COST)
    story.unreadable("b", 1)
    story.unreadable("b", 2)
    story.started("c")
    story.failed("c", "server_error", "500", usage=COST)
    story.started("c", attempt=2)
    story.failed("c", "server_error", "500", attempt=2, usage=COST)
    story.answered("Three boats in one harbour.")
    event = story.reopened(("b", 2))
    story.see(event)
    story.unreadable("b", 2)
    story.deadline(after_s=1)
    story.started("b", attempt=2)
    story.succeeded("c", "late", attempt=2)
    story.succeeded("b", 1, attempt=2, usage=COST)
    story.started("c", attempt=3)
    story.failed("c", "server_error", "500", attempt=3, retry_in=1.0, usage=COST)
    story.succeeded("d", 1)
    story.retry_due("c", 4, after_s=1)
    story.succeeded("c", 3, attempt=4)
    story.answered("Four boats, with the latecomers.", attempt=2)
    story.see(event)


def redriven_too_late(story: Story) -> None:
    """What came after the deadline is paid for, and counts when the job goes on; so does each attempt."""
    story.submitted(goal(deadline_s=60.0, limits=Limits(max_attempts=1)))
    story.planned(task("a"), task("b"))
    story.started("a", "b")
    story.succeeded("a", 3, usage=COST)
    story.deadline(after_s=60)
    story.succeeded("b", 1, usage=COST)
    story.reopened()
    story.started(ANSWER)
    story.failed(ANSWER, "content_filter", "stopped by the provider", usage=COST)
    story.reopened()
    story.answered("Four boats.", attempt=2)


def rejected_and_fixed(story: Story) -> None:
    """A goal could not be read, and comes back when it can: the same job, and its second answer."""
    source = Source(topic="goals", partition=0, offset=41)
    story.see(GoalRejected(job=JOB, reason="v: version 2 is newer than 1", source=source))
    story.submitted(goal())
    story.see(GoalRejected(job=JOB, reason="v: version 2 is newer than 1", source=source))
    story.planned(task("a"))
    story.started("a")
    story.succeeded("a", 3)
    story.submitted(goal())
    story.see(GoalRejected(job=JOB, reason="v: version 2 is newer than 1", source=source))


STORIES: tuple[Callable[[Story], None], ...] = (
    diamond,
    retry,
    failed_branch,
    planner_gives_up,
    deadline,
    fail_fast,
    budget,
    budget_lost,
    synthesis_fails,
    late_attempt,
    never_started,
    ninety_nine_into_one,
    claim_checks,
    another_goal,
    brought_plan,
    brought_call,
    brought_trouble,
    redriven,
    redriven_too_late,
    rejected_and_fixed,
    *gating_stories.STORIES,
    *growing_stories.STORIES,
    *joining_stories.STORIES,
    *hedging_stories.STORIES,
    *tenant_stories.STORIES,
    *waiting_stories.STORIES,
)


@pytest.mark.parametrize("tell", STORIES, ids=lambda tell: tell.__name__)
def test_the_story_is_the_one_we_know(tell: Callable[[Story], None]) -> None:
    """Events in, commands and answers out."""
    story = Story(tell.__doc__ or "")
    tell(story)
    known = FOLDER / f"{tell.__name__}.txt"
    if os.environ.get("ANABRANCH_RETELL"):
        known.write_text(story.text, encoding="utf-8")
    assert story.text == known.read_text(encoding="utf-8")


def test_no_story_is_left_behind() -> None:
    """A file without its story is tested by nobody."""
    assert {file.stem for file in FOLDER.iterdir()} == {tell.__name__ for tell in STORIES}
