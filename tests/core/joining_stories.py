"""Stories of joins: how results become an answer, and what ends a job before all have ended."""

from streams.core.events import SubTaskSucceeded
from streams.core.goal import Goal, JoinRule, Weight
from streams.core.plan import SubTask
from streams.core.values import ANSWER, Inline, Json
from tests.core.telling import JOB, Story


def goal(**rules: object) -> Goal:
    """A goal with this join."""
    return Goal(text=Inline(value="How many boats?"), digest="aa", join=JoinRule(**rules))  # type: ignore[arg-type]


def plan(*names: str) -> tuple[SubTask, ...]:
    """Sub-tasks that need nothing of each other."""
    return tuple(SubTask(id=name, goal=f"count {name}") for name in names)


def says(
    story: Story, task: str, result: Json, *, like: str = "", size: int = 9, cites: tuple[str, ...] = ()
) -> None:
    """A sub-task succeeds; *like* stands for what its fingerprint compares it by."""
    print_of = f"{like}:{like}:" if like else ""
    value = Inline(value=result)
    story.see(
        SubTaskSucceeded(
            job=JOB, task=task, attempt=1, result=value, size=size, fingerprint=print_of, cites=cites
        )
    )


def join_concat(story: Story) -> None:
    """Results one after the other: the lane puts them together, and no model is asked."""
    story.submitted(goal(strategy="concat"), *plan("a", "b"))
    story.started("a", "b")
    says(story, "b", "Two.")
    says(story, "a", "One.")
    story.answered("One.\n\nTwo.")


def join_table(story: Story) -> None:
    """Rows of all results; also of a plan with one sub-task, since its rows are to be looked at."""
    story.submitted(goal(strategy="table", row={"type": "object", "required": ["boats"]}), *plan("a"))
    story.started("a")
    says(story, "a", [{"boats": 3}, {"ships": 1}])
    rows: Json = {"rows": [{"boats": 3}], "left_out": [{"task": "a", "row": 2, "reason": "no boats"}]}
    story.started(ANSWER)
    says(story, ANSWER, rows)


def join_first(story: Story) -> None:
    """The first success ends the job: the others are stopped, and what they say comes too late."""
    story.submitted(goal(strategy="first", candidates=3))
    story.started("candidate-1", "candidate-2", "candidate-3")
    story.failed("candidate-2", "refused", "the model will not count boats", final=True)
    says(story, "candidate-3", 4)
    says(story, "candidate-1", 5)


def join_vote(story: Story) -> None:
    """Three of five agree before the others are heard, who can change nothing any more."""
    story.submitted(goal(strategy="vote", candidates=5, models=("m", "n")))
    story.started(*(f"candidate-{n}" for n in range(1, 6)))
    says(story, "candidate-2", "Four", like="four")
    says(story, "candidate-5", "five", like="five")
    says(story, "candidate-4", "four.", like="four")
    says(story, "candidate-1", "four", like="four")


def join_vote_weighted(story: Story) -> None:
    """One vote counts more than two others together."""
    rule = goal(
        strategy="vote", candidates=3, models=("big", "small", "small"), counting="weighted",
        weights=(Weight(model="big", weight=2.0), Weight(model="small", weight=0.5)),
    )  # fmt: skip
    story.submitted(rule)
    story.started("candidate-1", "candidate-2", "candidate-3")
    says(story, "candidate-2", "five", like="five")
    says(story, "candidate-1", "four", like="four")


def join_vote_judged(story: Story) -> None:
    """A judge says which of the votes are the same."""
    story.submitted(goal(strategy="vote", candidates=3, equality="judged"))
    for n, words in enumerate(("four", "4 of them", "five"), 1):
        says(story, f"candidate-{n}", words, like=str(n))
    story.started("~judge")
    says(story, "~judge", {"groups": [["candidate-1", "candidate-2"], ["candidate-3"]]})


def join_tie(story: Story) -> None:
    """Two lead with one vote each: nobody wins, and both are told."""
    story.submitted(goal(strategy="vote"), *plan("a", "b", "c"))
    says(story, "a", "four", like="four")
    says(story, "b", "five", like="five")
    story.failed("c", "refused", "the model will not count boats", final=True)


def join_no_quorum(story: Story) -> None:
    """Two votes are not the three that are asked for."""
    story.submitted(goal(strategy="vote", candidates=4, counting="quorum", quorum=3, min_success_ratio=0.5))
    for n, words in enumerate(("four", "five", "four", "six"), 1):
        says(story, f"candidate-{n}", words, like=words)


def join_rank(story: Story) -> None:
    """A judge orders the candidates, and the best two are kept."""
    story.submitted(goal(strategy="rank", keep=2), *plan("a", "b", "c"))
    for name in "abc":
        says(story, name, f"by {name}")
    story.started("~judge")
    says(story, "~judge", {"order": ["c", "a", "b"]})
    story.started(ANSWER)
    says(story, ANSWER, ["by c", "by a"])


def join_quorum(story: Story) -> None:
    """Two results are enough: the rest is stopped, or never begins, and the join is made of the two."""
    story.submitted(goal(quorum=2), *plan("a", "b", "c"), SubTask(id="d", goal="count d", dep=("c",)))
    story.started("a", "b", "c")
    says(story, "a", 3)
    says(story, "b", 1)
    story.failed("c", "stopped", "2 results are enough")
    story.answered("Four boats.")


def join_duplicates(story: Story) -> None:
    """A result that says the same as another one is left out, and the answer says so."""
    story.submitted(goal(duplicates="exact"), *plan("a", "b", "c"))
    says(story, "c", "four", like="four")
    says(story, "b", "five", like="five")
    says(story, "a", "four", like="four")
    story.answered("Four or five.")


def join_contradiction(story: Story) -> None:
    """Two results contradict each other: one more sub-task settles it, and the answer names them."""
    story.submitted(goal(check=True, tie_break=True), *plan("a", "b", "c"))
    for name, boats in (("a", 4), ("b", 5), ("c", "none is red")):
        says(story, name, boats)
    story.started("~check")
    says(story, "~check", {"contradictions": [{"tasks": ["a", "b"], "about": "the number of boats"}]})
    story.started("~tie")
    says(story, "~tie", "Counted again: four.")
    story.started(ANSWER)
    says(story, ANSWER, "Four boats [a, ~tie], none of them red [c].", cites=("a", "~tie", "c"))


def join_tree(story: Story) -> None:
    """More than one call can read is summed up in a tree; a step that fails is missing in the answer."""
    story.submitted(goal(chunk_bytes=100_000), *plan("a", "b", "c", "d"))
    for name, size in (("a", 150_000), ("b", 30_000), ("c", 60_000), ("d", 40_000)):
        says(story, name, f"boats of {name}", size=size)
    for n in (1, 2):
        says(story, f"~reduce-{n}", f"summary {n}", size=45_000, cites=("a",))
    story.failed("~reduce-3", "content_filter", "stopped by the provider", final=True)
    says(story, "~reduce-4", "summary 4", size=20_000)
    story.started(ANSWER)
    says(story, ANSWER, "Some boats [~reduce-4].", cites=("~reduce-4",))


STORIES = (
    join_concat,
    join_table,
    join_first,
    join_vote,
    join_vote_weighted,
    join_vote_judged,
    join_tie,
    join_no_quorum,
    join_rank,
    join_quorum,
    join_duplicates,
    join_contradiction,
    join_tree,
)
