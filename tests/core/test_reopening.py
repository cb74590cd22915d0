"""What a job has when it is opened again, case by case."""

from dataclasses import replace

from streams.core.admission import problems
from streams.core.events import (
    UNREADABLE,
    ApprovalGiven,
    AttemptOverdue,
    DeadlinePassed,
    Event,
    JobReopened,
    JobSubmitted,
    Planned,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
    Tried,
)
from streams.core.goal import Budget, Goal, JoinRule, Limits, Source
from streams.core.job import absorb
from streams.core.plan import SubTask
from streams.core.reopening import reopening, standing
from streams.core.results import JOB_EVENTS
from streams.core.states import Finished, Job, Open, Ready, Released, Succeeded, Waiting
from streams.core.values import INLINE_SET_BYTES, PLAN, Grant, Inline, Reference, Usage

JOB = "acme/boats"
SOURCE = Source(topic="goals", partition=0, offset=7)
PLAN_OF_TWO = (SubTask(id="a", goal="x"), SubTask(id="b", goal="y", dep=("a",)))
ONE = Usage(calls=1)


def log_of(*events: Event) -> tuple[list[Event], Job]:
    """The events as they stand on the log, a second after one another, and the job they lead to."""
    placed = [replace(event, at=1_000 * (n + 1), offset=n) for n, event in enumerate(events)]
    return placed, standing(placed, None)


def submitted(**goal: object) -> JobSubmitted:
    """The event that opens the job, with its plan."""
    strict: dict[str, object] = {"join": JoinRule(min_success_ratio=1.0), "digest": "one"}
    made = Goal(text=Inline(value="x"), **(strict | goal))  # type: ignore[arg-type]
    return JobSubmitted(job=JOB, goal=made, source=SOURCE, plan=PLAN_OF_TWO)


def succeeded(task: str, attempt: int = 1, **more: object) -> SubTaskSucceeded:
    """A result."""
    value: dict[str, object] = {"result": Inline(value=task), "size": 3, "usage": ONE}
    return SubTaskSucceeded(job=JOB, task=task, attempt=attempt, **(value | more))  # type: ignore[arg-type]


def failed(task: str, attempt: int = 1, kind: str = "refused") -> SubTaskFailed:
    """An attempt fails for good."""
    return SubTaskFailed(job=JOB, task=task, attempt=attempt, kind=kind, reason="no", final=True, usage=ONE)


def opened(events: list[Event], job: Job, **options: object) -> tuple[JobReopened, Open]:
    """The event that opens the job again, and the job that it opens."""
    assert isinstance(job, Finished)
    event = reopening(events, job, **options)  # type: ignore[arg-type]
    assert event is not None
    after, effects = absorb(job, replace(event, at=99_000, offset=len(events)))
    assert effects == ()
    assert isinstance(after, Open)
    return event, after


def test_a_result_that_came_after_the_time_of_its_attempt_is_kept() -> None:
    """It was ignored then, since the attempt had been given up; it was paid for all the same."""
    events, job = log_of(
        submitted(limits=Limits(max_attempts=1, timeout_s=0.5)),
        SubTaskStarted(job=JOB, task="a", attempt=1, run="r"),
        AttemptOverdue(job=JOB, task="a", attempt=1),
        succeeded("a"),
        succeeded("a"),
    )
    event, after = opened(events, job)
    assert [(kept.task, kept.attempt, kept.offset) for kept in event.kept] == [("a", 1, 3)]
    assert event.spent == ONE
    assert after.states == {
        "a": Succeeded(attempt=1, result=Inline(value="a"), size=3, offset=3),
        "b": Ready(attempt=1),
    }


def test_a_plan_that_came_after_the_end_is_kept() -> None:
    """And one that breaks the rules is not."""
    for plan, ready in ((PLAN_OF_TWO, ("a",)), ((SubTask(id="b", goal="y", dep=("a",)),), (PLAN,))):
        events, job = log_of(
            replace(submitted(deadline_s=1.0), plan=()),
            DeadlinePassed(job=JOB),
            Planned(job=JOB, task=PLAN, attempt=1, plan=plan, usage=ONE),
        )
        event, after = opened(events, job)
        assert event.spent == ONE
        assert after.ready == ready
        assert bool(after.nodes) == (not problems(plan, max_subtasks=100))


def test_only_a_command_of_which_nothing_ran_is_out_again() -> None:
    """Another one would run an attempt a second time: its sub-task gets a new command."""
    told: tuple[tuple[tuple[Event, ...], int], ...] = (
        ((failed("a", kind=UNREADABLE),), 1),
        ((SubTaskStarted(job=JOB, task="a", attempt=1, run="r"), failed("a", kind=UNREADABLE)), 2),
        ((failed("a"),), 2),
        ((AttemptOverdue(job=JOB, task="a", attempt=1),), 2),
    )
    for ends, attempt in told:
        events, job = log_of(submitted(limits=Limits(max_attempts=1)), *ends)
        event, after = opened(events, job, redriven=[("a", 1), ("b", 1), ("nobody", 1)])
        assert event.redriven == (("a",) if attempt == 1 else ())
        assert event.tried == (Tried(task="a", attempt=1),)
        out = Released(attempt=1, at=99_000) if attempt == 1 else Ready(attempt=2)
        assert after.states == {"a": out, "b": Waiting(missing=1)}
        assert after.outstanding == (attempt == 1)


def test_a_redriven_attempt_that_fails_is_followed_by_as_many_as_at_first() -> None:
    """It never had its turn."""
    events, job = log_of(submitted(limits=Limits(max_attempts=2)), failed("a", kind=UNREADABLE))
    _, after = opened(events, job, redriven=[("a", 1)])
    now: Job = after
    for attempt in (1, 2):
        now, _ = absorb(now, replace(failed("a", attempt), final=False, at=99_500, offset=9))
        assert isinstance(now, Open)
        assert now.states["a"] == Ready(attempt=attempt + 1)
    now, _ = absorb(now, replace(failed("a", 3), final=False, at=99_500, offset=9))
    assert isinstance(now, Finished)
    assert now.revision == 2


def test_results_too_large_for_one_event_are_kept_where_they_stand() -> None:
    """By claim check to the events that brought them."""
    plan = tuple(SubTask(id=f"t{n}", goal="x") for n in range(3))
    size = INLINE_SET_BYTES // 2
    events, job = log_of(
        replace(submitted(), plan=plan),
        succeeded("t0", size=size + 1),
        succeeded("t1", size=size),
        failed("t2"),
    )
    event, _ = opened(events, job)
    first, second = event.kept
    assert isinstance(first.result, Reference)
    assert (first.result.topic, first.result.offsets, first.result.size) == (JOB_EVENTS, (1,), size + 1)
    assert second.result == Inline(value="t1")


def test_a_job_without_its_beginning_is_not_opened() -> None:
    """The log is past its retention, or its row is of another goal."""
    events, job = log_of(submitted(), failed("a"))
    assert isinstance(job, Finished)
    assert reopening(events[1:], job) is None
    assert reopening((), job) is None
    assert reopening(events, replace(job, digest="another")) is None


def test_the_row_of_a_job_counts_more_than_its_log() -> None:
    """An event that could not be committed was not folded, and its job broke: what it brought is there."""
    events, job = log_of(submitted(), succeeded("a"), succeeded("b"))
    assert isinstance(job, Open)
    marker = Finished(digest="one", outcome="failed", offset=3, at=4_000)
    assert standing(events, marker) == marker
    event = reopening(events, marker)
    assert event is not None
    assert [kept.task for kept in event.kept] == ["a", "b"]


def test_where_the_log_lacks_the_beginning_the_event_opens_the_job() -> None:
    """A table that is rebuilt from what is left of the log has the job all the same."""
    events, job = log_of(submitted(), failed("a"))
    event, after = opened(events, job)
    rebuilt = standing([replace(event, at=99_000, offset=2)], None)
    assert rebuilt == after


def test_an_event_of_another_job_is_buried() -> None:
    """Its rows would be another's."""
    events, job = log_of(submitted(), failed("a"))
    event, _ = opened(events, job)
    after, effects = absorb(job, replace(event, job="acme/ships", at=99_000, offset=2))
    assert after is job
    assert len(effects) == 1


def test_what_was_granted_to_attempts_that_never_told_is_spent_when_the_job_goes_on() -> None:
    """Those that had begun; what began nowhere, or told its end too late, is not guessed at."""
    plan = tuple(SubTask(id=f"t{n}", goal="x") for n in range(4))
    started = [SubTaskStarted(job=JOB, task=task, attempt=1, run="r") for task in ("t0", "t1", "t2")]
    events, job = log_of(
        replace(submitted(budget=Budget(calls=50, tokens=500_000), deadline_s=1.0), plan=plan),
        *started,
        AttemptOverdue(job=JOB, task="t2", attempt=1, retry_in=9.0),
        DeadlinePassed(job=JOB),
        succeeded("t1"),
    )
    event, after = opened(events, job)
    told, lost, silent = ONE, *[Usage(calls=10, tokens_in=100_000, estimated=10)] * 2
    assert event.spent == told + lost + silent
    assert [kept.task for kept in event.kept] == ["t1"]
    assert {task: state.grant for task, state in after.states.items() if isinstance(state, Ready)} == {
        task: Grant(calls=7, tokens=75_000) for task in ("t0", "t2", "t3")
    }


def test_a_late_result_is_kept_though_its_cost_is_counted_already() -> None:
    """Once, in place of what was granted to it."""
    events, job = log_of(
        submitted(limits=Limits(max_attempts=2, timeout_s=0.5), budget=Budget(calls=30)),
        SubTaskStarted(job=JOB, task="a", attempt=1, run="r"),
        AttemptOverdue(job=JOB, task="a", attempt=1),
        succeeded("a"),
        succeeded("a"),
        failed("a", 2),
    )
    event, after = opened(events, job)
    assert [(kept.task, kept.attempt, kept.offset) for kept in event.kept] == [("a", 1, 3)]
    assert event.spent == ONE + ONE
    assert isinstance(after.states["a"], Succeeded)


def test_a_command_with_a_grant_is_not_given_again() -> None:
    """What it was granted may be spent by now: its sub-task gets a new command, with what is left."""
    events, job = log_of(
        submitted(limits=Limits(max_attempts=1), budget=Budget(calls=30)), failed("a", kind=UNREADABLE)
    )
    event, after = opened(events, job, redriven=[("a", 1)])
    assert event.redriven == ()
    assert after.states["a"] == Ready(attempt=2, grant=Grant(calls=9))


def test_a_word_that_was_heard_before_counts_no_more_when_it_is_told_again() -> None:
    """A person is asked for the next answer anew; what intake told twice is no answer to that."""
    word = ApprovalGiven(job=JOB, by="ada", source=Source(topic="goals", partition=0, offset=8))
    held = submitted(approve=("answer",), join=JoinRule(min_success_ratio=0.0, strategy="concat"))
    events, job = log_of(held, succeeded("a"), failed("b"), succeeded("answer"), word)
    assert isinstance(job, Finished)
    assert job.outcome == "partial"
    event, after = opened(events, job)
    assert event.heard == (word.source,)
    waiting, _ = absorb(after, replace(succeeded("b", 2), at=100_000, offset=9))
    waiting, _ = absorb(waiting, replace(succeeded("answer", 2), at=100_000, offset=10))
    assert isinstance(waiting, Open)
    assert waiting.decided.hold is not None
    assert absorb(waiting, replace(word, at=100_000, offset=11)) == (waiting, ())
    other = replace(word, source=Source(topic="goals", partition=0, offset=9), at=100_000, offset=12)
    assert isinstance(absorb(waiting, other)[0], Finished)


def test_a_plan_that_came_too_late_takes_no_names_from_the_job() -> None:
    """The gate has let it in before: it is not asked again under the name of what has run."""
    events, job = log_of(
        replace(submitted(gate=True, limits=Limits(max_attempts=1, timeout_s=0.5)), plan=()),
        succeeded("~gate", result=Inline(value={"allow": True, "reason": ""})),
        SubTaskStarted(job=JOB, task=PLAN, attempt=1, run="r"),
        AttemptOverdue(job=JOB, task=PLAN, attempt=1),
        Planned(job=JOB, task=PLAN, attempt=1, plan=PLAN_OF_TWO, usage=ONE),
    )
    event, after = opened(events, job)
    assert event.plan == PLAN_OF_TWO
    assert Tried(task=PLAN, attempt=1) in event.tried
    assert after.states == {"a": Ready(attempt=1), "b": Waiting(missing=1)}
