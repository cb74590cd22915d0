"""Laws of joins: who wins a vote, what is a duplicate, what the tree holds, and when the rest is stopped."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.commands import Answer, Effect, Judge, MakeAnswer, RunSubTask, StopAttempt, Tell
from streams.core.events import (
    Event,
    JobCancelled,
    JobSubmitted,
    SubTaskFailed,
    SubTaskSucceeded,
    SubTaskSuspended,
)
from streams.core.goal import Budget, Goal, JoinRule, Limits, Source, Weight
from streams.core.job import fold
from streams.core.plan import SubTask
from streams.core.reduction import MOST_LEAVES, grouped, reductions
from streams.core.release import command, release
from streams.core.states import Finished, Job, New, Open, Ready, Released, Stopped
from streams.core.values import ANSWER, Inline, TaskId, Usage
from tests.core.histories import JOB, START

SOURCE = Source(topic="goals", partition=0, offset=7)


@dataclass(kw_only=True)
class Life:
    """A job, event by event."""

    job: Job = field(default_factory=New)
    effects: list[Effect] = field(default_factory=list)
    events: int = 0

    def see(self, event: Event) -> None:
        """The next event."""
        self.events += 1
        self.job, effects = fold(self.job, replace(event, at=START + self.events, offset=self.events))
        self.effects += effects

    def begin(self, tasks: Sequence[SubTask], **rules: Any) -> None:
        """The goal arrives with its plan."""
        limits = Limits(concurrency=10_000, max_attempts=1)
        goal = Goal(text=Inline(value="x"), digest="d", limits=limits, join=JoinRule(**rules))
        self.see(JobSubmitted(job=JOB, goal=goal, source=SOURCE, plan=tuple(tasks)))

    def ends(self, task: TaskId, said: object, *, size: int = 9, fingerprint: str = "") -> None:
        """A sub-task succeeds with these words; it fails with None."""
        attempt = getattr(self.open.states[task], "attempt", 1) if isinstance(self.job, Open) else 1
        if said is None:
            self.see(SubTaskFailed(job=JOB, task=task, attempt=attempt, kind="x", reason="no", final=True))
            return
        self.see(
            SubTaskSucceeded(
                job=JOB,
                task=task,
                attempt=attempt,
                result=Inline(value=said),  # type: ignore[arg-type]
                size=size,
                fingerprint=fingerprint,
            )
        )

    @property
    def open(self) -> Open:
        """The job, under way."""
        assert isinstance(self.job, Open)
        return self.job

    @property
    def answer(self) -> Answer:
        """Its one answer."""
        (answer,) = (effect for effect in self.effects if isinstance(effect, Answer))
        return answer


def tasks(count: int, models: Sequence[str] = ("m",)) -> list[SubTask]:
    """So many sub-tasks that need nothing of each other."""
    return [SubTask(id=f"t{n}", goal="x", model=models[n % len(models)]) for n in range(count)]


WORDS = st.sampled_from(["a", "b", "c", None])
VOTES = st.lists(WORDS, min_size=1, max_size=7)
WEIGHTS = {"m": 1.0, "n": 0.3, "o": 2.5}
COUNTING: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(dict, counting=st.just("majority")),
    st.builds(dict, counting=st.just("quorum"), quorum=st.integers(1, 7)),
    st.builds(
        dict,
        counting=st.just("weighted"),
        weights=st.just(tuple(Weight(model=m, weight=w) for m, w in WEIGHTS.items())),
    ),
)


def should(words: Sequence[str | None], rule: dict[str, Any]) -> tuple[str, set[str]]:
    """How a vote ends in which all are heard, said once more: the rule, and what those said who lead."""
    models = ("m", "n", "o")
    tenths = [
        round(10 * WEIGHTS[models[n % 3]]) if rule["counting"] == "weighted" else 10
        for n in range(len(words))
    ]
    count: Counter[str] = Counter()
    for word, weight in zip(words, tenths, strict=True):
        if word is not None:
            count[word] += weight
    if not count:
        return "all_done", set()
    most = max(count.values())
    leaders = {word for word, weight in count.items() if weight == most}
    enough = most >= 10 * rule["quorum"] if "quorum" in rule else 2 * most > sum(tenths)
    if enough:
        return ("vote", leaders) if len(leaders) == 1 else ("tie", leaders)
    if len(leaders) > 1 and rule["counting"] != "quorum":
        return "tie", leaders
    return "no_quorum", set(count)


@given(VOTES, COUNTING, st.randoms(use_true_random=False))
def test_who_wins_does_not_depend_on_who_is_heard_first(
    words: list[str | None], rule: dict[str, Any], chance: Any
) -> None:
    """Also where it was decided before all were heard: an early decision is the late one."""
    life = Life()
    life.begin(tasks(len(words), ("m", "n", "o")), strategy="vote", equality="exact", **rule)
    order = list(range(len(words)))
    chance.shuffle(order)
    for n in order:
        if isinstance(life.job, Open):
            life.ends(f"t{n}", words[n], fingerprint=f"{words[n]}:{words[n]}:")
    assert isinstance(life.job, Finished)
    how, leaders = should(words, rule)
    assert life.answer.rule == how
    assert life.answer.outcome == ("failed" if not leaders else "succeeded" if how == "vote" else "partial")
    if isinstance(life.answer.answer, Inline):
        value = life.answer.answer.value
        assert ({value} if how == "vote" else set(value.values())) == leaders  # type: ignore[union-attr]
    heard = {report.task for report in life.answer.subtasks if report.outcome == "succeeded"}
    assert {task for votes in life.answer.votes for task in votes.tasks} == heard
    assert [votes.weight for votes in life.answer.votes] == sorted(
        (votes.weight for votes in life.answer.votes), reverse=True
    )


@given(VOTES, COUNTING)
def test_a_vote_is_decided_as_soon_as_nothing_can_change_it(
    words: list[str | None], rule: dict[str, Any]
) -> None:
    """The job ends with the first vote after which the others cannot help anybody else to win."""
    life = Life()
    life.begin(tasks(len(words), ("m", "n", "o")), strategy="vote", equality="exact", **rule)
    for n, word in enumerate(words):
        life.ends(f"t{n}", word, fingerprint=f"{word}:{word}:")
        rest = len(words) - n - 1
        ways = [should([*words[: n + 1], *([other] * rest)], rule) for other in ("a", "b", "c", "new", None)]
        decided = all(way == ways[0] for way in ways) and ways[0][0] == "vote"
        assert isinstance(life.job, Finished) == (decided or not rest)
        if isinstance(life.job, Finished):
            break


@given(
    st.lists(st.sampled_from(["a", "b", "c", "d", ""]), min_size=2, max_size=8),
    st.sampled_from(["exact", "near"]),
    st.randoms(use_true_random=False),
)
def test_duplicates_are_the_same_whoever_comes_first_and_nothing_is_lost(
    words: list[str], how: str, chance: Any
) -> None:
    """Each result is joined, or is the duplicate of one that is and says the same."""
    seen = set()
    for _ in range(2):
        life = Life()
        life.begin(tasks(len(words)), duplicates=how)
        order = list(range(len(words)))
        chance.shuffle(order)
        for n in order:
            life.ends(f"t{n}", words[n], fingerprint=f"{words[n]}::" if words[n] else "")
        decided = life.open.decided
        seen.add((decided.used, decided.duplicates))
        out = {each.task: each.of for each in decided.duplicates}
        assert sorted([*decided.used, *out]) == sorted(life.open.nodes)
        for task, of in out.items():
            assert of in decided.used
            assert words[int(task[1:])] == words[int(of[1:])] != ""
        kept = [words[int(task[1:])] for task in decided.used if words[int(task[1:])]]
        assert len(kept) == len(set(kept))
        told = command(life.open, ANSWER)
        assert isinstance(told, MakeAnswer)
        assert [one.task for one in told.results] == list(decided.used)
    assert len(seen) == 1


SIZES = st.lists(st.integers(1, 3_000), min_size=1, max_size=12)


@given(SIZES, st.integers(150, 1_500))
def test_every_byte_is_in_one_group_and_no_group_is_too_large(sizes: list[int], chunk: int) -> None:
    """Long results are in parts, all of them; the order stays."""
    results = [(f"t{n}", size) for n, size in enumerate(sizes)]
    groups = grouped(results, chunk)
    flat = [part for group in groups for part in group]
    assert [part.task for part in flat] == sorted((part.task for part in flat), key=lambda t: int(t[1:]))
    for task, size in results:
        own = [part for part in flat if part.task == task]
        assert [(part.part, part.parts) for part in own] == [(n, len(own)) for n in range(1, len(own) + 1)]
        assert -(-size // len(own)) <= chunk
    of = dict(results)
    for group in groups:
        assert sum(-(-of[part.task] // part.parts) for part in group) <= chunk
    assert len(groups) <= 2 * sum(sizes) // chunk + len(sizes) + 1


@given(SIZES, st.integers(50, 1_500), st.data())
def test_a_tree_ends_and_what_is_left_fits(sizes: list[int], chunk: int, data: st.DataObject) -> None:
    """Whatever its steps bring; where they bring what they were asked for, nothing is shortened."""
    modest = data.draw(st.booleans())
    life = Life()
    life.begin(tasks(len(sizes)), chunk_bytes=chunk)
    for n, size in enumerate(sizes):
        life.ends(f"t{n}", "x", size=size)
    if len(sizes) == 1:
        assert life.answer.outcome == "succeeded"
        return
    levels: list[list[TaskId]] = []
    taken: Counter[tuple[TaskId, int]] = Counter()
    while ANSWER not in life.open.states:
        now = life.open
        level = [name for name in reductions(now) if isinstance(now.states[name], Ready)]
        assert level
        levels.append(level)
        for name in level:
            taken.update((part.task, part.part) for part in now.steps[name].of)
            told = command(now, name)
            assert isinstance(told, MakeAnswer)
            assert [one.task for one in told.results] == [part.task for part in told.parts]
        for name in level:
            most = chunk // 2 if modest else 4 * chunk
            life.ends(name, "y", size=data.draw(st.integers(1, max(1, most))))
    assert all(count == 1 for count in taken.values())
    leaves = len(levels[0]) if levels else 0
    steps = sum(map(len, levels))
    assert steps <= max(leaves, len(sizes)) * (max(leaves, len(sizes)) + 1) // 2
    told = command(life.open, ANSWER)
    assert isinstance(told, MakeAnswer)
    if modest:
        left = [life.open.states[one.task].size for one in told.results]  # type: ignore[union-attr]
        assert sum(left) <= chunk
        assert steps <= 2 * max(leaves, len(sizes))
    life.ends(ANSWER, "z")
    assert (life.answer.outcome, set(life.answer.used)) == ("succeeded", {f"t{n}" for n in range(len(sizes))})


def test_too_many_leaves_are_larger_ones() -> None:
    """A hundred results of 10 MB in chunks of 1 KB would be a million steps."""
    groups = grouped([(f"t{n}", 10_000_000) for n in range(100)], 1_024)
    assert len(groups) <= MOST_LEAVES


def test_a_step_of_the_tree_that_fails_makes_a_partial_answer_without_what_it_had() -> None:
    """It says which sub-tasks those are; what the others summed up is joined."""
    life = Life()
    life.begin(tasks(4), chunk_bytes=1_000)
    for n in range(4):
        life.ends(f"t{n}", "x", size=450)
    life.ends("~reduce-1", None)
    life.ends("~reduce-2", "y", size=400)
    told = command(life.open, ANSWER)
    assert isinstance(told, MakeAnswer)
    assert [(one.task, one.outcome) for one in told.results] == [
        ("~reduce-1", "failed"),
        ("~reduce-2", "succeeded"),
    ]
    life.see(SubTaskSucceeded(job=JOB, task=ANSWER, attempt=1, result=Inline(value="z"), cites=("t3", "t0")))
    assert (life.answer.outcome, life.answer.rule) == ("partial", "all_done")
    assert life.answer.reason == "something of t0, t1 is missing, since ~reduce-1 failed"
    assert (life.answer.used, life.answer.cites) == (("t2", "t3"), ("t3",))


@given(
    st.lists(st.booleans(), min_size=1, max_size=10),
    st.sampled_from([None, 1, 2, 3, 10]),
    st.sampled_from([0.0, 0.05, 0.25, 0.5, 1.0]),
    st.sampled_from([0.0, 0.5, 0.9]),
)
def test_early_ends_come_when_the_rule_says(
    good: list[bool], quorum: int | None, fail_fast: float, least: float
) -> None:
    """Neither before nor after, whatever stands in the rest; what is out then is stopped."""
    total = len(good)
    life = Life()
    life.begin(tasks(total), quorum=quorum, fail_fast_ratio=fail_fast, min_success_ratio=least)
    life.job, _ = release(life.open, total, START)
    for n in range(total):
        won, lost = sum(good[: n + 1]), n + 1 - sum(good[: n + 1])
        life.ends(f"t{n}", "x" if good[n] else None)
        enough = quorum is not None and won >= quorum
        stopped = {each.task for each in life.effects if isinstance(each, StopAttempt)}
        if n + 1 < total and not enough and lost > fail_fast * total:
            assert life.answer.rule == "fail_fast"
            assert life.answer.outcome == ("partial" if won and won / total >= least else "failed")
            assert stopped == {f"t{k}" for k in range(n + 1, total)}
            return
        if enough and won < total:
            assert isinstance(life.job, Open)
            assert stopped == {f"t{k}" for k in range(n + 1, total)}
            assert all(isinstance(life.job.states[task], Stopped) for task in stopped)
            assert list(life.job.ready) == [ANSWER]
            life.ends(ANSWER, "z")
            assert (life.answer.rule, life.answer.outcome) == ("quorum", "succeeded")
            ends = {report.task: (report.outcome, report.reason) for report in life.answer.subtasks}
            assert all(ends[task] == ("unfinished", f"{won} results are enough") for task in stopped)
            return
    if isinstance(life.job, Open):
        life.ends(ANSWER, "z")
    won = sum(good)
    if not won or won / total < least:
        assert life.answer.outcome == "failed"
    else:
        assert life.answer.outcome == ("succeeded" if won == total else "partial")


def test_what_a_stopped_attempt_cost_is_counted_once() -> None:
    """Its end is told after it was stopped; its result is not taken, and it is not tried again."""
    life = Life()
    life.begin(tasks(3), quorum=1)
    life.job, _ = release(life.open, 3, START)
    life.ends("t0", "x")
    failed = SubTaskFailed(job=JOB, task="t1", attempt=1, kind="stopped", reason="x")
    late = SubTaskSucceeded(job=JOB, task="t2", attempt=1, result=Inline(value="late"))
    for event in (failed, late, failed, late):
        usage = replace(life.open.usage, calls=2)
        life.see(replace(event, usage=usage))
    assert life.open.usage.calls == 4
    assert isinstance(life.open.states["t1"], Stopped)
    assert isinstance(life.open.states["t2"], Stopped)


def test_a_quorum_cancels_the_child_that_a_sub_task_waits_for() -> None:
    """Nobody needs its answer any more."""
    life = Life()
    life.begin(tasks(2), quorum=1)
    life.see(
        SubTaskSuspended(job=JOB, task="t1", attempt=1, on="child", call="c", child="acme/child", number=1)
    )
    life.ends("t0", "x")
    told = [each.event for each in life.effects if isinstance(each, Tell)]
    assert [(type(each), each.job) for each in told] == [(JobCancelled, "acme/child")]
    assert isinstance(life.open.states["t1"], Stopped)


def test_the_first_success_ends_a_job_and_is_its_answer() -> None:
    """Failures before it do not matter, and the rest is stopped."""
    life = Life()
    life.begin(tasks(4), strategy="first", min_success_ratio=0.9)
    life.job, _ = release(life.open, 4, START)
    life.ends("t2", None)
    life.ends("t1", {"n": 1})
    assert (life.answer.outcome, life.answer.rule, life.answer.used) == ("succeeded", "first", ("t1",))
    assert life.answer.answer == Inline(value={"n": 1})
    assert {each.task for each in life.effects if isinstance(each, StopAttempt)} == {"t0", "t3"}


def test_a_judge_groups_the_votes_and_one_that_fails_leaves_it_to_their_words() -> None:
    """Groups that leave somebody out are no verdict."""
    for verdict, rule in (
        ({"groups": [["t0", "t2"], ["t1"]]}, "vote"),
        ({"groups": [["t0", "t2"]]}, "tie"),
        ({"groups": [["t0", "t1"], ["t1", "t2"]]}, "tie"),
        ("nonsense", "tie"),
        (None, "tie"),
    ):
        life = Life()
        life.begin(tasks(3), strategy="vote", equality="judged")
        for n in range(3):
            life.ends(f"t{n}", f"w{n}", fingerprint=f"{n}:{n}:")
        life.ends("~judge", verdict)
        assert life.answer.rule == rule
        assert ("since no judge has compared them" in life.answer.reason) == (rule == "tie")
        if rule == "tie":
            assert [votes.tasks for votes in life.answer.votes] == [("t0",), ("t1",), ("t2",)]


def test_votes_of_the_same_words_need_no_judge() -> None:
    """It costs nothing to see that they are equal."""
    life = Life()
    life.begin(tasks(2), strategy="vote", equality="judged")
    for n in range(2):
        life.ends(f"t{n}", "Paris", fingerprint=f"{n}:same:")
    assert (life.answer.rule, life.answer.used) == ("vote", ("t0", "t1"))


@pytest.mark.parametrize(
    ("verdict", "keep", "kept", "outcome"),
    [
        ({"order": ["t2", "t0", "t1"]}, 1, ["t2"], "succeeded"),
        ({"order": ["t2", "t0", "t1"]}, 2, ["t2", "t0"], "succeeded"),
        ({"order": ["t2", "t0"]}, 1, ["t0"], "partial"),
        (None, 2, ["t0", "t1"], "partial"),
    ],
)
def test_a_judge_orders_the_candidates(verdict: Any, keep: int, kept: list[str], outcome: str) -> None:
    """The best are the answer: one as it is, several as a list that a lane makes."""
    life = Life()
    life.begin(tasks(3), strategy="rank", keep=keep)
    for n in range(3):
        life.ends(f"t{n}", f"w{n}")
    life.ends("~judge", verdict)
    if keep > 1:
        told = command(life.open, ANSWER)
        assert isinstance(told, MakeAnswer)
        assert [one.task for one in told.results] == kept
        life.ends(ANSWER, "both")
    else:
        assert life.answer.answer == Inline(value=f"w{kept[0][1:]}")
    assert (life.answer.outcome, list(life.answer.used)) == (outcome, kept)


def test_the_best_of_a_quorum_is_the_answer() -> None:
    """A judge orders those that are there, and the best is kept, as it would be of all."""
    life = Life()
    life.begin(tasks(3), strategy="rank", quorum=2)
    life.ends("t0", "zero")
    life.ends("t2", "two")
    life.ends("~judge", {"order": ["t2", "t0"]})
    assert (life.answer.outcome, life.answer.rule, life.answer.used) == ("succeeded", "quorum", ("t2",))
    assert life.answer.answer == Inline(value="two")


def test_a_judge_that_orders_candidates_knows_what_settled_a_contradiction() -> None:
    """It stands beside them, and is no candidate itself."""
    life = Life()
    life.begin(tasks(2), strategy="rank", check=True, tie_break=True)
    life.ends("t0", "zero")
    life.ends("t1", "one")
    life.ends("~check", {"contradictions": [{"tasks": ["t0", "t1"], "about": "x"}]})
    life.ends("~tie", "one holds")
    asked = command(life.open, "~judge")
    assert isinstance(asked, Judge)
    assert [each.task for each in asked.results] == ["t0", "t1", "~tie"]
    life.ends("~judge", {"order": ["~tie", "t1", "t0"]})
    assert (life.answer.outcome, life.answer.used) == ("succeeded", ("t1",))


def test_contradictions_are_settled_by_one_more_sub_task() -> None:
    """Its result goes to the join beside those that contradict; nobody is asked twice."""
    life = Life()
    life.begin(tasks(3), check=True, tie_break=True)
    for n in range(3):
        life.ends(f"t{n}", f"w{n}")
    assert life.open.ready == ("~check",)
    life.ends("~check", {"contradictions": [{"tasks": ["t0", "t2", "nobody"], "about": "the year"}]})
    told = command(life.open, "~tie")
    assert isinstance(told, RunSubTask)
    assert "t0, t2" in told.goal
    assert "the year" not in told.goal  # what a model made of results is data
    assert [one.task for one in told.dep] == ["t0", "t2", "~check"]
    life.ends("~tie", "t2 is right")
    joins = command(life.open, ANSWER)
    assert isinstance(joins, MakeAnswer)
    assert [one.task for one in joins.results] == ["t0", "t1", "t2", "~tie"]
    (found,) = joins.contradictions
    assert (found.tasks, found.about) == (("t0", "t2"), "the year")
    life.ends(ANSWER, "z")
    assert life.answer.contradictions == joins.contradictions
    assert life.answer.used == ("t0", "t1", "t2")


def test_a_check_that_fails_does_not_fail_the_job() -> None:
    """Nor does what should settle a contradiction."""
    life = Life()
    life.begin(tasks(2), check=True, tie_break=True)
    for n in range(2):
        life.ends(f"t{n}", "x")
    life.ends("~check", None)
    life.ends(ANSWER, "z")
    assert (life.answer.outcome, life.answer.contradictions) == ("succeeded", ())


def test_candidates_are_the_plan() -> None:
    """Each with the goal's text and input, their models in turn; no planner is asked."""
    life = Life()
    goal = Goal(
        text=Inline(value="Which year?"),
        input=Inline(value=[1]),
        join=JoinRule(strategy="vote", candidates=3, models=("m", "n")),
        answer_schema={"type": "string"},
    )
    life.see(JobSubmitted(job=JOB, goal=goal, source=SOURCE))
    assert life.open.ready == ("candidate-1", "candidate-2", "candidate-3")
    told = [command(life.open, task) for task in life.open.ready]
    assert [each.model for each in told if isinstance(each, RunSubTask)] == ["m", "n", "m"]
    for each in told:
        assert isinstance(each, RunSubTask)
        assert (each.text, each.input, each.fingerprint) == (goal.text, goal.input, True)
        assert each.schema == {"type": "string"}


def test_citations_of_unknown_sub_tasks_are_not_taken_and_summaries_cite_through() -> None:
    """A summary stands for those that it names, or for all that it was made of."""
    life = Life()
    life.begin(tasks(5), chunk_bytes=1_000)
    for n in range(4):
        life.ends(f"t{n}", "x", size=450)
    life.ends("t4", None)
    for name, cites in (("~reduce-1", ("t1", "t3", "nobody")), ("~reduce-2", ())):
        life.see(
            SubTaskSucceeded(job=JOB, task=name, attempt=1, result=Inline(value="y"), size=400, cites=cites)
        )
    answer = ("t4", "nobody", "~reduce-1", "~reduce-2", "t0")
    life.see(SubTaskSucceeded(job=JOB, task=ANSWER, attempt=1, result=Inline(value="z"), cites=answer))
    assert life.answer.cites == ("t1", "t2", "t3", "t0")
    assert not any(isinstance(state, Released) for state in getattr(life.job, "states", {}).values())


def test_a_spent_budget_does_not_keep_a_lane_from_putting_an_answer_together() -> None:
    """Nor a vote from being counted: neither needs a model."""
    for strategy, rule in (("concat", "all_done"), ("vote", "tie"), ("synthesize", "budget")):
        life = Life()
        goal = Goal(
            text=Inline(value="x"),
            budget=Budget(calls=2),
            join=JoinRule(strategy=strategy),  # type: ignore[arg-type]
        )
        life.see(JobSubmitted(job=JOB, goal=goal, source=SOURCE, plan=tuple(tasks(2))))
        for n in range(2):
            done = SubTaskSucceeded(
                job=JOB, task=f"t{n}", attempt=1, result=Inline(value=n), usage=Usage(calls=1)
            )
            life.see(replace(done, fingerprint=f"{n}:{n}:"))
        if strategy == "concat":
            assert life.open.ready == (ANSWER,)
            life.ends(ANSWER, [0, 1])
        assert life.answer.rule == rule
