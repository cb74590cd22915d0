"""Stories of hedges: a second attempt beside a slow one."""

from streams.core.events import STOPPED, HedgeDue, SubTaskFailed
from streams.core.goal import Budget, Goal, Hedging, Limits
from streams.core.plan import SubTask
from streams.core.values import Inline, Usage
from tests.core.telling import JOB, Story

COST = Usage(calls=1, tokens_in=500, tokens_out=100)
LOST = Usage(calls=1, tokens_in=500, tokens_out=800, estimated=1)


def hedging(story: Story, count: int, *, share: float = 0.1, **rules: object) -> None:
    """A job that may hedge has its sub-tasks under way."""
    goal = Goal(text=Inline(value="Count the boats"), digest="aa", hedge=Hedging(share=share), **rules)  # type: ignore[arg-type]
    names = [f"s{n}" for n in range(1, count + 1)]
    story.submitted(goal, *(SubTask(id=name, goal=f"count {name}") for name in names))
    story.started(*names)


def due(story: Story, task: str, *, after_ms: int = 3_000, after_s: float = 4.0) -> None:
    """The orchestrator's timer for an attempt that runs longer than nearly all others."""
    story.see(HedgeDue(job=JOB, task=task, attempt=1, after_ms=after_ms), after_s=after_s)


def stopped(story: Story, task: str, *, attempt: int = 1) -> None:
    """A lane tells that it stopped an attempt."""
    story.see(
        SubTaskFailed(
            job=JOB,
            task=task,
            attempt=attempt,
            kind=STOPPED,
            reason="stopped: another attempt had the result first",
            final=True,
            usage=LOST,
        )
    )


def hedge_wins(story: Story) -> None:
    """A slow attempt is overtaken by another one on another lane; it is stopped, and what it cost counts."""
    hedging(story, 2)
    story.succeeded("s2", 2, usage=COST)
    due(story, "s1", after_s=0.5)
    due(story, "s1")
    due(story, "s1", after_s=1.0)
    story.started("~hedge-1")
    story.succeeded("~hedge-1", 1, usage=COST)
    stopped(story, "s1")
    stopped(story, "s1")
    story.answered("Three.")


def hedge_loses(story: Story) -> None:
    """The slow attempt comes to its end first: the hedge is stopped."""
    hedging(story, 2)
    due(story, "s1")
    story.started("~hedge-1")
    story.succeeded("s1", 1, usage=COST)
    stopped(story, "~hedge-1")
    story.succeeded("s2", 2, usage=COST)
    story.answered("Three.")


def hedge_decides(story: Story) -> None:
    """The sub-task fails for good while its hedge runs, and the hedge brings its result."""
    hedging(story, 2, limits=Limits(max_attempts=1))
    due(story, "s1")
    story.started("~hedge-1")
    story.failed("s1", "server_error", "503", usage=COST)
    story.succeeded("s2", 2, usage=COST)
    story.succeeded("~hedge-1", 1, usage=COST)
    story.answered("Three.")


def hedge_fails(story: Story) -> None:
    """A hedge has one attempt; the sub-task goes on without it, and is not hedged again."""
    hedging(story, 2)
    due(story, "s1")
    story.started("~hedge-1")
    story.failed("~hedge-1", "server_error", "503", usage=COST)
    due(story, "s1")
    story.succeeded("s2", 2, usage=COST)
    story.succeeded("s1", 1, usage=COST)
    story.answered("Three.")


def hedge_and_all_fail(story: Story) -> None:
    """Both fail, the sub-task first: it says why, and what needs it is skipped."""
    goal = Goal(
        text=Inline(value="Count the boats"),
        digest="aa",
        hedge=Hedging(share=1.0),
        limits=Limits(max_attempts=1),
    )
    story.submitted(
        goal,
        SubTask(id="s1", goal="count"),
        SubTask(id="s2", goal="sum up", dep=("s1",)),
        SubTask(id="s3", goal="look"),
    )
    story.started("s1", "s3")
    due(story, "s1")
    story.started("~hedge-1")
    story.failed("s1", "server_error", "503", usage=COST)
    story.failed("~hedge-1", "overloaded", "529", usage=COST)
    story.succeeded("s3", 3, usage=COST)
    story.answered("Three.")


def hedge_share_spent(story: Story) -> None:
    """Of twelve sub-tasks two are hedged, at a share of a tenth: the third waits for its own end."""
    hedging(story, 12, deadline_s=15.0)
    for task in ("s1", "s2", "s3"):
        due(story, task)
    story.succeeded("s2", 2, usage=COST)
    story.deadline(after_s=2.0)


def hedge_too_dear(story: Story) -> None:
    """A budget that has no room for one more attempt: nothing is hedged until it has."""
    hedging(story, 2, share=1.0, budget=Budget(calls=12), limits=Limits(concurrency=2))
    due(story, "s1")
    story.succeeded("s2", 2, usage=COST)
    due(story, "s1")
    story.started("~hedge-1")
    story.succeeded("~hedge-1", 1, usage=COST)
    stopped(story, "s1")
    story.answered("Three.")


def hedge_beats_the_next(story: Story) -> None:
    """The slow attempt fails, and the hedge brings the result before the next one: that is stopped."""
    hedging(story, 2)
    due(story, "s1")
    story.started("~hedge-1")
    story.failed("s1", "server_error", "503", usage=COST)
    story.succeeded("~hedge-1", 1, usage=COST)
    stopped(story, "s1", attempt=2)
    story.succeeded("s2", 2, usage=COST)
    story.answered("Three.")


STORIES = (
    hedge_beats_the_next,
    hedge_wins,
    hedge_loses,
    hedge_decides,
    hedge_fails,
    hedge_and_all_fail,
    hedge_share_spent,
    hedge_too_dear,
)
