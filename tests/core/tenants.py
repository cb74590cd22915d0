"""A tenant's account and its jobs on other partitions: words between them come late, twice, mixed, never."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from streams.core.accounts import DAY_MS, waits, woken
from streams.core.commands import Answer, Effect, Tell
from streams.core.events import (
    BUDGET,
    AttemptOverdue,
    Event,
    JobBroken,
    JobCancelled,
    JobSubmitted,
    PlaceReturned,
    Planned,
    RetryDue,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
)
from streams.core.goal import Asker, Goal, Source, TenantRules
from streams.core.job import fold
from streams.core.paying import asked_again
from streams.core.plan import Plan
from streams.core.purse import NONE, Purse, more, of, used
from streams.core.release import places, release
from streams.core.reopening import reopening
from streams.core.states import Account, Backoff, Finished, Job, New, Open, Released, Running
from streams.core.telling import account_of
from streams.core.values import PLAN, Grant, Inline, JobId, TaskId, Usage
from tests.core.histories import START, Choices

SOURCE = Source(topic="goals", partition=0, offset=0)
TENANT = "acme"
KEY = account_of(f"{TENANT}/any")


@dataclass(kw_only=True)
class Tenancy:
    """Jobs of one tenant, and what they really spend.

    Attributes:
        aloft: Words on their way, each of which may come twice.
        logs: The events of each job, as they stand on its log.
        today: What was really spent on the account's day.
        answers: The jobs' answers so far, by job and revision.
        unreturned: A word was lost that returns a place: it is seen to when somebody waits for one.
    """

    choices: Choices
    rules: TenantRules
    at: int = START
    jobs: dict[JobId, Job] = field(default_factory=dict)
    logs: dict[JobId, list[Event]] = field(default_factory=dict)
    plans: dict[JobId, Plan] = field(default_factory=dict)
    account: Job = field(default_factory=New)
    aloft: list[Event] = field(default_factory=list)
    today: Purse = NONE
    answers: dict[tuple[JobId, int], Answer] = field(default_factory=dict)
    real: dict[tuple[JobId, TaskId, int], Usage] = field(default_factory=dict)
    untold: list[tuple[JobId, TaskId, int]] = field(default_factory=list)
    unreturned: bool = False

    def submit(self, job: JobId, goal: Goal, plan: Plan, *, brought: bool) -> None:
        """A goal of the tenant comes in."""
        self.plans[job] = plan
        goal = replace(goal, tenant=TENANT, rules=self.rules, digest=job)
        self.see(JobSubmitted(job=job, goal=goal, source=SOURCE, plan=plan if brought else ()))

    def see(self, event: Event) -> None:
        """Fold an event where it belongs; what it tells is on its way, twice where a crash follows."""
        self.at += 1_000
        before = self.account if event.job == KEY else self.jobs.get(event.job, New())
        log = self.logs.setdefault(event.job, [])
        event = replace(event, at=self.at, offset=len(log))
        log.append(event)
        after, effects = fold(before, event)
        self.hear(effects)
        if self.choices.below(8) == 7:
            self.hear(tuple(each for each in effects if isinstance(each, Tell)))
        if event.job == KEY:
            if isinstance(after, Account) and (not isinstance(before, Account) or before.day != after.day):
                self.today = NONE
            self.account = after
        else:
            self.jobs[event.job] = after
        self.check(event.job)

    def hear(self, effects: tuple[Effect, ...]) -> None:
        """What a fold asks for."""
        for effect in effects:
            if isinstance(effect, Tell):
                self.aloft.append(effect.event)
            if isinstance(effect, Answer):
                assert (effect.job, effect.revision) not in self.answers
                self.answers[effect.job, effect.revision] = effect

    def deliver(self, which: int, *, again: bool = False) -> None:
        """One of the words on their way comes, and may come once more."""
        event = self.aloft[which] if again else self.aloft.pop(which)
        self.see(event)

    def open_jobs(self) -> list[Open]:
        """Jobs under way."""
        return [job for job in self.jobs.values() if isinstance(job, Open)]

    def let_go(self, job: Open, count: int) -> None:
        """Commands go out; what their attempts will spend is decided, and spent at once."""
        after, commands = release(job, count, self.at)
        self.jobs[job.submitted.job] = after
        for order in commands:
            usage = self.part_of(order.grant)
            self.real[order.job, order.task, order.attempt] = usage
            self.today = more(self.today, used(usage))
        self.check(job.submitted.job)

    def part_of(self, grant: Grant | None) -> Usage:
        """Some of it, now and then all."""
        if grant is None:
            return Usage(calls=1, tokens_in=1)

        def part(whole: int | None) -> int:
            most = 5 if whole is None else whole
            return self.choices.of((min(most, 1), most, most, most // 2, 0))

        return Usage(calls=part(grant.calls), tokens_in=part(grant.tokens), usd=part(of(grant)[2]) / 1e9)

    def move(self, job: Open, task: TaskId, state: Released | Running | Backoff) -> None:
        """An attempt starts, succeeds, fails or is lost."""
        name: dict[str, Any] = {"job": job.submitted.job, "task": task, "attempt": state.attempt}
        if isinstance(state, Backoff):
            self.at = max(self.at, state.until)
            self.see(RetryDue(**name))
            return
        usage = self.real[job.submitted.job, task, state.attempt]
        fate = self.choices.below(10)
        if fate < 4 and task == PLAN:
            self.see(Planned(**name, plan=self.plans[job.submitted.job], usage=usage))
        elif fate < 4:
            self.see(SubTaskSucceeded(**name, result=Inline(value=task), size=9, usage=usage))
        elif fate < 5:
            self.see(SubTaskStarted(**name, run=self.choices.of(("r", "s"))))
        elif fate < 8:
            kind, final = self.choices.of((("refused", False), (BUDGET, True), ("refused", True)))
            self.see(SubTaskFailed(**name, kind=kind, reason="no", final=final, usage=usage))
        else:
            self.untold.append((job.submitted.job, task, state.attempt))
            self.at += 600_000_000 if self.choices.below(4) == 3 else 130_000
            self.see(AttemptOverdue(**name))

    def tell_late(self) -> None:
        """A lost attempt tells its end after all."""
        job, task, attempt = self.choices.of(self.untold)
        usage = self.real[job, task, attempt]
        kind = self.choices.of((BUDGET, "timeout"))
        self.see(SubTaskFailed(job=job, task=task, attempt=attempt, kind=kind, reason="late", usage=usage))

    def reopen(self, job: JobId) -> None:
        """An operator redrives a dead letter of a job that ended without success."""
        finished = self.jobs[job]
        assert isinstance(finished, Finished)
        event = reopening(self.logs[job], finished, by="operator")
        if event is not None and finished.revision < 3:
            self.see(event)

    def end(self, job: Open) -> None:
        """A person ends a job, or an event that cannot be handled does."""
        name = job.submitted.job
        if self.choices.below(2):
            self.see(JobCancelled(job=name, by="ada"))
        else:
            self.see(JobBroken(job=name, reason="no", revision=job.revision.number))

    def timers(self, chance: float) -> Iterator[Event]:
        """What the orchestrators send again since it may be lost."""
        for job in self.open_jobs():
            if (asked := asked_again(job)) is not None:
                yield asked
        if isinstance(self.account, Account) and (word := woken(self.account, self.at, chance)) is not None:
            yield word

    def step(self) -> None:
        """Something happens."""
        moving = [
            (job, task, state)
            for job in self.open_jobs()
            for task, state in job.states.items()
            if isinstance(state, Released | Running | Backoff)
        ]
        free = [job for job in self.open_jobs() if places(job) > 0]
        what = self.choices.below(17)
        if what < 5 and self.aloft:
            self.deliver(self.choices.below(len(self.aloft)), again=self.choices.below(5) == 4)
        elif what < 9 and free:
            job = self.choices.of(free)
            self.let_go(job, 1 + self.choices.below(places(job)))
        elif what < 12 and moving:
            self.move(*self.choices.of(moving))
        elif what == 12 and self.untold:
            self.tell_late()
        elif what == 12 and self.aloft and self.choices.below(4) == 3:
            lost = self.aloft.pop(self.choices.below(len(self.aloft)))  # the log would not have it
            self.unreturned |= isinstance(lost, PlaceReturned)
        elif what == 13:
            for event in list(self.timers(0.5))[:2]:
                self.aloft.append(event)
        elif what == 14 and self.choices.below(4) == 3:
            self.at += DAY_MS
        elif what == 15 and (ended := [n for n, j in self.jobs.items() if isinstance(j, Finished)]):
            self.reopen(self.choices.of(ended))
        elif what == 16 and self.open_jobs() and self.choices.below(2):
            self.end(self.choices.of(self.open_jobs()))
        elif self.aloft:
            self.deliver(0)

    def run_out(self, most: int = 20_000) -> None:
        """Everything comes to its end: words arrive, lanes work, and days pass where nothing else helps.

        Raises:
            AssertionError: somebody waits for ever.
        """
        idle = 0
        while self.open_jobs() or self.aloft or waits(self.account) or self.left():
            most -= 1
            assert most > 0, f"somebody waits for ever: {self.account} {self.open_jobs()}"
            if self.aloft:
                self.deliver(0)
                continue
            moved = False
            for job in self.open_jobs():
                now = self.jobs[job.submitted.job]
                if isinstance(now, Open) and places(now) > 0:
                    self.let_go(now, places(now))
                    moved = True
                for task, state in list(now.states.items() if isinstance(now, Open) else ()):
                    if isinstance(state, Released | Running | Backoff):
                        now = self.jobs[job.submitted.job]
                        if isinstance(now, Open) and now.states.get(task) is state:
                            self.move(now, task, state)
                            moved = True
            if moved:
                idle = 0
                continue
            idle += 1
            assert idle < 60, f"nothing moves: {self.account} {self.open_jobs()}"
            self.at += 60_000 if idle % 8 else DAY_MS
            self.aloft += self.timers(idle * 0.37 % 1)

    def left(self) -> bool:
        """Whether anybody is at the account who will leave it, though nobody waits for that."""
        return isinstance(self.account, Account) and bool(self.account.guests) and not self.unreturned

    def check(self, name: JobId) -> None:
        """The bound."""
        if isinstance(self.account, Account):
            day, guests = self.rules.day, self.account.guests
            assert guests.places <= (self.rules.jobs or 1_000)
            if day is not None:
                kept = more(used(self.account.spent), guests.leased)
                assert all(
                    most is None or (have or 0) <= most for have, most in zip(kept, of(day), strict=True)
                ), kept
                for have, most in zip(self.today, of(day), strict=True):
                    assert most is None or (have or 0) <= most, (self.today, day)
        running = [
            job
            for job in self.open_jobs()
            if (job.decided.hold is None or job.decided.hold.on != "place")
            and job.submitted.goal.asker is None
        ]
        assert len(running) <= (self.rules.jobs or 1_000)
        job = self.jobs.get(name)
        if isinstance(job, Open) and (lease := job.decided.lease) is not None:
            kept = used(job.usage)
            for state in job.states.values():
                if (grant := getattr(state, "grant", None)) is not None:
                    kept = more(kept, tuple(each or 0 for each in of(grant)))  # type: ignore[arg-type]
            for lost in job.lost:
                kept = more(kept, tuple(each or 0 for each in of(lost.grant)))  # type: ignore[arg-type]
            mine = more(of(lease), used(job.decided.before))
            assert all(most is None or (have or 0) <= most for have, most in zip(kept, mine, strict=True)), (
                name
            )


def child_of(goal: Goal, parent: JobId, task: TaskId, call: str) -> Goal:
    """The goal of a child that this parent waits for."""
    return replace(goal, parent=parent, depth=1, asker=Asker(task=task, attempt=1, call=call))
