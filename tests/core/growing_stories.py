"""Stories of plans that grow, are planned again, and whose sub-tasks share notes."""

from streams.core.events import NoteWritten, Planned, SubTaskSucceeded
from streams.core.goal import Goal, Limits
from streams.core.plan import ITEMS, SubTask
from streams.core.values import ANSWER, Inline, Json
from tests.core.telling import JOB, Story


def goal(**fields: object) -> Goal:
    """A goal with these rules."""
    return Goal(text=Inline(value="How many boats?"), digest="aa", **fields)  # type: ignore[arg-type]


def mapped(parent: str, *items: Json) -> tuple[SubTask, ...]:
    """A sub-task for each item."""
    return tuple(
        SubTask(
            id=f"{parent}-{n}", goal="count the boats of this harbour", args={ITEMS: [item]}, parent=parent
        )
        for n, item in enumerate(items, 1)
    )


def proposes(story: Story, task: str, result: Json, *proposed: SubTask) -> None:
    """A sub-task succeeds, and proposes further ones."""
    value = Inline(value=result)
    story.see(SubTaskSucceeded(job=JOB, task=task, attempt=1, result=value, size=9, proposed=proposed))


def grown_map(story: Story) -> None:
    """A list is found, mapped over, and put together: the sum waits for all that the list became."""
    plan = (SubTask(id="list", goal="list the harbours"), SubTask(id="sum", goal="add up", dep=("list",)))
    story.submitted(goal(grow=True), *plan)
    story.started("list")
    proposes(story, "list", "two harbours", *mapped("list", "north", "south"))
    story.succeeded("list-2", 4)
    story.succeeded("list-1", 3)
    story.succeeded("sum", 7)
    story.answered("Seven boats.")


def grown_refused(story: Story) -> None:
    """More is proposed than there are places: none of it is taken, and the answer says so."""
    limits = Limits(max_subtasks=3)
    story.submitted(goal(grow=True, limits=limits), SubTask(id="list", goal="list the harbours"))
    proposes(story, "list", "three harbours", *mapped("list", "north", "south", "east"))
    story.answered("Some boats.")


def grown_runaway(story: Story) -> None:
    """Each result proposes more, up to the cap of the plan."""
    limits = Limits(max_subtasks=3, concurrency=1)
    story.submitted(goal(grow=True, limits=limits), SubTask(id="a", goal="count"))
    proposes(story, "a", "more", *mapped("a", "x"))
    proposes(story, "a-1", "more", *mapped("a-1", "y"))
    proposes(story, "a-1-1", "more", *mapped("a-1-1", "z"))
    story.answered("Enough boats.")


def replanned(story: Story) -> None:
    """A sub-task fails for good, and what waits for it is skipped: another plan takes their place."""
    rule = goal(on_failure="replan", limits=Limits(max_attempts=1))
    plan = (
        SubTask(id="a", goal="count a"), SubTask(id="b", goal="count b"),
        SubTask(id="c", goal="compare", dep=("b",)),
    )  # fmt: skip
    story.submitted(rule, *plan)
    story.succeeded("a", 3)
    story.failed("b", "tool_error", "the map of b is gone", final=True)
    story.started("~replan-1")
    again = (SubTask(id="d", goal="ask the harbour master of b", dep=("a",)),)
    story.see(Planned(job=JOB, task="~replan-1", attempt=1, plan=again))
    story.succeeded("d", 1)
    story.answered("Four boats.")


def replan_refused(story: Story) -> None:
    """The new plan breaks the rules: the job goes on as without, and joins what is there."""
    story.submitted(
        goal(on_failure="replan"), SubTask(id="a", goal="count a"), SubTask(id="b", goal="count b")
    )
    story.succeeded("a", 3)
    story.failed("b", "tool_error", "the map of b is gone", final=True)
    story.see(Planned(job=JOB, task="~replan-1", attempt=1, plan=(SubTask(id="a", goal="count a again"),)))
    story.answered("Three boats at a.")


def writes(story: Story, task: str, topic: str, value: Json, *, base: int, call: str = "call-1") -> None:
    """A sub-agent writes a note."""
    note = NoteWritten(
        job=JOB, task=task, attempt=1, call=call, topic=topic, value=Inline(value=value), base=base, size=9
    )
    story.see(note)


def notes_shared(story: Story) -> None:
    """Two write of the same at once: both stand, a third one sees them, and settles it."""
    plan = (
        SubTask(id="a", goal="count a", notes=True), SubTask(id="b", goal="count b", notes=True),
        SubTask(id="c", goal="compare", dep=("a", "b"), notes=True),
        SubTask(id="d", goal="alone", dep=("c",)),
    )  # fmt: skip
    story.submitted(goal(notes=True), *plan)
    story.started("a", "b")
    writes(story, "a", "tide", "high", base=0)
    writes(story, "b", "tide", "low", base=0)
    writes(story, "b", "tide", "low", base=0)
    story.succeeded("a", 3)
    story.succeeded("b", 1)
    writes(story, "c", "tide", "falling", base=2)
    story.succeeded("c", 4)
    writes(story, "d", "tide", "none of my business", base=3)
    story.succeeded("d", 4)
    story.started(ANSWER)


STORIES = (grown_map, grown_refused, grown_runaway, replanned, replan_refused, notes_shared)
