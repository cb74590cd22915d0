"""A round: a system of its own, goals, faults while they are worked on, and the verdict."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agents import simulator
from streams.chaos import gathering
from streams.chaos.attacks import FAULTS
from streams.chaos.evidence import Evidence
from streams.chaos.ground import Ground
from streams.chaos.open_transactions import open_transactions
from streams.chaos.plans import GOALS_S, Plan, Strike, chance
from streams.chaos.scene import Scene
from streams.chaos.verifier import Verdict, judge
from streams.chaos.workers import Workers
from streams.core.values import JobId
from streams.delivery import Sender
from streams.kafka import admin
from streams.kafka.log import KafkaLog
from streams.settings import Settings
from streams.topics import GOALS, partition_of
from streams.wire.goal_writing import write_goal

STRIKE_S: Final = 90.0
"""Seconds that a fault may take with all it mends."""
ANSWERED_S: Final = 90.0
"""Seconds from the end of the last fault until all must be answered."""
LAG_S: Final = 30.0
"""Seconds from then until nothing may be behind."""
OPEN_S: Final = 10.0
"""Seconds from then until no transaction may be open."""

LATENCY: Final = simulator.LogNormal(p50=0.25, p99=1.5)
CALLS_KEPT: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """How a round went.

    Attributes:
        goals: Goals that were submitted, the fresh one among them.
        recovery_s: Seconds from the end of the last fault to the answer of a goal submitted after it;
            None in a calm round, and where there was none.
        took_s: Seconds that the round took in all.
        crashes: Workers that ended by themselves.
        place: Where worker logs are.
    """

    plan: Plan
    goals: int
    verdict: Verdict
    recovery_s: float | None
    took_s: float
    crashes: int
    notes: tuple[str, ...]
    evidence: Evidence
    place: Path


async def play(ground: Ground, plan: Plan) -> Played:
    """Play a round on a system of its own, and verify it.

    Raises:
        LogUnavailable, BrokerFailed, TimeoutError: the round itself could not be played.
    """
    began = time.monotonic()
    place = ground.place / f"round-{plan.seed}"
    endpoint = await simulator.start(
        simulator.Behaviour(seed=plan.seed, latency=LATENCY, calls_kept=CALLS_KEPT)
    )
    try:
        settings = Settings(
            brokers=ground.servers,
            prefix=f"chaos-{secrets.token_hex(3)}-{plan.seed}.",
            lanes=4,
            concurrency=48,
            session_timeout_s=3.0,
            heartbeat_s=0.5,
            drain_s=3.0,
            stall_s=20.0,
            base_url=endpoint.url,
            model=simulator.MODEL,
        )
        async with (
            _topics(ground, settings),
            KafkaLog(settings) as log,
            Workers(_by_proxy(ground, settings), place) as workers,
        ):
            scene = Scene(
                settings=settings,
                cluster=ground.cluster,
                proxies=ground.proxies,
                endpoint=endpoint,
                workers=workers,
                count=ground.workers,
                log=log,
                sender=Sender(log.producer),
            )
            watch = gathering.Watch(settings, log)
            async with watch.watching():
                await workers.heal(ground.workers)
                goals, recovery_s, fresh = await _fight(scene, plan, watch)
                evidence = await _evidence(scene, watch, fresh_answered=fresh)
        return Played(
            plan=plan,
            goals=goals,
            verdict=judge(evidence),
            recovery_s=recovery_s if plan.strikes else None,
            took_s=time.monotonic() - began,
            crashes=workers.crashes,
            notes=tuple(scene.notes),
            evidence=evidence,
            place=place,
        )
    finally:
        await endpoint.close()


async def _fight(scene: Scene, plan: Plan, watch: gathering.Watch) -> tuple[int, float | None, bool]:
    """Goals and faults, side by side; then a fresh goal, and all answers."""
    drawn = chance(plan.seed)
    jobs: list[JobId] = []
    async with asyncio.TaskGroup() as group:
        for n in range(12):
            shape = drawn.choice(("plan 10", "chain 5", "diamond", "join 10", "plan 40", "plan 99"))
            job, value = write_goal(f"[[{shape}]] goal {n}", id=f"g{n}")
            jobs.append(job)
            group.create_task(_submit(scene, job, value, drawn.uniform(0, GOALS_S)))
        for strike in plan.strikes:
            group.create_task(_strike(scene, strike))
    ended = time.monotonic()
    await scene.workers.heal(scene.count)
    job, value = write_goal("[[plan 2]] a fresh goal", id="fresh")
    await _submit(scene, job, value, 0)
    fresh = await watch.answered([job], within_s=ANSWERED_S)
    recovery_s = time.monotonic() - ended if fresh else None
    await watch.answered(jobs, within_s=max(1.0, ended + ANSWERED_S - time.monotonic()))
    return len(jobs) + 1, recovery_s, fresh


async def _submit(scene: Scene, job: JobId, value: bytes, after_s: float) -> None:
    await asyncio.sleep(after_s)
    lanes = scene.settings.lanes
    await scene.sender.deliver(GOALS, value, key=job.encode(), partition=partition_of(job, lanes))


async def _strike(scene: Scene, strike: Strike) -> None:
    await asyncio.sleep(strike.at_s)
    began = time.monotonic()
    async with asyncio.timeout(STRIKE_S):
        await FAULTS[strike.fault].strike(scene, chance(strike.seed))
    scene.notes.append(f"{strike.fault} at {strike.at_s:g} s for {time.monotonic() - began:.1f} s")


async def _evidence(scene: Scene, watch: gathering.Watch, *, fresh_answered: bool) -> Evidence:
    """All records, once nothing is behind or the time for that is over."""
    ends = time.monotonic() + LAG_S
    while True:
        done = await gathering.committed(scene.settings)
        found = await gathering.read_whole(scene.settings)
        behind = gathering.lag(found, done)
        if not behind or time.monotonic() > ends:
            break
        await asyncio.sleep(0.5)
    return Evidence(
        lanes=scene.settings.lanes,
        concurrency=scene.settings.concurrency,
        records=found,
        seen=tuple(watch.seen),
        expected={},
        calls=gathering.calls(scene.endpoint.counters),
        lives=scene.workers.lives(),
        committed=(*watch.committed, *done),
        open_transactions=await open_transactions(scene.settings, within_s=OPEN_S),
        lag=behind,
        fresh_answered=fresh_answered,
        outages=tuple(scene.outages),
        clocks_apart=scene.clocks_apart,
    )


def _by_proxy(ground: Ground, settings: Settings) -> Settings:
    """As the workers reach it."""
    if not ground.proxies:
        return settings
    return replace(settings, brokers=",".join(proxy.servers for proxy in ground.proxies))


@asynccontextmanager
async def _topics(ground: Ground, settings: Settings) -> AsyncIterator[None]:
    await admin.create(settings, replication=ground.replication)
    try:
        yield
    finally:
        await admin.delete(settings)
