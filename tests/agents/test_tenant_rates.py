"""Model requests a second by tenant: never more, nobody lost, and others do not wait for it."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.configuration.tenants import Tenant
from agents.configuration.values import Endpoint
from agents.models.retry import PatientModel
from agents.models.traffic import Traffic
from agents.ports import ModelError, ModelReply
from streams.memory_log.virtual_time import run
from tests.agents.scripted_client import REQUEST, Client, configuration, reply
from tests.agents.test_rates import most
from tests.agents.timed_attempt import TimedAttempt

A = Endpoint(name="a", base_url="http://a/v1")


class Stage:
    """An endpoint, and tenants of which ``acme`` may ask it so often a second."""

    def __init__(self, requests_per_second: float, endpoint: Endpoint = A) -> None:
        self.client = Client(endpoint, reply(), latency_s=0.2)
        tenants = {"acme": Tenant(name="acme", requests_per_second=requests_per_second)}
        self.traffic = Traffic(configuration(endpoint, tenants=tenants), {"a": self.client}, start=1_000)
        self.moments: dict[str, list[float]] = {}

    async def ask(
        self, tenant: str, *, time_s: float = 120.0, slots: asyncio.Semaphore | None = None
    ) -> ModelReply | ModelError:
        attempt = TimedAttempt(time_s=time_s, slots=slots)
        try:
            found = await PatientModel(self.traffic).ask(replace(REQUEST, tenant=tenant), attempt)
        except ModelError as error:
            return error
        else:
            self.moments.setdefault(tenant, []).append(attempt.calls[-1])
            return found
        finally:
            attempt.end()

    async def ask_all(self, tenant: str, count: int, **more: float) -> list[ModelReply | ModelError]:
        return await asyncio.gather(*(self.ask(tenant, **more) for _ in range(count)))  # type: ignore[arg-type]


@given(st.integers(1, 200) | st.sampled_from((0.5, 1.5, 2.5)), st.sampled_from((1.0, 0.5, 0.25)))
def test_never_more_in_a_second_than_the_workers_share(limit: float, share: float) -> None:
    """And all of it goes; other tenants do not wait for it."""

    async def story() -> None:
        stage = Stage(limit)
        stage.traffic.share(share)
        began = asyncio.get_running_loop().time()
        await asyncio.gather(
            stage.ask_all("acme", 30, time_s=10_000.0), stage.ask_all("other", 50, time_s=10_000.0)
        )
        assert len(stage.moments["acme"]) == 30
        assert most(stage.moments["acme"], 1.0) <= max(1, -(-limit // 1) * share)
        assert set(stage.moments["other"]) == {began}

    run(story())


def test_a_wait_for_the_tenants_turn_holds_no_slot() -> None:
    """Others have it meanwhile."""

    async def story() -> None:
        stage = Stage(1)
        slots = asyncio.Semaphore(1)
        began = asyncio.get_running_loop().time()
        waiting = [asyncio.create_task(stage.ask("acme", slots=slots)) for _ in range(5)]
        await asyncio.sleep(0.5)
        await asyncio.gather(*(stage.ask("other", slots=slots) for _ in range(3)))
        await asyncio.gather(*waiting)
        assert max(stage.moments["other"]) - began < 1.5
        assert len(stage.moments["acme"]) == 5

    run(story())


def test_an_attempt_whose_time_is_over_says_what_it_waited_for() -> None:
    """By its tenant's name; those behind it have its turn."""

    async def story() -> None:
        stage = Stage(0.1)
        late, _, last = await asyncio.gather(
            stage.ask("acme", time_s=60), stage.ask("acme", time_s=5), stage.ask("acme", time_s=60)
        )
        assert isinstance(late, ModelReply)
        assert isinstance(last, ModelReply)
        (error,) = await stage.ask_all("acme", 1, time_s=2.0)
        assert isinstance(error, ModelError)
        assert (error.kind, error.decision) == ("unavailable", "give_up")
        assert "of tenant acme, whose model requests a second are limited" in error.reason

    run(story())


@pytest.mark.parametrize("tenant", ["", "other"])
def test_without_a_limit_all_go_at_once(tenant: str) -> None:
    """Whoever is not named has none."""

    async def story() -> None:
        stage = Stage(1)
        await stage.ask_all(tenant, 50)
        assert len(set(stage.moments[tenant])) == 1

    run(story())


def test_both_limits_hold_the_tenants_and_the_accounts() -> None:
    """Who has passed one and waits for the other has taken nothing."""

    async def story() -> None:
        stage = Stage(5, replace(A, requests_per_minute=120))
        await asyncio.gather(stage.ask_all("acme", 20), stage.ask_all("other", 20))
        everyone = [*stage.moments["acme"], *stage.moments["other"]]
        assert len(everyone) == 40
        assert most(everyone, 1.0) <= 2
        assert max(everyone) - min(everyone) <= 25

    run(story())
