"""(3) From goal to answer, (4) from a result to the start of what it unblocked."""

import asyncio
import time

from bench.figures import Figure, percentile
from bench.jobs import NOTHING, ask, client, events_of, steps
from bench.stage import stage
from streams import Swarm


async def times(swarm: Swarm, goal: str, *, noops: int = 0, count: int) -> list[float]:
    """Milliseconds from goal to answer, one job after the other; *noops* as of :func:`ask`."""
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        await ask(swarm, goal, noops=noops)
        taken.append((time.perf_counter() - began) * 1000)
    return taken


async def goal_to_answer(servers: str) -> list[Figure]:
    """Whole jobs on an idle system.

    No-op jobs bring their plan, so one no-op is a job without any model call, and of a hundred the
    synthesis is the only one. The jobs of model calls are planned, too. The endpoint has zero latency.
    """
    async with stage(servers, "latency") as here, client(here) as swarm:
        one = await times(swarm, NOTHING, noops=1, count=100)
        noops = await times(swarm, NOTHING, noops=100, count=30)
        calls = await times(swarm, "[[plan 100]]", count=30)
    return [
        Figure(name="1 no-op, p50", value=percentile(one, 0.5), unit="ms", floor=40),
        Figure(name="1 no-op, p99", value=percentile(one, 0.99), unit="ms", floor=120),
        Figure(name="100 no-ops, p50", value=percentile(noops, 0.5), unit="ms", floor=110),
        Figure(name="100 model calls, p50", value=percentile(calls, 0.5), unit="ms", floor=280),
    ]


async def result_to_start(servers: str) -> list[Figure]:
    """Chains of 50, alone and while 200 other sub-tasks a second run."""
    async with stage(servers, "chain") as here, client(here) as swarm:
        alone = []
        for _ in range(6):
            (answer,) = await ask(swarm, "[[chain 50]]")
            alone += steps(await events_of(swarm, answer))
        load = asyncio.create_task(steady(swarm, 200))
        loaded = []
        for _ in range(6):
            (answer,) = await ask(swarm, "[[chain 50]]")
            loaded += steps(await events_of(swarm, answer))
        load.cancel()
        await asyncio.wait([load])
    return [
        Figure(name="chain step, p50", value=percentile(alone, 0.5), unit="ms", floor=10),
        Figure(name="chain step, p99", value=percentile(alone, 0.99), unit="ms", floor=38),
        Figure(name="chain step under 200 sub-tasks/s, p50", value=percentile(loaded, 0.5), unit="ms"),
        Figure(
            name="chain step under 200 sub-tasks/s, p99", value=percentile(loaded, 0.99), unit="ms", floor=80
        ),
    ]


async def steady(swarm: Swarm, rate: int) -> None:
    """Jobs of 20 sub-tasks at an even pace, *rate* sub-tasks a second, until cancelled."""
    async with asyncio.TaskGroup() as group:
        while True:
            group.create_task(ask(swarm, "[[plan 20]]"))
            await asyncio.sleep(20 / rate)
