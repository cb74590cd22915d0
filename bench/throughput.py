"""(1) Against the plain way, (2) against the ideal, (6) by calls in flight."""

import asyncio
import heapq
import json
import sys
from random import Random

from agents.simulator import LogNormal
from bench.figures import Figure, median
from bench.jobs import Run, client, measure
from bench.stage import HOME, stage

SUBTASKS, JOBS = 1000, 10
ROUNDS = 5


async def plain(url: str, concurrency: int = 100) -> dict[str, float]:
    """One run of the plain way in a process of its own."""
    arguments = (sys.executable, "-m", "bench.plain", url, str(SUBTASKS), str(concurrency))
    running = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(300):
        output, _ = await running.communicate()
    result: dict[str, float] = json.loads(output)
    return result


async def against_the_plain_way(servers: str) -> list[Figure]:
    """1,000 sub-tasks at zero latency, 100 in flight, in turns with the plain way on the same endpoint."""
    ours: list[Run] = []
    theirs: list[dict[str, float]] = []
    async with stage(servers, "plain") as here, client(here) as swarm:
        for _ in range(ROUNDS):
            theirs.append(await plain(here.url))
            ours.append(await measure(here, swarm, "[[plan 100]]", count=JOBS))
        memory = here.memory_mb()
    rate, plain_rate = (
        median([SUBTASKS / r.wall_s for r in ours]),
        median([SUBTASKS / t["seconds"] for t in theirs]),
    )
    return [
        Figure(name="plain way", value=plain_rate, unit="calls/s"),
        Figure(name="Anabranch", value=rate, unit="sub-tasks/s"),
        Figure(name="Anabranch to plain way", value=rate / plain_rate, unit="times", floor=1.2, higher=True),
        Figure(name="CPU a call, plain way", value=median([t["cpu"] for t in theirs]), unit="ms"),
        Figure(name="CPU a sub-task, worker", value=median([r.cpu_s for r in ours]), unit="ms"),
        Figure(name="memory of the worker", value=memory, unit="MB"),
    ]


async def against_the_ideal(servers: str) -> list[Figure]:
    """1,000 sub-tasks that take their time, 100 in flight: what is added to waiting for the model."""
    figures = []
    async with stage(servers, "fixed", "--latency", "0.3") as here, client(here) as swarm:
        runs = [await measure(here, swarm, "[[plan 100]]", count=JOBS) for _ in range(3)]
        theirs = await plain(here.url)
    ideal = SUBTASKS * 0.3 / 100
    work = median([run.work_s for run in runs])
    wall = median([run.wall_s for run in runs])
    figures += [
        Figure(name="1,000 x 0.3 s: the ideal", value=ideal, unit="s"),
        Figure(name="1,000 x 0.3 s: plain way", value=theirs["seconds"], unit="s"),
        Figure(name="1,000 x 0.3 s: first start to last result", value=work, unit="s", floor=1.15 * ideal),
        Figure(name="1,000 x 0.3 s: planning, synthesis and all else", value=wall - work, unit="s"),
    ]
    latency = ("--latency", "p50=0.38,p99=1.12")
    async with stage(servers, "spread", *latency) as here, client(here) as swarm:
        runs = [await measure(here, swarm, "[[plan 100]]", count=JOBS) for _ in range(3)]
        theirs = await plain(here.url)
    rate = median([0.8 * SUBTASKS / run.steady_s for run in runs])
    wall = median([run.wall_s for run in runs])
    work = median([run.work_s for run in runs])
    ideal = ideal_s(LogNormal(p50=0.38, p99=1.12))
    return [
        *figures,
        Figure(name="log-normal: the ideal", value=ideal, unit="s"),
        Figure(name="log-normal: first start to last result", value=work, unit="s", floor=1.15 * ideal),
        Figure(name="log-normal: plain way", value=SUBTASKS / theirs["seconds"], unit="calls/s"),
        Figure(
            name="log-normal: steady rate",
            value=rate,
            unit="sub-tasks/s",
            floor=218,
            higher=True,
        ),
        Figure(name="log-normal: goal to last answer", value=wall, unit="s"),
    ]


def ideal_s(latency: LogNormal, *, drawn: int = 50) -> float:
    """Seconds that 100 who take the next call at once need for all calls; the mean of *drawn* draws."""
    chance = Random(1)
    total = 0.0
    for _ in range(drawn):
        free = [0.0] * 100
        for _ in range(SUBTASKS):
            heapq.heappush(free, heapq.heappop(free) + latency.draw(chance.random()))
        total += max(free)
    return total / drawn


async def sweep(servers: str) -> list[Figure]:
    """The rate by calls in flight, at 0.1 s a call; a plot of it beside the figures."""
    from matplotlib.figure import Figure as Plot  # noqa: PLC0415 - only this measurement draws

    flights, rates, ideals = (10, 20, 50, 100, 200, 350, 500), [], []
    for flight in flights:
        name, latency = f"sweep{flight}", ("--latency", "0.1")
        async with stage(servers, name, *latency, concurrency=flight) as here, client(here) as swarm:
            run = await measure(here, swarm, "[[plan 100]]", count=JOBS)
            rates.append(run.subtasks / run.work_s)
            ideals.append(flight / 0.1)
    plot = Plot(figsize=(6, 4))
    axes = plot.subplots()
    axes.plot(flights, rates, "o-", label="Anabranch")
    axes.plot(flights, ideals, "--", label="ideal: in flight / 0.1 s")
    axes.set(xlabel="calls in flight", ylabel="sub-tasks a second", ylim=(0, max(rates) * 1.3))
    axes.legend()
    plot.savefig(HOME / "bench" / "sweep.svg")
    plot.savefig(HOME / "bench" / "sweep.png")
    return [
        Figure(name=f"{flight} in flight", value=rate, unit="sub-tasks/s")
        for flight, rate in zip(flights, rates, strict=True)
    ]
