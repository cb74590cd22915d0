"""The gate: nothing of a goal is begun before a verdict lets it in, whatever else happens."""

from hypothesis import given

from streams.core.candidates import candidates
from streams.core.events import JobSubmitted, SubTaskFailed, SubTaskSucceeded
from streams.core.gating import GATE
from streams.core.goal import Goal, JoinRule, Limits, Source
from streams.core.job import absorb
from streams.core.plan import SubTask
from streams.core.states import Finished, Job, New, Open
from streams.core.values import PLAN, Inline, Json
from tests.core.histories import JOB, Choices, an_event, choices

GOAL = Goal(text=Inline(value="x"), gate=True, limits=Limits(max_attempts=2))
OURS = (SubTask(id="t0", goal="x"), SubTask(id="t1", goal="y", dep=("t0",)))


def submitted(choices: Choices) -> JobSubmitted:
    """With a plan, candidates, or neither."""
    join = choices.of((JoinRule(), JoinRule(candidates=2, strategy="vote")))
    goal = Goal(text=GOAL.text, gate=True, limits=GOAL.limits, join=join)
    plan = () if join.candidates else choices.of(((), OURS))
    return JobSubmitted(
        job=JOB, goal=goal, source=Source(topic="goals", partition=0, offset=0), plan=plan, at=1, offset=1
    )


@given(choices(200))
def test_nothing_begins_before_the_gate_has_let_it_in(made: Choices) -> None:
    """Events of sub-tasks that cannot be yet change nothing; no verdict but one opens it."""
    event = submitted(made)
    job: Job
    job, effects = absorb(New(), event)
    assert effects == ()
    for offset in range(2, 30):
        if not isinstance(job, Open):
            break
        assert job.ready in {(GATE,), ()}
        assert (set(job.states), set(job.nodes), job.submitted.plan) == ({GATE}, set(), event.plan)
        task = made.of((GATE, GATE, PLAN, "t0", "t1"))
        told = an_event(made, OURS, task, 1 + made.below(3))
        if isinstance(told, SubTaskSucceeded) and task == GATE:
            verdict: Json = made.of((None, {"allow": 1}, {"allow": False}, {"allow": "true"}, [True], "yes"))
            told = SubTaskSucceeded(
                job=JOB, task=GATE, attempt=told.attempt, result=Inline(value=verdict), at=3, offset=offset
            )
        job, _ = absorb(job, told)
    assert not isinstance(job, Finished) or job.outcome in {"rejected", "failed", "cancelled"}


@given(choices(20))
def test_what_is_let_in_begins_as_it_would_without_a_gate(made: Choices) -> None:
    """With its plan, its candidates, or planning; the gate leaves nothing behind but its cost."""
    event = submitted(made)
    gated, _ = absorb(New(), event)
    verdict = SubTaskSucceeded(
        job=JOB, task=GATE, attempt=1, result=Inline(value={"allow": True, "reason": ""}), at=1, offset=1
    )
    job, _ = absorb(gated, verdict)
    assert isinstance(job, Open)
    assert absorb(job, verdict) == (job, ())
    expected = event.plan or candidates(event.goal) or ()
    assert tuple(job.nodes) == tuple(task.id for task in expected)
    assert (PLAN in job.states) is not bool(expected)
    assert GATE not in {*job.states, *job.steps}
    assert job.submitted.plan == ()


def test_a_gate_that_fails_twice_lets_nothing_in() -> None:
    """The job fails, and says why."""
    job: Job
    job, effects = absorb(New(), submitted(Choices(b"")))
    for attempt in (1, 2):
        event = SubTaskFailed(
            job=JOB, task=GATE, attempt=attempt, kind="timeout", reason="no answer", at=2, offset=attempt + 1
        )
        job, effects = absorb(job, event)
    (answer,) = effects
    assert (job.outcome, answer.rule) == ("failed", "gate")  # type: ignore[union-attr]
    assert "no answer" in answer.reason  # type: ignore[union-attr]
