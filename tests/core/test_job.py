"""Laws of a job's life, over histories that a log may hold and over lives driven to their end."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streams.core.answering import ENOUGH
from streams.core.commands import Answer, Bury, StopAttempt, Tell
from streams.core.ending import REPLACED, begun
from streams.core.events import (
    UNREADABLE,
    AttemptOverdue,
    Event,
    JobBroken,
    JobReopened,
    JobSubmitted,
    PlaceGiven,
    Planned,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
)
from streams.core.gating import GATE
from streams.core.goal import Goal, Limits, Source
from streams.core.holding import waits_for_person
from streams.core.job import absorb, fold
from streams.core.money import NOTHING, spent
from streams.core.plan import SubTask
from streams.core.release import places, release
from streams.core.states import (
    Account,
    Backoff,
    Failed,
    Finished,
    Job,
    New,
    Open,
    Ready,
    Released,
    Running,
    Skipped,
    Stopped,
    Succeeded,
    Suspended,
    Waiting,
)
from streams.core.values import ANSWER, NO_USAGE, PLAN, Grant, Inline, Usage
from tests.core.histories import JOB, START, Step, histories, plans, walk

SOURCE = Source(topic="goals", partition=0, offset=7)


def submitted(**goal: object) -> JobSubmitted:
    """The event that opens a job."""
    return JobSubmitted(
        job=JOB,
        goal=Goal(text=Inline(value="x"), **{"digest": "one goal", **goal}),  # type: ignore[arg-type]
        source=SOURCE,
        at=START,
        offset=0,
    )


def opened(*tasks: SubTask, **goal: object) -> Open:
    """A job with this plan."""
    job, _ = fold(New(), submitted(**goal))
    job, _ = fold(job, Planned(job=JOB, task=PLAN, attempt=1, plan=tasks, at=START, offset=1))
    assert isinstance(job, Open)
    return job


@given(histories())
def test_an_event_seen_twice_changes_nothing_and_asks_for_nothing(history: list[Event]) -> None:
    """Redelivery costs nothing; only another goal under a known id is buried each time it comes.

    And a place that comes after the end is returned each time.
    """
    for step in walk(history):
        again, effects = fold(step.after, step.event)
        assert again is step.after
        asked_again = {JobSubmitted: Bury, PlaceGiven: Tell}.get(type(step.event), ())
        assert all(isinstance(effect, asked_again) for effect in effects)


@given(histories())
def test_an_event_that_counted_never_counts_again(history: list[Event]) -> None:
    """However late it comes again; a start of another run than the last one only resets the clock."""
    steps = list(walk(history))
    for step in steps:
        if step.after is step.before:
            continue
        job = steps[-1].after
        after, effects = fold(job, step.event)
        assert not any(isinstance(effect, Answer) for effect in effects)
        if isinstance(step.event, SubTaskStarted):
            assert shape(after) == shape(job)
        else:
            assert after is job


def shape(job: Job) -> object:
    """A job without the clocks and runs of its attempts."""
    if not isinstance(job, Open):
        return job
    states = {
        task: (Running, state.attempt) if isinstance(state, Running) else state
        for task, state in job.states.items()
    }
    return replace(job, states={}), states


@given(histories())
def test_counters_say_what_the_states_say(history: list[Event]) -> None:
    """They are kept in step, so that nothing needs to count."""
    for step in walk(history):
        job = step.after
        if not isinstance(job, Open):
            continue
        kinds = Counter(type(job.states[task]) for task in job.nodes)
        assert (job.succeeded, job.failed, job.skipped) == (
            kinds[Succeeded],
            kinds[Failed],
            kinds[Skipped] + kinds[Stopped],
        )
        assert job.outstanding == sum(isinstance(s, Released | Running) for s in job.states.values())
        assert sorted(job.ready) == sorted(t for t, s in job.states.items() if isinstance(s, Ready))
        at_gate = () if GATE in job.steps else (PLAN,)
        assert set(job.states) - {ANSWER} - set(job.steps) == set(job.nodes or at_gate)
        all_ended = bool(job.nodes) and job.ended == len(job.nodes)
        assert (ANSWER in job.states) <= all_ended
        held = job.decided.hold is not None and "answer" in (job.decided.hold.on, job.decided.hold.then)
        if all_ended and ANSWER not in job.states and not held:  # a step of its join goes before
            assert any(not isinstance(job.states[s], Succeeded | Failed | Stopped) for s in job.steps)


@given(histories())
def test_one_answer_a_revision_when_a_job_finishes_and_none_after(history: list[Event]) -> None:
    """The promise of the whole system, in the small."""
    answers: Counter[int] = Counter()
    for step in walk(history):
        made = [effect for effect in step.effects if isinstance(effect, Answer)]
        answers.update(answer.revision for answer in made)
        assert len(made) == (isinstance(step.after, Finished) and step.after is not step.before)
        if isinstance(step.before, Finished) and step.after is not step.before:
            assert isinstance(step.event, JobReopened | JobSubmitted)
            assert isinstance(step.event, JobReopened) or step.before.outcome == "rejected"
            assert revision(step.after) == step.before.revision + 1
        elif not isinstance(step.before, New):
            assert revision(step.after) == revision(step.before)
        for answer in made:
            assert isinstance(step.after, Finished)
            assert answer.revision == step.after.revision
            assert isinstance(step.after, Finished)
            assert (answer.outcome, answer.answered_at) == (step.after.outcome, step.event.at)
            assert (answer.answer is not None) == (answer.outcome in {"succeeded", "partial"})
            assert (answer.reason == "") == (answer.outcome == "succeeded")
            if answer.rule not in ENOUGH:
                ended = all(t.outcome == "succeeded" or t.reason.endswith(REPLACED) for t in answer.subtasks)
                assert (answer.outcome == "succeeded") <= ended
    assert all(count == 1 for count in answers.values())
    assert sorted(answers) == list(range(1, len(answers) + 1))


def revision(job: Job) -> int:
    """Of the answer that a job has, or is on its way to."""
    assert not isinstance(job, New | Account)
    return job.revision if isinstance(job, Finished) else job.revision.number


@given(histories())
def test_dependencies_come_first(history: list[Event]) -> None:
    """Nothing is ready before all it needs has succeeded; only what needs a failed one is skipped."""
    for step in walk(history):
        if not isinstance(job := step.after, Open):
            continue
        for task, node in job.nodes.items():
            needed = [job.states[dep] for dep in set(node.task.dep)]
            missing = sum(not isinstance(state, Succeeded) for state in needed)
            match job.states[task]:
                case Waiting(missing=told):
                    assert told == missing > 0
                    assert not any(isinstance(state, Failed | Skipped) for state in needed)
                case Skipped(reason=reason):
                    assert any(isinstance(state, Failed | Skipped) for state in needed)
                    assert isinstance(job.states[reason.split()[1]], Failed)
                case Stopped():
                    pass
                case _:
                    assert missing == 0


@given(histories())
def test_attempts_only_rise_and_never_above_the_limit(history: list[Event]) -> None:
    """Each costs money. Every revision has as many again.

    A sub-task that fails before an attempt for which nothing is left failed in the one before that.
    """
    for step in walk(history):
        if isinstance(step.before, Open) and isinstance(step.after, Open):
            job = step.after
            for task, state in job.states.items():
                if state is (before := step.before.states.get(task)):
                    continue
                attempt = getattr(state, "attempt", 0)
                most = job.revision.before(task) + job.submitted.goal.limits.max_attempts
                least = getattr(before, "attempt", 0)
                if isinstance(before, Ready | Backoff) and isinstance(state, Failed):
                    least = begun(before)
                assert least <= attempt <= most


@given(histories())
def test_no_attempt_runs_in_two_revisions(history: list[Event]) -> None:
    """Its key would name two journals. One that no lane could read has not run, and may be redriven."""
    began: dict[tuple[str, int], int] = {}
    for step in walk(history):
        if isinstance(step.before, New) or step.after is step.before:
            continue
        event, now = step.event, revision(step.before)
        if isinstance(event, SubTaskStarted | SubTaskSucceeded | SubTaskFailed | AttemptOverdue) and (
            getattr(event, "kind", "") != UNREADABLE
        ):
            assert began.setdefault((event.task, event.attempt), now) == now
        if isinstance(event, JobReopened) and isinstance(step.after, Open):
            for task, state in step.after.states.items():
                if isinstance(state, Ready | Released):
                    assert (task, state.attempt) not in began


@given(histories())
def test_a_job_opened_again_keeps_what_it_has_and_runs_the_rest(history: list[Event]) -> None:
    """What succeeded stays as it was; of the rest nothing has failed, and the first of it may run."""
    had: dict[str, Succeeded] = {}
    for step in walk(history):
        if isinstance(step.after, Open):
            results = {t: s for t, s in step.after.states.items() if isinstance(s, Succeeded)}
            results = {t: s for t, s in results.items() if t in (*step.after.nodes, ANSWER)}
            if isinstance(step.event, JobReopened) and step.after is not step.before:
                had.pop(ANSWER, None)  # a synthesis is made anew
                assert {task: state.offset for task, state in had.items()}.items() <= {
                    task: state.offset for task, state in results.items()
                }.items()
                assert not any(isinstance(s, Failed | Skipped | Backoff) for s in step.after.states.values())
                held = waits_for_person(step.after) == "answer"
                assert step.after.ready or step.after.outstanding or held
            had = results


@given(histories())
def test_two_who_open_a_job_again_open_it_once(history: list[Event]) -> None:
    """The event names the revision it makes, so the second one changes nothing, however late it comes."""
    counted = Counter(
        step.event.revision
        for step in walk(history)
        if isinstance(step.event, JobReopened) and step.after is not step.before
    )
    assert all(count == 1 for count in counted.values())


@given(histories())
def test_usage_is_the_sum_of_what_was_counted(history: list[Event]) -> None:
    """Every event that moved the job is counted once, and no other.

    So is what was granted to an attempt that is lost, in place of what it would have told.
    """
    counted, lost = NO_USAGE, dict[tuple[str, int], Usage]()
    for step in walk(history):
        event = step.event
        if step.after is not step.before:
            counted += getattr(event, "usage", NO_USAGE)
            if isinstance(event, JobReopened):  # with what attempts cost that ended after their job
                assert event.spent.tokens >= counted.tokens
                counted, lost = event.spent, {}
            elif isinstance(event, AttemptOverdue) and (grant := grant_of(step.before, event.task)):
                lost[event.task, event.attempt] = all_of(grant)
            elif isinstance(event, Planned | SubTaskSucceeded | SubTaskFailed):
                lost.pop((event.task, event.attempt), None)
            for task, attempt in stopped_by(step):  # it may have spent what it had
                suspended = isinstance(step.before, Open) and isinstance(step.before.states[task], Suspended)
                told_now = (task, attempt) == (getattr(event, "task", ""), getattr(event, "attempt", 0))
                if not (suspended or told_now) and (grant := grant_of(step.before, task)):
                    lost[task, attempt] = all_of(grant)
        total = sum(lost.values(), counted)
        told = [effect.usage for effect in step.effects if isinstance(effect, Answer)]
        for usage in (*told, *([spent(step.after)] if isinstance(step.after, Open) else [])):
            assert replace(usage, usd=0.0) == replace(total, usd=0.0)
            assert usage.usd == pytest.approx(total.usd)


def stopped_by(step: Step) -> list[tuple[str, int]]:
    """What was stopped since others' results are enough, and may have been out: sub-tasks and attempts."""
    if not isinstance(step.before, Open):
        return []
    told = [line for effect in step.effects if isinstance(effect, Answer) for line in effect.subtasks]
    now = {line.task for line in told if line.reason.endswith("results are enough")}
    if isinstance(step.after, Open):
        now = {task for task, state in step.after.states.items() if isinstance(state, Stopped)}
    before = step.before.states
    return [(task, getattr(before[task], "attempt", 0)) for task in now if task in before]


def grant_of(job: Job, task: str) -> Grant | None:
    """What the sub-task's present attempt was granted."""
    return getattr(job.states[task], "grant", None) if isinstance(job, Open) else None


def all_of(grant: Grant) -> Usage:
    """The usage of an attempt that spent all of it."""
    calls = grant.calls or 0
    if grant == NOTHING:
        return NO_USAGE
    return Usage(calls=calls, tokens_in=grant.tokens or 0, usd=grant.usd or 0.0, estimated=max(1, calls))


@given(histories())
def test_a_replay_without_pacing_sees_the_same_life(history: list[Event]) -> None:
    """Release moves sub-tasks from Ready to Released at moments that no event tells of."""
    replayed: Job = New()
    paced: Job = New()
    for event in history:
        if isinstance(paced, Open) and (free := places(paced)) > 0:
            paced, _ = release(paced, event.at % (free + 1), event.at)
        paced, effects = fold(paced, event)
        replayed, same = fold(replayed, event)
        # What is out is stopped; without pacing nothing is out that has not begun.
        assert [each for each in effects if not isinstance(each, StopAttempt)] == [
            each for each in same if not isinstance(each, StopAttempt)
        ]
        assert unreleased(paced) == unreleased(replayed)


def unreleased(job: Job) -> object:
    """A job as if nothing of it had been released."""
    if not isinstance(job, Open):
        return job
    states = {
        task: Ready(attempt=state.attempt, grant=state.grant, resume=state.resume)
        if isinstance(state, Released)
        else state
        for task, state in job.states.items()
    }
    return replace(job, states=states, ready=(), outstanding=0)


@given(st.lists(histories(most=12), min_size=2, max_size=3).map(lambda h: [e for part in h for e in part]))
def test_absorb_takes_any_event_on_any_job(history: list[Event]) -> None:
    """Whatever stands on the log, in any order: no event stops a partition."""
    for step in walk(history):
        assert not any("could not be folded" in getattr(effect, "reason", "") for effect in step.effects)


def test_an_event_that_breaks_the_rules_ends_its_job_with_the_reason() -> None:
    """A bug in the rules must neither stop a partition nor hide."""
    job = replace(opened(SubTask(id="a", goal="x"), SubTask(id="b", goal="x", dep=("a",))), nodes={"a": None})  # type: ignore[dict-item]
    event = SubTaskFailed(
        job=JOB, task="a", attempt=1, kind="bug", reason="x", final=True, at=START, offset=5
    )
    after, effects = absorb(job, event)
    assert isinstance(after, Finished)
    answer, bury = effects
    assert isinstance(answer, Answer)
    assert isinstance(bury, Bury)
    assert (answer.outcome, answer.rule) == ("failed", "broken")
    assert "SubTaskFailed could not be folded" in answer.reason == bury.reason


def test_another_goal_under_a_known_id_is_buried_and_both_are_named() -> None:
    """The same goal again is the same job."""
    other = replace(
        submitted(digest="another goal"), source=Source(topic="goals", partition=3, offset=9), offset=8
    )
    running = opened(SubTask(id="a", goal="x"))
    ended, _ = fold(running, JobBroken(job=JOB, reason="test", at=START, offset=6))
    for job in (running, ended):
        assert fold(job, replace(submitted(), offset=8)) == (job, ())
        after, effects = fold(job, other)
        assert after is job
        (bury,) = effects
        assert isinstance(bury, Bury)
        assert bury.source == other.source
        assert "goals[3]@9" in bury.reason
        assert ("goals[0]@7" if job is running else "offset 6") in bury.reason


def test_a_plan_of_another_sub_task_counts_nothing() -> None:
    """It used to leave the sub-task alone and count its usage each time it came."""
    job = opened(SubTask(id="a", goal="x"))
    event = Planned(
        job=JOB,
        task="a",
        attempt=1,
        plan=(SubTask(id="b", goal="x"),),
        usage=Usage(calls=1),
        at=START,
        offset=3,
    )
    assert fold(job, event) == (job, ())


def test_a_dependency_named_twice_is_waited_for_once() -> None:
    """It used to wait for ever."""
    job: Job = opened(SubTask(id="a", goal="x"), SubTask(id="b", goal="x", dep=("a", "a")))
    job, _ = fold(
        job, SubTaskSucceeded(job=JOB, task="a", attempt=1, result=Inline(value=1), at=START, offset=2)
    )
    assert isinstance(job, Open)
    assert job.states["b"] == Ready()


def test_timers_that_come_early_are_ignored_and_late_ones_count() -> None:
    """The orchestrator only estimates the broker's clock."""
    job: Job = opened(SubTask(id="a", goal="x"), limits=Limits(timeout_s=10), deadline_s=60)
    job, _ = fold(job, SubTaskStarted(job=JOB, task="a", attempt=1, run="r", at=START + 100, offset=2))
    overdue = AttemptOverdue(job=JOB, task="a", attempt=1, retry_in=2.0, at=START + 10_099, offset=3)
    assert fold(job, overdue) == (job, ())
    job, _ = fold(job, replace(overdue, at=START + 10_100))
    assert isinstance(job, Open)
    assert job.states["a"] == Backoff(attempt=2, until=START + 12_100)


def test_a_start_in_another_run_resets_the_clock() -> None:
    """A killed worker's attempt goes on elsewhere, and gets its time there."""
    job: Job = opened(SubTask(id="a", goal="x"))
    start = SubTaskStarted(job=JOB, task="a", attempt=1, run="first", at=START, offset=2)
    job, _ = fold(job, start)
    job, _ = fold(job, replace(start, run="second", at=START + 5_000))
    assert isinstance(job, Open)
    assert job.states["a"] == Running(attempt=1, run="second", since=START + 5_000)


@given(plans())
@example((SubTask(id="a", goal="x"),))
def test_a_plan_opens_all_its_sub_tasks(plan: tuple[SubTask, ...]) -> None:
    """Those without dependencies are ready in the plan's order."""
    job = opened(*plan)
    assert job.ready == tuple(task.id for task in plan if not task.dep)
    assert [node.ordinal for node in job.nodes.values()] == list(range(1, len(plan) + 1))


@given(plans())
def test_a_goal_that_brings_a_plan_opens_the_job_that_planning_would(plan: tuple[SubTask, ...]) -> None:
    """At once, for nothing, and with the plan kept once."""
    assert fold(New(), replace(submitted(), plan=plan)) == (opened(*plan), ())
