"""Stories of the gate: a model looks at a goal before it is planned."""

from streams.core.goal import Goal, Limits
from streams.core.plan import SubTask
from streams.core.values import Inline, Usage
from tests.core.telling import Story

GATE = "~gate"
COST = Usage(calls=1, tokens_in=300, tokens_out=20, usd=0.25)


def gated(story: Story, *plan: SubTask) -> None:
    """A goal of a tenant whose goals a model looks at."""
    goal = Goal(text=Inline(value="Count the boats"), digest="aa", gate=True, limits=Limits(max_attempts=2))
    story.submitted(goal, *plan)
    story.started(GATE)


def gate_lets_in(story: Story) -> None:
    """What the gate lets in is planned, and what it cost counts."""
    gated(story)
    story.succeeded(GATE, {"allow": True, "reason": ""}, usage=COST)
    story.planned(SubTask(id="a", goal="count a"))
    story.started("a")
    story.succeeded("a", 4, usage=COST)


def gate_lets_a_plan_in(story: Story) -> None:
    """A goal that brings its plan waits at the gate, too, which sees the sub-tasks."""
    gated(story, SubTask(id="a", goal="count a"), SubTask(id="b", goal="count b"))
    story.succeeded(GATE, {"allow": True, "reason": ""})
    story.started("a", "b")
    story.succeeded("a", 4)
    story.succeeded("b", 3)
    story.answered("Seven boats.")


def gate_refuses(story: Story) -> None:
    """A goal that is refused ends there; sent again it is the same job."""
    gated(story)
    story.succeeded(GATE, {"allow": False, "reason": "boats are none of our business"}, usage=COST)
    story.submitted(Goal(text=Inline(value="Count the boats"), digest="aa", gate=True))


def gate_fails(story: Story) -> None:
    """A gate at which nobody could look lets nothing in."""
    gated(story)
    story.failed(GATE, "unavailable", "no model is there")
    story.started(GATE, attempt=2)
    story.failed(GATE, "unavailable", "no model is there", attempt=2)


def gate_says_nothing(story: Story) -> None:
    """Nor does a verdict that is none."""
    gated(story)
    story.succeeded(GATE, {"allow": "yes"})


STORIES = (gate_lets_in, gate_lets_a_plan_in, gate_refuses, gate_fails, gate_says_nothing)
