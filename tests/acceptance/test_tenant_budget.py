"""A tenant's day and its running jobs on a real Kafka, with two workers and jobs on all partitions."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from agents.simulator import Behaviour, Fixed
from agents.simulator.counters import Call
from streams.core.events import MoneyGiven, PlaceAsked, PlaceReturned
from streams.core.values import Json
from streams.topics import JOB_EVENTS
from streams.wire.events import read_event
from tests.acceptance.conftest import Programs
from tests.acceptance.running import Running, running
from tests.conftest import NewSystem

DAY = 20
CONFIGURED = f"""
[tenants.poor]
day = {{ calls = {DAY} }}
[tenants.single]
jobs = 1
"""


def goal(tenant: str, number: int, parts: int, **fields: Json) -> dict[str, Json]:
    """A job of the tenant that needs a call for each part, and one for the synthesis."""
    plan: list[Json] = [{"id": f"t{n}", "goal": f"do {n}"} for n in range(parts)]
    return {"id": f"{tenant}-{number}", "tenant": tenant, "goal": "x", "plan": plan, **fields}


def calls_of(here: Running, tenant: str) -> list[Call]:
    """The calls that the endpoint saw for a tenant, the first first."""
    calls: Sequence[Call] = here.endpoint.counters.log()["calls"]
    return sorted((call for call in calls if call.call_id.startswith(f"{tenant}/")), key=lambda call: call.at)


async def test_a_day_and_one_job_at_a_time(new_system: NewSystem, programs: Programs, tmp_path: Path) -> None:
    """The endpoint never sees more than the day's calls, and of another tenant one job at a time."""
    settings = await new_system(lanes=4, concurrency=16)
    file = tmp_path / "anabranch.toml"
    file.write_text(CONFIGURED, encoding="utf-8")
    async with running(settings, programs, Behaviour(latency=Fixed(seconds=0.1))) as here:
        for _ in range(2):
            await programs.start(
                *("worker", "--config", str(file)),
                system=settings,
                OPENAI_BASE_URL=here.endpoint.url,
                OPENAI_API_KEY="simulated",
                ANABRANCH_MODEL="simulated",
            )
        for number in range(8):
            await here.send(goal("poor", number, 4, deadline_s=15), partition=number % 4)
        for number in range(4):
            await here.send(goal("single", number, 3), partition=number % 4)
        answers = await here.answers(12)

        poor = [answer for answer in answers.values() if answer.tenant == "poor"]
        assert len(poor) == 8
        assert {answer.rule for answer in poor} <= {"all_done", "tenant_budget", "deadline"}
        assert any(answer.rule == "all_done" for answer in poor)
        assert any(answer.rule in ("tenant_budget", "deadline") for answer in poor)
        for answer in poor:
            if answer.rule == "tenant_budget":
                assert f"of {DAY} model calls are spent" in answer.reason
        assert DAY // 2 < len(calls_of(here, "poor")) <= DAY
        assert sum(answer.usage.calls for answer in poor) <= DAY

        single = [answer for answer in answers.values() if answer.tenant == "single"]
        assert [answer.outcome for answer in single] == ["succeeded"] * 4
        order = [call.call_id.split("/")[1] for call in calls_of(here, "single")]
        assert len(order) == 4 * 4
        changes = sum(one != other for one, other in pairwise(order))
        assert changes == 3, f"no job began before the one before had ended: {order}"

        events = [read_event(record) for record in await here.records(JOB_EVENTS)]
        asked = {each.of for each in events if isinstance(each, PlaceAsked)}
        assert len(asked) == 12
        assert asked == {each.of for each in events if isinstance(each, PlaceReturned)}
        assert any(isinstance(each, MoneyGiven) for each in events)
