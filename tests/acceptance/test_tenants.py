"""Tenants on a real Kafka, with two workers: turns, limits, entry and gates, as the endpoint sees them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from agents.simulator import Behaviour, Fixed
from agents.simulator.counters import Call
from streams import dead_letters
from streams.client import Swarm
from streams.core.values import Json
from streams.settings import Settings
from streams.topics import DEAD_LETTERS
from tests.acceptance.conftest import Programs
from tests.acceptance.running import Running, running
from tests.conftest import NewSystem

ALL, ACME = "the-key-of-everybody", "the-key-of-acme-alone"
CONFIGURED = """
[defaults]
limits = { concurrency = 60 }

[tenants.heavy]
weight = 3
[tenants.light]
weight = 1
[tenants.narrow]
in_flight = 2
[tenants.slow]
requests_per_second = 5
[tenants.gated]
gate = { model = true, refuse = [{ pattern = "(?i)payroll", reason = "payroll stays in HR" }] }

[entry.keys.all]
variable = "KEY_OF_ALL"
tenants = ["*"]
[entry.keys.acme]
variable = "KEY_OF_ACME"
tenants = ["acme"]
"""
WITHIN_S = 90.0


def plan(count: int) -> list[dict[str, Json]]:
    return [{"id": f"t{n}", "goal": f"do {n}"} for n in range(count)]


def client(settings: Settings, key: str) -> Swarm:
    return Swarm(settings.brokers, prefix=settings.prefix, entry_key=key)


def calls_of(here: Running, *tenants: str) -> list[Call]:
    """The calls that the endpoint saw for sub-tasks of these tenants, the first first."""
    calls: Sequence[Call] = here.endpoint.counters.log()["calls"]
    return sorted((call for call in calls if call.call_id.split("/")[0] in tenants), key=lambda call: call.at)


def at_once(calls: Sequence[Call]) -> int:
    """The most under way at once."""
    moments = [(call.at, 1) for call in calls] + [(call.at + (call.seconds or 0), -1) for call in calls]
    now = most = 0
    for _, change in sorted(moments):
        now += change
        most = max(most, now)
    return most


async def two_workers(here: Running, programs: Programs, file: Path) -> None:
    """Until they have shared the lanes."""
    workers = [
        await programs.start(
            *("worker", "--config", str(file)),
            system=here.settings,
            OPENAI_BASE_URL=here.endpoint.url,
            OPENAI_API_KEY="simulated",
            ANABRANCH_MODEL="simulated",
            KEY_OF_ALL=ALL,
            KEY_OF_ACME=ACME,
        )
        for _ in range(2)
    ]
    for worker in workers:
        await worker.says("lanes_owned")


async def test_what_tenants_may(new_system: NewSystem, programs: Programs, tmp_path: Path) -> None:
    """Turns by weight, sub-agents at once, calls a second, who may submit, and what the gate lets in."""
    settings = await new_system(lanes=4, concurrency=12)
    file = tmp_path / "anabranch.toml"
    file.write_text(CONFIGURED, encoding="utf-8")
    async with (
        running(settings, programs, Behaviour(latency=Fixed(seconds=0.3))) as here,
        client(settings, f"all:{ALL}") as swarm,
        client(settings, f"acme:{ACME}") as acme,
    ):
        await two_workers(here, programs, file)

        # Its name is in the record, and no key of it is.
        await acme.submit("x", id="stolen", tenant="heavy", plan=plan(1))
        mine = await acme.answer("x", id="mine", tenant="acme", plan=plan(1), within_s=WITHIN_S)
        assert mine.outcome == "succeeded"
        assert not mine.headers

        light, heavy, narrow, slow, fine, refused, by_rule = await asyncio.gather(
            *(
                swarm.answer(goal, tenant=tenant, plan=steps, within_s=WITHIN_S, join={"strategy": "concat"})
                for goal, tenant, steps in (
                    ("x", "light", plan(48)),
                    ("x", "heavy", plan(48)),
                    ("x", "narrow", plan(10)),
                    ("x", "slow", plan(12)),
                    ("x", "gated", plan(1)),
                    ("x [[refuse boats are none of our business]]", "gated", plan(1)),
                    ("Read the payroll", "gated", plan(1)),
                )
            )
        )
        assert {each.outcome for each in (light, heavy, narrow, slow, fine)} == {"succeeded"}
        assert (refused.outcome, refused.rule) == ("rejected", "gate")
        assert "none of our business" in refused.reason
        assert (by_rule.outcome, by_rule.rule, by_rule.reason) == ("rejected", "gate", "payroll stays in HR")

        # While both waited, one call in four was light's.
        both = calls_of(here, "light", "heavy")
        last = max(place for place, call in enumerate(both) if call.call_id.startswith("heavy"))
        share = sum(call.call_id.startswith("light") for call in both[12:last]) / (last - 12)
        assert 0.15 <= share <= 0.38, share

        assert len(calls_of(here, "narrow")) == 10
        assert at_once(calls_of(here, "narrow")) <= 2
        assert at_once(both) > 2

        moments = [call.at for call in calls_of(here, "slow")]
        assert len(moments) == 12
        assert max(sum(first <= moment < first + 1 for moment in moments) for first in moments) <= 5

        letters = [dead_letters.read(record) for record in await here.records(DEAD_LETTERS)]
        reasons = sorted(letter.reason for letter in letters)
        assert reasons == ["not admitted: 'acme' may not submit for the tenant heavy", "payroll stays in HR"]
        assert not any(call.call_id.startswith("heavy/stolen") for call in calls_of(here, "heavy"))
