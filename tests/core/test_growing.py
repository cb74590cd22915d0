"""Plans that grow, are planned again, and whose sub-tasks share notes: what holds whatever is proposed."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from streams.core.admission import MAX_REASONS, problems
from streams.core.commands import Answer, RunSubTask
from streams.core.ending import REPLACED
from streams.core.events import Event, JobReopened, NoteWritten, Planned, SubTaskFailed, SubTaskSucceeded
from streams.core.goal import Goal, Limits
from streams.core.job import absorb, fold
from streams.core.notes import MERGED, MOST_TOPICS, NOTE_BYTES, NOTES_BYTES, seen
from streams.core.plan import Plan, SubTask
from streams.core.release import command, places, release
from streams.core.states import Finished, Job, New, Open, Ready, Succeeded
from streams.core.values import ANSWER, PLAN, Inline, Json
from streams.damage import untrue
from tests.core.histories import JOB, START, Choices, choices, histories, walk
from tests.core.test_job import submitted


@given(histories())
def test_a_plan_stays_one_whatever_is_proposed(history: list[Event]) -> None:
    """It keeps every rule of plans, its cap, and the sub-tasks that it has; each waits for what it needs."""
    for step in walk(history):
        job = step.after
        if not isinstance(job, Open) or not job.nodes:
            continue
        plan = tuple(node.task for node in job.nodes.values())
        assert problems(plan, max_subtasks=job.submitted.goal.limits.max_subtasks) == ()
        assert untrue(job, len(plan)) == ""
        assert len(job.decided.refused) <= MAX_REASONS + 1
        if isinstance(step.before, Open) and not isinstance(step.event, JobReopened):
            before = [*step.before.nodes]
            assert [*job.nodes][: len(before)] == before
            assert all(job.nodes[name].ordinal == step.before.nodes[name].ordinal for name in before)


@given(histories())
def test_who_waits_for_a_sub_task_waits_for_what_it_proposed(history: list[Event]) -> None:
    """So what puts a list's results together sees all of them."""
    for step in walk(history):
        if not isinstance(step.before, Open) or not isinstance(step.after, Open):
            continue
        if isinstance(step.event, JobReopened):
            continue
        for name in step.after.nodes.keys() - step.before.nodes.keys():
            parent = step.after.nodes[name].task.parent
            if parent is None:
                continue
            waited = [one for one in step.before.nodes[parent].dependants if one in step.before.states]
            for one in waited:
                skipped = type(step.before.states[one]).__name__ in {"Skipped", "Stopped"}
                assert skipped or name in step.after.nodes[one].task.dep


@given(histories())
def test_a_planner_is_asked_again_so_often_at_most(history: list[Event]) -> None:
    """And what it took the place of has no result, and stays replaced."""
    for step in walk(history):
        job = step.after
        if not isinstance(job, Open):
            continue
        asked = [name for name, each in job.steps.items() if each.role == "replan"]
        most = job.submitted.goal.limits.max_replans if job.submitted.goal.on_failure == "replan" else 0
        assert job.decided.replans == len(asked) <= most
        assert not any(isinstance(job.states[name], Succeeded) for name in job.decided.replaced)
        if isinstance(step.before, Open) and not isinstance(step.event, JobReopened):
            now = job.decided.replaced
            assert now[: len(step.before.decided.replaced)] == step.before.decided.replaced


@settings(max_examples=30, deadline=None)
@given(choices(300))
def test_a_runaway_plan_ends_at_its_cap(made: Choices) -> None:
    """Each sub-task proposes as many more as it is told that it may, and a few too many now and then."""
    most = 2 + made.below(20)
    goal = Goal(
        text=Inline(value="more"), digest="one", grow=True, limits=Limits(max_subtasks=most, concurrency=4)
    )
    job, _ = fold(New(), replace(submitted(), goal=goal))
    job, _ = fold(job, Planned(job=JOB, task=PLAN, attempt=1, plan=(task("a"),), at=START, offset=1))
    for offset in range(2, 3 * most + 9):
        if isinstance(job, Finished):
            break
        assert isinstance(job, Open)
        job, orders = release(job, places(job), START)
        assert orders or job.outstanding
        out = [name for name, state in job.states.items() if hasattr(state, "at")]
        name = made.of(out)
        offered = places_of(job, name)
        if made.below(6) == 5:
            offered += 1
        proposed = tuple(task(f"{name}-{n}", parent=name) for n in range(1, offered + 1))
        job, _ = fold(job, done(name, offset, proposed if name != ANSWER else ()))
        assert not isinstance(job, Open) or len(job.nodes) <= most
    assert isinstance(job, Finished)
    assert job.outcome == "succeeded"


def places_of(job: Open, name: str) -> int:
    """What the command of a sub-task said that it may propose."""
    ready: Job = replace(job, states={**job.states, name: Ready()}, ready=(*job.ready, name))
    assert isinstance(ready, Open)
    order = command(ready, name)
    return order.growth if isinstance(order, RunSubTask) else 0


def test_a_sub_task_that_may_propose_is_never_alone() -> None:
    """Its result is one of those that are joined, also where it proposes nothing in the end."""
    goal = Goal(text=Inline(value="more"), digest="one", grow=True)
    job, _ = fold(New(), replace(submitted(), goal=goal, plan=(task("a"),)))
    assert isinstance(job, Open)
    order = command(job, "a")
    assert isinstance(order, RunSubTask)
    assert (order.alone, order.growth) == (False, 99)
    job, _ = fold(job, done("a", 1, ()))
    assert isinstance(job, Open)
    assert ANSWER in job.states


def test_what_another_plan_took_the_place_of_counts_no_more() -> None:
    """The answer is whole, and its line says so; the next planner knows what succeeded."""
    goal = Goal(text=Inline(value="count"), digest="one", on_failure="replan", limits=Limits(max_attempts=1))
    job, _ = fold(New(), replace(submitted(), goal=goal, plan=(task("a"), task("b"), task("c", dep=("b",)))))
    job, _ = fold(job, done("a", 1, ()))
    failed = SubTaskFailed(
        job=JOB, task="b", attempt=1, kind="refused", reason="no boats", at=START, offset=2
    )
    job, _ = fold(job, failed)
    assert isinstance(job, Open)
    order: Any = command(job, "~replan-1")
    assert (order.failure, order.max_subtasks) == ("b: refused: no boats", 97)
    assert [(one.task, one.outcome) for one in order.known] == [
        ("a", "succeeded"), ("b", "failed"), ("c", "skipped"),
    ]  # fmt: skip
    plan = (task("d", dep=("a",)),)
    job, _ = fold(job, Planned(job=JOB, task="~replan-1", attempt=1, plan=plan, at=START, offset=3))
    job, _ = fold(job, done("d", 4, ()))
    assert isinstance(job, Open)
    joined: Any = command(job, ANSWER)
    assert [one.task for one in joined.results] == ["a", "d"]
    after, [answer] = fold(job, done(ANSWER, 5, ()))
    assert isinstance(after, Finished)
    assert isinstance(answer, Answer)
    assert (answer.outcome, answer.replans) == ("succeeded", 1)
    assert [line.reason for line in answer.subtasks] == [
        "", f"refused: no boats; {REPLACED}", f"skipped: b failed; {REPLACED}", "",
    ]  # fmt: skip


WRITERS = ("a", "b", "c")


def a_write(made: Choices, offset: int) -> NoteWritten:
    """Somebody writes something, having seen some version."""
    return NoteWritten(
        job=JOB,
        task=made.of((*WRITERS, "quiet")),
        attempt=made.of((1, 1, 1, 2)),
        call=f"call-{made.below(9)}",
        topic=made.of(("boats", "names")),
        value=Inline(value=made.of((1, True, "two", {"three": [3]}, {MERGED: [1, 2]}, made.below(99)))),
        base=made.below(5),
        size=made.of((9, 9, 9, NOTE_BYTES, NOTE_BYTES + 1)),
        at=START,
        offset=offset,
    )


def writing() -> Open:
    """A job whose sub-tasks write notes."""
    plan = (*(task(name, notes=True) for name in WRITERS), task("quiet"))
    job, _ = fold(
        New(), replace(submitted(), goal=Goal(text=Inline(value="x"), digest="one", notes=True), plan=plan)
    )
    assert isinstance(job, Open)
    return job


@given(choices(250))
def test_notes_are_never_overwritten_unseen(made: Choices) -> None:
    """What stands in a note goes only where its writer has seen the newest version; all within the bounds."""
    job, events = writing(), [a_write(made, offset) for offset in range(1, 2 + made.below(30))]
    for event in events:
        before = job.notes.get(event.topic)
        after, effects = fold(job, event)
        assert isinstance(after, Open)
        assert effects == ()
        assert fold(after, event) == (after, ())
        if after.notes is not job.notes:
            note = after.notes[event.topic]
            assert note.version == (before.version if before else 0) + 1
            if before is not None and event.base != before.version:
                assert {*map(repr, parts(before.value.value))} <= {*map(repr, parts(note.value.value))}  # type: ignore[union-attr]
        job = after
    assert sum(note.size for note in job.notes.values()) <= NOTES_BYTES
    for event in events:  # whatever comes again changes nothing
        assert fold(job, event)[0] is job or "quiet" in event.task or event.attempt != 1


def parts(value: Json) -> list[Json]:
    """What stands side by side in a note."""
    if isinstance(value, dict) and set(value) == {MERGED} and len(value[MERGED]) > 1:
        return list(value[MERGED])
    return [value]


@given(st.permutations(range(4)))
def test_a_conflict_comes_to_the_same_values_in_any_order(order: list[int]) -> None:
    """Only the order in which they stand is the log's."""
    job: Job = writing()
    for offset, number in enumerate(order, 1):
        write = a_write(Choices(b""), offset)
        job, _ = fold(
            job, replace(write, task=WRITERS[number % 3], call=f"c{number}", value=Inline(value=number))
        )
    assert isinstance(job, Open)
    value: Any = job.notes["boats"].value
    assert value.value == {MERGED: order}


def test_there_are_so_many_topics_and_the_answer_says_so() -> None:
    """One more is refused, once however often it comes."""
    job: Job = writing()
    for offset in range(MOST_TOPICS + 1):
        write = replace(a_write(Choices(b""), offset), topic=f"topic-{offset}", call=f"c{offset}")
        job, _ = fold(job, write)
        job, _ = fold(job, write)
    assert isinstance(job, Open)
    assert len(job.notes) == MOST_TOPICS
    assert job.decided.refused == (f"a: note 'topic-{MOST_TOPICS}': there are {MOST_TOPICS} topics already",)


@given(histories())
def test_a_command_shows_the_notes_up_to_its_offset(history: list[Event]) -> None:
    """So a replay of the log as far as that sees the same."""
    for step in walk(history):
        if not isinstance(step.after, Open) or not step.after.notes:
            continue
        shown, upto = seen(step.after)
        job: Job = New()
        for event in history:
            if event.offset <= upto:
                job, _ = absorb(job, event)
        assert isinstance(job, Open)
        assert seen(job) == (shown, upto)


def task(name: str, **fields: Any) -> SubTask:
    """A sub-task of this name."""
    return SubTask(id=name, goal=f"do {name}", **fields)


def done(name: str, offset: int, proposed: Plan) -> SubTaskSucceeded:
    """A sub-task succeeds in its first attempt."""
    value = Inline(value=name)
    return SubTaskSucceeded(
        job=JOB, task=name, attempt=1, result=value, size=9, proposed=proposed, at=START, offset=offset
    )
