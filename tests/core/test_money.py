"""Laws of a job's budget: whatever its attempts do within their grants, they never spend more together."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings

from streams.core.commands import Answer, Command, Effect, RunSubTask
from streams.core.events import (
    BUDGET,
    ApprovalGiven,
    AttemptOverdue,
    Event,
    HedgeDue,
    JobSubmitted,
    Planned,
    RetryDue,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
    SubTaskSuspended,
)
from streams.core.goal import Budget, Goal, Limits, Source, TenantRules
from streams.core.granting import AT_FIRST, CALLS, CALLS_WITH_TOOLS, MARGIN, TOKENS
from streams.core.job import fold
from streams.core.money import spent
from streams.core.plan import SubTask
from streams.core.release import places, release
from streams.core.states import Backoff, Failed, Finished, Job, New, Open, Ready, Released, Running, Suspended
from streams.core.values import ANSWER, NO_USAGE, PLAN, STEP, Grant, Inline, TaskId, Usage
from tests.core.histories import JOB, START, Choices, a_goal, a_plan, choices

SOURCE = Source(topic="goals", partition=0, offset=0)
BILLION = 1_000_000_000
MINUTE = 60_000
WHAT = ("calls", "tokens", "usd")


def dollars(usd: float) -> Fraction:
    """Whole billionths of a dollar."""
    return Fraction(round(usd * BILLION), BILLION)


@dataclass(kw_only=True)
class Spender:
    """Lanes that spend what they were granted, or a part of it, whether or not they live to tell it.

    Attributes:
        spent: What really was, by attempt.
        whole: What attempts will have spent that are suspended.
        owners: By sub-task whose own budget it spends.
        untold: Ended attempts whose job has not heard of it.
    """

    choices: Choices
    job: Job = field(default_factory=New)
    at: int = START
    events: int = 0
    commands: list[Command] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    spent: dict[tuple[TaskId, int], Usage] = field(default_factory=dict)
    whole: dict[tuple[TaskId, int], Usage] = field(default_factory=dict)
    owners: dict[TaskId, TaskId] = field(default_factory=dict)
    untold: list[tuple[TaskId, int]] = field(default_factory=list)

    def see(self, event: Event) -> None:
        """Fold the event, a minute later than the one before."""
        self.at += MINUTE
        self.events += 1
        self.job, effects = fold(self.job, replace(event, at=self.at, offset=self.events))
        self.answers += [effect for effect in effects if isinstance(effect, Answer)]

    def go_on(self, plan: tuple[SubTask, ...]) -> None:
        """Let something go, or let something that is out move on; now and then a late word comes."""
        job = self.job
        assert isinstance(job, Open)
        free = places(job)
        moving = [
            (task, state)
            for task, state in job.states.items()
            if isinstance(state, Released | Running | Backoff | Suspended)
        ]
        assert free > 0 or moving, f"stuck: {job.states}"
        if self.untold and self.choices.below(4) == 3:
            task, attempt = self.choices.of(self.untold)
            kind = self.choices.of((BUDGET, "timeout"))
            usage = self.spent[task, attempt]
            self.see(
                SubTaskFailed(job=JOB, task=task, attempt=attempt, kind=kind, reason="late", usage=usage)
            )
        elif free > 0 and (not moving or self.choices.below(2)):
            self.job, commands = release(job, 1 + self.choices.below(free), self.at)
            self.commands += commands
            for order in commands:
                self.begin(order)
        else:
            task, state = self.choices.of(moving)
            self.move(task, state, plan)

    def begin(self, order: Command) -> None:
        """It will spend a part of its grant, or what it had not spent before it was suspended."""
        name = order.task, order.attempt
        self.spent[name] = self.whole.pop(name) if name in self.whole else self.part_of(order.grant)
        if isinstance(order, RunSubTask):
            self.owners[order.task] = order.hedge_of or order.task

    def move(
        self, task: TaskId, state: Released | Running | Backoff | Suspended, plan: tuple[SubTask, ...]
    ) -> None:
        """One attempt starts, ends, waits, is hedged or lost; what it spent was spent all the same."""
        name: dict[str, Any] = {"job": JOB, "task": task, "attempt": state.attempt}
        fate = self.choices.below(13)
        if isinstance(state, Backoff):
            self.see(RetryDue(**name))
            return
        if isinstance(state, Suspended):
            self.see(ApprovalGiven(job=JOB, what="tools", task=task))
            return
        usage = self.spent[task, state.attempt]
        if fate < 2:
            number = 0 if state.resume is None else state.resume.number
            self.see(SubTaskStarted(**name, run=self.choices.of(("r", "s")), number=number))
        elif fate < 5 and task == PLAN:
            self.see(Planned(**name, plan=plan, usage=usage))
        elif fate < 5:
            size = self.choices.of((9, 9, 90_000))
            self.see(SubTaskSucceeded(**name, result=Inline(value=task), size=size, usage=usage))
        elif fate < 8:
            kind, final = self.choices.of((("refused", False), (BUDGET, True), ("refused", True)))
            wait = self.choices.of((0.0, 3.0))
            self.see(SubTaskFailed(**name, kind=kind, reason="no", final=final, retry_in=wait, usage=usage))
        elif fate < 10:
            number = 0 if state.resume is None else state.resume.number
            self.untold.append((task, state.attempt))
            self.see(AttemptOverdue(**name, retry_in=self.choices.of((0.0, 3.0)), number=number))
        elif fate < 12:
            self.see(HedgeDue(**name, after_ms=0))
        elif task in self.owners:
            self.suspend(name, usage, 1 if state.resume is None else state.resume.number + 1)

    def suspend(self, name: dict[str, Any], usage: Usage, number: int) -> None:
        """It waits for a person; some of what it will spend is spent by then."""
        place = name["task"], name["attempt"]
        so_far = Usage(calls=usage.calls // 2, tokens_in=usage.tokens_in // 2)
        self.whole[place], self.spent[place] = usage, so_far
        self.see(
            SubTaskSuspended(
                **name, on="approval", call="c", tool="t", journal=(), number=number, so_far=so_far
            )
        )

    def part_of(self, grant: Grant | None) -> Usage:
        """Some of it, now and then all."""
        assert grant is not None

        def part(whole: float | None) -> int:
            most = 5 if whole is None else int(whole)
            return self.choices.of((most, most, most // 2, most // 3, 0, min(most, 1)))

        tokens = part(grant.tokens)
        usd = part(None if grant.usd is None else grant.usd * BILLION) / BILLION
        return Usage(calls=part(grant.calls), tokens_in=tokens - tokens // 3, tokens_out=tokens // 3, usd=usd)


def limits_of(budget: Budget | Grant) -> Iterator[tuple[str, Fraction]]:
    """What is limited, and to how much."""
    for what in WHAT:
        if (most := getattr(budget, what)) is not None:
            yield what, dollars(most) if what == "usd" else Fraction(most)


def amount(usage: Usage | Grant, what: str) -> Fraction:
    """Of calls, tokens or dollars."""
    value = getattr(usage, what) or 0
    return dollars(value) if what == "usd" else Fraction(value)


def poor_goal(made: Choices) -> Goal:
    """A goal with at least one limit on what it may spend."""
    budget = Budget(
        tokens=made.of((None, 60, 9_000, 40_000, 300_000)),
        usd=made.of((None, 0.1, 1.0, 0.000_000_007)),
        calls=made.of((1, 3, 10, 37, None)),
    )
    if made.below(2):
        subtask = Grant(calls=made.of((None, 1, 4)), tokens=made.of((None, 9_000)), usd=made.of((None, 0.05)))
        budget = replace(budget, subtask=subtask)
    if not budget.limited:
        budget = Budget(calls=7)
    goal = replace(a_goal(made), budget=budget, deadline_s=None, tools=made.of(((), ("look",))))
    goal = replace(goal, rules=TenantRules(), approve=(), gate=False)
    return replace(goal, limits=replace(goal.limits, concurrency=made.of((1, 2, 4, 32))))


@settings(max_examples=300)
@given(choices(500))
def test_grants_and_what_is_spent_are_never_more_than_the_budget(made: Choices) -> None:
    """With lost attempts, retries and late words, in whatever order; and it never gets stuck."""
    goal = poor_goal(made)
    plan = a_plan(made)
    free_of_charge = made.below(len(plan) + 1)  # this one calls a tool and no model
    plan = tuple(
        replace(task, goal="", tool="look") if place == free_of_charge else task
        for place, task in enumerate(plan)
    )
    lanes = Spender(choices=made)
    lanes.see(JobSubmitted(job=JOB, goal=goal, source=SOURCE, plan=plan if made.below(4) == 3 else ()))
    most = 6 * goal.limits.max_attempts * (len(plan) + 2)
    while isinstance(job := lanes.job, Open) and most:
        most -= 1
        grants = [getattr(state, "grant", None) for state in job.states.values()]
        for what, limit in limits_of(goal.budget):
            reserved = sum((amount(grant, what) for grant in grants if grant is not None), Fraction())
            assert reserved + amount(spent(job), what) <= limit
        lanes.go_on(plan)
        # What was suspended keeps its grant, but no place.
        begun = (state for state in job.states.values() if isinstance(state, Ready | Released | Running))
        assert (
            sum(each.grant is not None and each.resume is None for each in begun) <= goal.limits.concurrency
        )
    for what, limit in limits_of(goal.budget):
        # What was spent untold, and by attempts that outlive their job, is within it as well.
        assert sum((amount(usage, what) for usage in lanes.spent.values()), Fraction()) <= limit
    for what, limit in limits_of(goal.budget.subtask or Grant()):
        of_each: dict[TaskId, Fraction] = {}
        for (task, _), usage in lanes.spent.items():
            if (owner := lanes.owners.get(task)) is not None and not owner.startswith(STEP):
                of_each[owner] = of_each.get(owner, Fraction()) + amount(usage, what)
        assert all(spent_ <= limit for spent_ in of_each.values()), "a sub-task spent more than its own"
    for order in lanes.commands:
        assert order.grant is not None
        assert {what for what, _ in limits_of(goal.budget)} <= {what for what, _ in limits_of(order.grant)}
    if isinstance(lanes.job, Finished):
        (answer,) = lanes.answers
        assert (answer.rule == "budget") <= (answer.outcome != "succeeded")


def opened(budget: Budget, *tasks: SubTask, tools: tuple[str, ...] = (), concurrency: int = 32) -> Open:
    """A job that brought its plan."""
    goal = Goal(
        text=Inline(value="x"),
        budget=budget,
        tools=tools,
        limits=Limits(concurrency=concurrency, timeout_s=1.0),
    )
    job, _ = fold(New(), JobSubmitted(job=JOB, goal=goal, source=SOURCE, plan=tasks))
    assert isinstance(job, Open)
    return job


def after(job: Job, *events: Event) -> Open:
    """The open job after these."""
    for place, event in enumerate(events, 1):
        job, _ = fold(job, replace(event, at=place * 10 * MINUTE, offset=place))
    assert isinstance(job, Open)
    return job


def granted(job: Open) -> dict[TaskId, Grant]:
    """What is granted to attempts that are out or may be."""
    grants = {task: getattr(state, "grant", None) for task, state in job.states.items()}
    return {task: grant for task, grant in grants.items() if grant is not None}


def parts(count: int) -> tuple[SubTask, ...]:
    """So many sub-tasks that need nothing of each other."""
    return tuple(SubTask(id=f"t{n}", goal="x") for n in range(count))


def done(task: TaskId, **usage: Any) -> SubTaskSucceeded:
    """The sub-task's first attempt succeeds."""
    result = Inline(value=1)
    return SubTaskSucceeded(job=JOB, task=task, attempt=1, result=result, size=1, usage=Usage(**usage))


def test_without_a_budget_there_are_no_grants() -> None:
    """And all go out at once."""
    job, orders = release(opened(Budget(), *parts(9)), 9, at=0)
    assert [order.grant for order in orders] == [None] * 9
    assert not granted(job)


def test_a_large_budget_is_shared_by_those_that_may_be_out_and_the_synthesis() -> None:
    """As many equal shares as the goal's concurrency allows, and one more."""
    job = opened(Budget(calls=90, tokens=900_000, usd=0.9), *parts(20), concurrency=8)
    assert granted(job) == {f"t{n}": Grant(calls=10, tokens=100_000, usd=0.1) for n in range(8)}
    few = opened(Budget(calls=90), *parts(2), concurrency=8)
    assert granted(few) == {"t0": Grant(calls=30), "t1": Grant(calls=30)}


def test_planning_gets_half_and_what_it_leaves_is_shared() -> None:
    """The planner knows no more than anybody of what its plan will cost."""
    goal = Goal(text=Inline(value="x"), budget=Budget(tokens=100_000))
    job, _ = fold(New(), JobSubmitted(job=JOB, goal=goal, source=SOURCE))
    assert isinstance(job, Open)
    assert granted(job) == {PLAN: Grant(tokens=50_000)}
    planned = Planned(job=JOB, task=PLAN, attempt=1, plan=parts(3), usage=Usage(calls=1, tokens_in=20_000))
    assert granted(after(job, planned)) == {f"t{n}": Grant(tokens=20_000) for n in range(3)}


@pytest.mark.parametrize(("tools", "likely"), [((), CALLS), (("look",), CALLS_WITH_TOOLS)])
def test_a_small_budget_means_fewer_at_once(tools: tuple[str, ...], likely: int) -> None:
    """Each has what it is likely to need, and so has the synthesis; the others wait."""
    job = opened(Budget(calls=3 * likely), *parts(9), tools=tools)
    assert granted(job) == {"t0": Grant(calls=likely), "t1": Grant(calls=likely)}
    assert places(job) == 2
    job = after(job, done("t0", calls=1))
    assert granted(job) == {"t1": Grant(calls=likely)}, "what is left would not do for one and the synthesis"
    assert granted(opened(Budget(tokens=2 * TOKENS), *parts(9))) == {"t0": Grant(tokens=TOKENS)}


def test_where_nothing_is_out_all_that_is_left_is_granted() -> None:
    """To one after the other, the synthesis at last; a budget that is exact is enough."""
    job = opened(Budget(calls=4), *parts(3))
    for n, left in enumerate((4, 3, 2)):
        assert granted(job) == {f"t{n}": Grant(calls=2 if left == 4 else left)}
        job = after(job, done(f"t{n}", calls=1))
    assert granted(job) == {ANSWER: Grant(calls=1)}


def test_a_single_sub_task_has_it_all() -> None:
    """Nothing follows that could need anything."""
    budget = Budget(calls=9, tokens=5, usd=0.25)
    assert granted(opened(budget, *parts(1))) == {"t0": Grant(calls=9, tokens=5, usd=0.25)}


def test_what_calls_no_model_needs_no_money() -> None:
    """Nor waits for any."""
    tool = SubTask(id="tool", goal="", tool="look")
    job = opened(Budget(calls=1), *parts(1), tool)
    assert granted(job) == {"t0": Grant(calls=1), "tool": Grant(calls=0, tokens=0, usd=0.0)}


def test_a_lost_attempt_has_spent_its_grant_until_it_tells() -> None:
    """And what it tells counts in place of that, once."""
    started = SubTaskStarted(job=JOB, task="t0", attempt=1, run="r")
    overdue = AttemptOverdue(job=JOB, task="t0", attempt=1, retry_in=3.0)
    job = after(opened(Budget(calls=30, tokens=300_000), *parts(2)), started, overdue)
    assert isinstance(job.states["t0"], Backoff)
    assert spent(job) == Usage(calls=10, tokens_in=100_000, estimated=10)
    late = SubTaskFailed(
        job=JOB, task="t0", attempt=1, kind="timeout", reason="late", usage=Usage(calls=1, tokens_in=70)
    )
    told = after(job, replace(late))
    assert spent(told) == Usage(calls=1, tokens_in=70)
    assert after(told, late) is told


def test_of_two_lost_attempts_the_first_stays_spent() -> None:
    """Otherwise what is remembered would have no bound."""
    job = opened(Budget(calls=30), *parts(2))
    first, second = (AttemptOverdue(job=JOB, task="t0", attempt=n) for n in (1, 2))
    job = after(job, first)
    assert spent(job).calls == 10
    job = after(job, done("t1", calls=2))
    assert granted(job) == {"t0": Grant(calls=9)}
    job = after(job, second)
    assert [lost.attempt for lost in job.lost] == [2]
    assert spent(job).calls == 10 + 2 + 9
    late = [
        SubTaskFailed(job=JOB, task="t0", attempt=n, kind="timeout", reason="late", usage=Usage(calls=1))
        for n in (1, 2)
    ]
    assert spent(after(job, *late)).calls == 10 + 2 + 1


def test_a_job_ends_by_its_budget_when_all_that_is_left_was_too_little_for_one() -> None:
    """The rest would fail one after the other, each with less."""
    job: Job = opened(Budget(tokens=9_000), *parts(5))
    job = after(job, done("t0", calls=1, tokens_in=8_800))
    assert granted(after(job)) == {"t1": Grant(tokens=200)}
    failed = SubTaskFailed(job=JOB, task="t1", attempt=1, kind=BUDGET, reason="200 tokens", final=True)
    job, (answer,) = fold(job, replace(failed, at=MINUTE, offset=9))
    assert isinstance(answer, Answer)
    assert (answer.outcome, answer.rule) == ("partial", "budget")
    assert answer.reason == "too little is left of the budget for t1: 200 tokens"
    assert [line.outcome for line in answer.subtasks] == ["succeeded", "failed", *["unfinished"] * 3]


def test_one_that_needed_more_than_its_share_gets_twice_as_much() -> None:
    """As soon as there is so much; the others have theirs."""
    job = opened(Budget(tokens=90_000), *parts(2))
    failed = SubTaskFailed(job=JOB, task="t1", attempt=1, kind=BUDGET, reason="30000 tokens", final=True)
    job = after(job, failed)
    assert job.states["t1"] == Ready(attempt=2)
    assert granted(job) == {"t0": Grant(tokens=30_000)}
    assert granted(after(job, done("t0", tokens_in=10_000))) == {"t1": Grant(tokens=80_000)}
    roomy = after(opened(Budget(tokens=900_000), *parts(9)), failed, done("t0"), done("t2"))
    assert granted(roomy)["t1"] == Grant(tokens=180_000)


def test_no_attempt_follows_where_the_last_one_needed_too_much() -> None:
    """It fails for good, like any other."""
    job = opened(Budget(tokens=9_000_000), *parts(9))
    for attempt in (1, 2, 3):
        failed = SubTaskFailed(job=JOB, task="t1", attempt=attempt, kind=BUDGET, reason="x", final=True)
        job = after(job, failed)
    assert isinstance(job.states["t1"], Failed)
    assert len(granted(job)) == 8


def test_a_plan_that_costs_more_than_half_and_an_answer_that_costs_all_end_the_job() -> None:
    """By the budget, whatever it was for."""
    goal = Goal(text=Inline(value="x"), budget=Budget(tokens=1_000))
    job, _ = fold(New(), JobSubmitted(job=JOB, goal=goal, source=SOURCE))
    for start, task in (
        (job, PLAN),
        (after(opened(Budget(calls=9), *parts(2)), done("t0"), done("t1")), ANSWER),
    ):
        failed = SubTaskFailed(job=JOB, task=task, attempt=1, kind=BUDGET, reason="100 tokens", final=True)
        _, (answer,) = fold(start, replace(failed, at=90 * MINUTE))
        assert isinstance(answer, Answer)
        assert answer.rule == "budget"
        assert answer.outcome == ("failed" if task == PLAN else "partial")
        assert answer.reason.endswith(": 100 tokens")


def test_dollars_are_given_to_few_until_something_is_known_of_what_one_costs() -> None:
    """Nobody here knows any price; the first success tells."""
    job = opened(Budget(usd=9.0), *parts(40))
    assert granted(job) == {f"t{n}": Grant(usd=1.0) for n in range(AT_FIRST)}
    cheap = after(job, done("t0", calls=1, usd=0.01))
    assert len(granted(cheap)) == AT_FIRST - 1 + 6
    assert granted(cheap)["t8"].usd == pytest.approx(8.99 / 33)
    dear = after(job, done("t0", calls=1, usd=0.5))
    assert len(granted(dear)) == AT_FIRST - 1
    assert dear.need == Grant(usd=MARGIN * 0.5)
    assert after(job, done("t0", tool_calls=1)).need is None


def test_a_late_word_of_more_than_was_left_ends_the_job() -> None:
    """An agent went beyond its grant: nothing is out, and nothing can go out any more."""
    job = opened(Budget(calls=30), *parts(2), concurrency=1)
    job = after(job, AttemptOverdue(job=JOB, task="t0", attempt=1, retry_in=1.0), done("t1", calls=1))
    late = SubTaskFailed(job=JOB, task="t0", attempt=1, kind="timeout", reason="x", usage=Usage(calls=40))
    job = after(job, late)  # it waits for its next attempt
    due = RetryDue(job=JOB, task="t0", attempt=2, at=90 * MINUTE, offset=9)
    ended, (answer,) = fold(job, due)
    assert isinstance(ended, Finished)
    assert isinstance(answer, Answer)
    assert (answer.rule, answer.reason) == ("budget", "the budget of 30 model calls is spent (41 made)")


def test_what_is_left_of_dollars_by_a_rounding_error_is_nothing() -> None:
    """A job that waited for it would wait for ever."""
    job: Job = opened(Budget(usd=0.3), *parts(9), concurrency=1)
    effects: tuple[Effect, ...] = ()
    for n, usd in enumerate((0.1, 0.1, 0.0999999999999999)):
        job, effects = fold(job, replace(done(f"t{n}", calls=1, usd=usd), at=MINUTE, offset=n))
    (answer,) = effects
    assert isinstance(answer, Answer)
    assert (answer.rule, answer.reason) == (
        "budget",
        "the budget of 0.3 US dollars is spent (0.300000 used)",
    )


def test_which_grant_has_waited_longest_does_not_depend_on_a_restart() -> None:
    """A restored job has its ready sub-tasks in another order: grants go in the plan's."""
    job = opened(Budget(calls=4), *parts(4))
    assert granted(job) == {"t0": Grant(calls=2)}
    shuffled = replace(job, ready=("t3", "t2", "t0", "t1"))
    ended = done("t0", calls=1, tokens_out=NO_USAGE.tokens)
    assert granted(after(shuffled, ended)) == granted(after(job, ended)) == {"t1": Grant(calls=3)}
    assert all(isinstance(state, Ready) for task, state in job.states.items() if task != "t0")
