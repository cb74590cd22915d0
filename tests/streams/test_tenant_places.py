"""Sub-agents of a tenant at once: its limit holds over lanes and workers, and nobody of it starves."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.configuration.tenants import Tenant
from agents.configuration.values import one_endpoint
from agents.ports import Attempt, Done
from streams.core.commands import RunSubTask
from streams.memory_log.virtual_time import run
from streams.settings import Settings
from streams.tenant_places import pooled_share, share_of
from tests.streams.lanes_in_memory import LanesInMemory, sub_task, until


def settings(in_flight: int, *, lanes: int = 4, concurrency: int = 40) -> Settings:
    """The tenant ``acme`` may have so many at once."""
    tenants = {"acme": Tenant(name="acme", in_flight=in_flight)}
    configured = replace(one_endpoint(base_url="", api_key="", model="m"), tenants=tenants)
    return Settings(lanes=lanes, concurrency=concurrency, configured=configured)


class Counted:
    """Work of a second; counts how much there is at once, by tenant."""

    def __init__(self) -> None:
        self.now, self.most, self.done = Counter[str](), Counter[str](), Counter[str]()

    async def __call__(self, command: RunSubTask, attempt: Attempt) -> Done:
        tenant = command.job.partition("/")[0]
        self.now[tenant] += 1
        self.most[tenant] = max(self.most[tenant], self.now[tenant])
        try:
            await asyncio.sleep(1)
        finally:
            self.now[tenant] -= 1
        self.done[tenant] += 1
        return Done(result=1)


@given(st.integers(1, 300), st.integers(1, 40))
def test_shares_of_all_lanes_make_the_whole(whole: int, lanes: int) -> None:
    """And none is a place larger than another."""
    shares = [share_of(lane, whole=whole, lanes=lanes) for lane in range(lanes)]
    assert sum(shares) == whole
    assert max(shares) - min(shares) <= 1


@given(st.integers(2, 60), st.data())
def test_shares_of_all_processes_make_no_more_than_the_limit_or_one_each(
    lanes: int, data: st.DataObject
) -> None:
    """With lanes evenly shared; else the limit and one for each process, at most."""
    limit = data.draw(st.integers(1, lanes - 1))
    workers = data.draw(st.integers(1, lanes))
    evenly = [lanes // workers + (n < lanes % workers) for n in range(workers)]
    assert sum(pooled_share(limit, owned=owned, lanes=lanes) for owned in evenly) <= max(limit, workers)
    cuts = sorted(data.draw(st.lists(st.integers(0, lanes), min_size=workers - 1, max_size=workers - 1)))
    anyhow = [b - a for a, b in zip([0, *cuts], [*cuts, lanes], strict=True)]
    shares = [pooled_share(limit, owned=owned, lanes=lanes) for owned in anyhow if owned]
    assert sum(shares) < limit + len(shares)


@pytest.mark.parametrize(
    ("in_flight", "workers", "most"),
    [
        (6, 1, 6),  # shares of 1, 2, 1, 2
        (6, 2, 6),
        (3, 1, 3),  # fewer than lanes: the lanes of a worker share
        (3, 2, 2),  # one for each worker, rounded down
        (1, 2, 2),  # one for each worker, at least
    ],
)
def test_a_tenant_has_no_more_at_once_than_it_may(in_flight: int, workers: int, most: int) -> None:
    """All of it is done; others do not wait for it."""

    async def story() -> None:
        work = Counted()
        memory = LanesInMemory(work=work, settings=settings(in_flight))
        for _ in range(workers):
            memory.worker()
        await asyncio.sleep(10)  # until lanes are shared
        for lane in range(4):
            for n in range(12):
                await memory.put(sub_task(f"t{lane}-{n}", job=f"acme/{n % 3}"), lane=lane)
                await memory.put(sub_task(f"t{lane}-{n}", job="other/1"), lane=lane)
        await until(lambda: work.done["other"] == 48, within_s=30)
        assert work.done["acme"] <= 30
        assert work.most["other"] > most
        await until(lambda: work.done["acme"] == 48)
        assert work.most["acme"] == most

    run(story())


def test_a_lane_with_little_is_not_behind_one_with_much() -> None:
    """Where lanes share a place they have it in turn."""

    async def story() -> None:
        work = Counted()
        memory = LanesInMemory(work=work, settings=settings(1))
        memory.worker()
        for n in range(50):
            await memory.put(sub_task(f"much-{n}", job="acme/much"), lane=0)
        await memory.put(sub_task("little", job="acme/little"), lane=3)
        await until(lambda: "little" in memory.told())
        assert work.done["acme"] <= 4

    run(story())


def test_a_cap_below_the_number_of_lanes_is_shared_as_before() -> None:
    """And so is the tenant's limit."""

    async def story() -> None:
        work = Counted()
        memory = LanesInMemory(work=work, settings=settings(2, concurrency=3))
        memory.worker()
        for n in range(12):
            await memory.put(sub_task(f"t{n}", job="acme/1"), lane=n % 4)
            await memory.put(sub_task(f"t{n}", job="other/1"), lane=n % 4)
        await until(lambda: sum(work.done.values()) == 24)
        assert work.most["acme"] == 2

    run(story())
