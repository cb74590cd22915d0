"""Stories of jobs that wait for a person or for another job."""

from streams.core.events import (
    ApprovalGiven,
    ApprovalRefused,
    ChildAnswered,
    JobCancelled,
    SubTaskSuspended,
)
from streams.core.goal import Asker, Goal, Source
from streams.core.plan import SubTask
from streams.core.values import Inline, Usage
from tests.core.telling import JOB, Story

TWO = (SubTask(id="a", goal="count a"), SubTask(id="b", goal="write to b"))
SPENT = Usage(calls=2, tokens_in=900, tokens_out=100)


def goal(*approve: str, **more: object) -> Goal:
    """A goal that asks for this."""
    return Goal(text=Inline(value="Count the boats"), digest="aa", approve=approve, **more)  # type: ignore[arg-type]


def place(offset: int) -> Source:
    """Where a person's record stands."""
    return Source(topic="goals", partition=2, offset=offset)


def sends(story: Story, number: int = 1) -> None:
    """A sub-agent asks for leave to send a mail."""
    story.see(
        SubTaskSuspended(
            job=JOB,
            task="b",
            attempt=1,
            on="approval",
            call=f"call_{number}",
            tool="send_mail",
            args={"to": "harbour"},
            journal=(40, 41)[:number],
            number=number,
            so_far=SPENT,
        )
    )


def plan_approved(story: Story) -> None:
    """Nothing of the plan begins before a person has approved it; told twice it counts once."""
    story.submitted(goal("plan", "answer"))
    story.planned(*TWO)
    yes = ApprovalGiven(job=JOB, by="ada", source=place(7))
    story.see(yes, after_s=3600)
    story.started("a", "b")
    story.succeeded("a", 1)
    story.succeeded("b", 2)
    story.answered("Three boats.")
    story.see(yes)
    story.see(ApprovalGiven(job=JOB, what="answer", by="eve", source=place(9)), after_s=60)
    story.see(ApprovalGiven(job=JOB, what="answer", by="eve", source=place(9)))


def plan_rejected(story: Story) -> None:
    """A plan that a person does not want ends the job; the goal sent again is the same job."""
    story.submitted(goal("plan"), *TWO)
    story.see(ApprovalRefused(job=JOB, by="ada", reason="ask the harbour first", source=place(7)))
    story.submitted(goal("plan"), *TWO)


def answer_rejected(story: Story) -> None:
    """An answer that a person does not want is not published, in no part."""
    story.submitted(goal("answer"), *TWO)
    story.started("a", "b")
    story.succeeded("a", 1)
    story.see(ApprovalRefused(job=JOB, by="ada", source=place(6)))
    story.succeeded("b", 2)
    story.answered("Three boats.")
    story.see(ApprovalRefused(job=JOB, by="ada", reason="there are four", source=place(7)))


def answer_too_late(story: Story) -> None:
    """The deadline ends a job whose answer still waits: nothing is published that nobody approved."""
    story.submitted(goal("answer", deadline_s=60.0), *TWO)
    story.started("a", "b")
    story.succeeded("a", 1)
    story.succeeded("b", 2)
    story.answered("Three boats.")
    story.deadline(after_s=60)
    story.see(ApprovalGiven(job=JOB, by="ada", source=place(7)))


def cancelled(story: Story) -> None:
    """A job is cancelled: what runs is stopped, and the answer tells what was done by then."""
    story.submitted(goal(), *TWO)
    story.started("a", "b")
    story.succeeded("a", 1)
    no = JobCancelled(job=JOB, by="ada", reason="ordered twice", source=place(7))
    story.see(no)
    story.see(no)


def tool_approved(story: Story) -> None:
    """A call waits for leave without a place; the attempt goes on under its number, and waits once more."""
    story.submitted(goal("tools"), *TWO)
    story.started("a", "b")
    sends(story)
    sends(story)
    story.succeeded("a", 1)
    story.see(ApprovalGiven(job=JOB, what="tools", task="b", by="ada", source=place(7)), after_s=86_400)
    sends(story)
    story.overdue("b", 1, after_s=1)
    sends(story, 2)
    story.see(ApprovalGiven(job=JOB, by="eve", source=place(8)))
    story.succeeded("b", "sent", usage=Usage(calls=3, tokens_in=1_400, tokens_out=150))
    story.answered("Done.")


def tool_rejected(story: Story) -> None:
    """A call that a person does not allow ends the job; what the attempt spent by then is told."""
    story.submitted(goal("tools"), *TWO)
    story.started("a", "b")
    sends(story)
    story.see(ApprovalRefused(job=JOB, by="ada", reason="not to them", source=place(7)))


def child_answers(story: Story) -> None:
    """An attempt waits for a child job, and a faster child's answer is kept until it does."""
    story.submitted(goal(), *TWO)
    story.started("a", "b")
    for task, first in (("a", False), ("b", True)):
        child = f"acme/child-{task}"
        waits = SubTaskSuspended(
            job=JOB, task=task, attempt=1, on="child", call="call_1", tool="submit_goal", child=child
        )
        answer = ChildAnswered(
            job=JOB,
            task=task,
            attempt=1,
            call="call_1",
            child=child,
            outcome="succeeded",
            answer=Inline(value="4 boats"),
            size=9,
        )
        for event in (answer, waits) if first else (waits, answer):
            story.see(event)
        story.see(answer)
        story.succeeded(task, 4)
    story.answered("Eight boats.")


def child_of_ended(story: Story) -> None:
    """A parent that ends early ends its child, too; a child tells its parent how it ended."""
    asker = Asker(task="c", attempt=2, call="call_9")
    story.submitted(goal(parent="acme/fleet", asker=asker, depth=1, deadline_s=10.0), *TWO)
    story.started("a", "b")
    story.succeeded("a", 4)
    story.see(SubTaskSuspended(job=JOB, task="b", attempt=1, on="child", call="call_1", child="acme/child-b"))
    story.deadline(after_s=20)


STORIES = (
    plan_approved,
    plan_rejected,
    answer_rejected,
    answer_too_late,
    cancelled,
    tool_approved,
    tool_rejected,
    child_answers,
    child_of_ended,
)
