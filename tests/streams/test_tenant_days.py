"""A tenant's day and its running jobs hold over all partitions and workers, as the endpoint counts them."""

import asyncio
from dataclasses import replace
from random import Random

import pytest

from agents.configuration.tenants import Tenant
from agents.configuration.values import one_endpoint
from streams.core.accounts import DAY_MS
from streams.core.commands import Answer
from streams.core.events import PlaceAsked, PlaceGiven, PlaceReturned
from streams.core.values import NO_USAGE, Grant, Usage
from streams.memory_log.virtual_time import run
from streams.settings import Settings
from streams.topics import JOB_EVENTS, JOBS
from streams.wire.events import read_event
from tests.streams.swarm_in_memory import SwarmInMemory
from tests.streams.test_budgets import Account, RealAgents

LANES = 4
JOBS_OF_IT = 12
PARTS = 8


def swarm_of(tenant: Tenant, seed: int) -> tuple[SwarmInMemory, Account]:
    """Workers of one tenant, and what their endpoint bills."""
    account = Account(chance=Random(seed))  # noqa: S311 - repeatable
    settings = Settings(
        concurrency=32,
        lanes=LANES,
        stall_s=900.0,
        configured=replace(one_endpoint(base_url="", api_key="", model="m"), tenants={"acme": tenant}),
    )
    return SwarmInMemory(script=RealAgents(account), settings=settings, seed=seed), account


def goal_of(number: int, *, deadline_s: float | None = None) -> dict[str, object]:
    """One of several jobs of the tenant."""
    plan = [{"id": f"t{n}", "goal": f"do {n}"} for n in range(PARTS)]
    limits = {"timeout_s": 90.0, "max_attempts": 2}
    return {
        "id": f"g{number}",
        "tenant": "acme",
        "goal": "all of it",
        "plan": plan,
        "limits": limits,
        "priority": number % 10,
        "deadline_s": deadline_s,
    }


async def running_at_once(swarm: SwarmInMemory, answers: dict[str, Answer]) -> int:
    """How many of the tenant's jobs had a place at the same time, at most."""
    events = [read_event(record) for record in await swarm.records(JOB_EVENTS)]
    begun = {each.job.partition("/")[2]: each.at for each in reversed(events) if isinstance(each, PlaceGiven)}
    changes = [(at, 1) for at in begun.values()]
    changes += [(answers[job].answered_at, -1) for job in begun]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


@pytest.mark.parametrize(
    ("day", "seed"), [({"calls": 60}, 0), ({"calls": 60}, 1), ({"tokens": 90_000}, 2), ({"usd": 0.1}, 3)]
)
def test_a_day_holds_over_partitions_workers_and_kills(day: dict[str, float], seed: int) -> None:
    """Never more than the day and what a killed worker had in flight; who waits in vain has its deadline."""

    async def story() -> tuple[Account, Usage, dict[str, Answer], int]:
        swarm, account = swarm_of(Tenant(jobs=3, day=Grant(**day)), seed)  # type: ignore[arg-type]
        first, _ = swarm.worker(), swarm.worker()
        for number in range(JOBS_OF_IT):
            await swarm.submit(goal_of(number, deadline_s=6_000.0), partition=number % LANES)
        await asyncio.sleep(3.4)  # replies take a whole second: none is on its way to the journal
        killed = sum(account.in_flight, NO_USAGE)
        first.kill()
        swarm.worker()
        answers = await swarm.answers(JOBS_OF_IT, within_s=20_000.0)
        await asyncio.sleep(600.0)
        return account, killed, answers, await running_at_once(swarm, answers)

    account, killed, answers, at_once = run(story())
    for what, most in day.items():
        assert getattr(account.worked, what) <= most + getattr(killed, what)
    assert at_once <= 3
    assert len(answers) == JOBS_OF_IT
    assert {answer.rule for answer in answers.values()} <= {"all_done", "tenant_budget", "deadline"}
    assert any(answer.rule == "tenant_budget" for answer in answers.values())
    assert any(answer.outcome in ("succeeded", "partial") for answer in answers.values())


def test_who_waits_for_money_goes_on_when_a_new_day_begins() -> None:
    """Nobody is dropped: a day pays for one of them, and the next one for the other."""

    async def story() -> dict[str, Answer]:
        swarm, _ = swarm_of(Tenant(day=Grant(calls=3)), 5)
        await asyncio.sleep(DAY_MS / 1000 - 600.0)  # ten minutes are left of the day
        swarm.worker()
        for number in range(2):
            await swarm.submit(goal_of(number), partition=number % LANES)
        return await swarm.answers(2, within_s=1_000.0)

    answers = run(story(), end_s=2 * DAY_MS / 1000)
    days = {answer.answered_at // DAY_MS - answer.submitted_at // DAY_MS for answer in answers.values()}
    assert days == {0, 1}


def test_an_account_is_left_with_nobody_and_its_rows_with_it() -> None:
    """One job at a time: each asks, is given its place, and returns it."""

    async def story() -> None:
        swarm, _ = swarm_of(Tenant(jobs=1), 7)
        swarm.worker()
        for number in range(5):
            await swarm.submit(goal_of(number), partition=number % LANES)
        answers = await swarm.answers(5, within_s=20_000.0)
        assert await running_at_once(swarm, answers) == 1
        events = [read_event(record) for record in await swarm.records(JOB_EVENTS)]
        returned = {each.of for each in events if isinstance(each, PlaceReturned)}
        assert returned == {each.of for each in events if isinstance(each, PlaceAsked)}
        newest = {record.key: record.value for record in await swarm.records(JOBS)}
        guests = [key for key, value in newest.items() if key and b"@account/" in key and value is not None]
        assert not guests

    run(story())
