"""A round: a system of its own, goals, faults while they are worked on, and the verdict."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agents import simulator
from streams.chaos import gathering
from streams.chaos.attacks import FAULTS
from streams.chaos.evidence import Evidence, Expected
from streams.chaos.goals import Submission, expected_of, submissions, with_answers
from streams.chaos.ground import Ground
from streams.chaos.open_transactions import open_transactions
from streams.chaos.plans import Plan, Strike, chance
from streams.chaos.scene import Scene
from streams.chaos.verifier import Verdict, judge
from streams.chaos.workers import Workers
from streams.core.values import JobId
from streams.delivery import Sender
from streams.kafka import admin
from streams.kafka.log import KafkaLog
from streams.log import Record
from streams.settings import Settings
from streams.topics import ANSWERS, GOALS, partition_of
from streams.wire.goal_writing import write_goal
from streams.wire.goals import read_goal

STRIKE_S: Final = 90.0
"""Seconds that a fault may take with all it mends."""
ANSWERED_S: Final = 90.0
"""Seconds from the end of the last fault until all must be answered."""
LAG_S: Final = 30.0
"""Seconds from then until nothing may be behind."""
OPEN_S: Final = 10.0
"""Seconds from then until no transaction may be open."""

LATENCY: Final = simulator.LogNormal(p50=0.5, p99=2.5)
CALLS_KEPT: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """How a round went.

    Attributes:
        recovery_s: Seconds from the end of the last fault to the answer of a goal submitted after it;
            None in a calm round, and where there was none.
        took_s: Seconds that the round took in all.
        crashes: What workers said last that ended by themselves.
        place: Where worker logs are.
    """

    plan: Plan
    verdict: Verdict
    recovery_s: float | None
    took_s: float
    crashes: tuple[str, ...]
    notes: tuple[str, ...]
    evidence: Evidence
    place: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fought:
    """What a fight brought.

    Attributes:
        recovery_s: As of :class:`Played`.
        answered: The fresh goal was answered.
    """

    expected: Mapping[JobId, Expected]
    recovery_s: float | None
    answered: bool


async def _goals(plan: Plan, settings: Settings) -> tuple[Submission, ...]:
    """The round's goals with their answers."""
    sent = submissions(plan.seed, plan.jobs, lanes=settings.lanes)
    return await asyncio.to_thread(with_answers, sent, base_url=settings.base_url)


async def play(ground: Ground, plan: Plan) -> Played:
    """Play a round on a system of its own, and verify it.

    Raises:
        LogUnavailable, BrokerFailed, TimeoutError: the round itself could not be played.
    """
    began = time.monotonic()
    await ground.mend()
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
                replication=ground.replication,
                count=ground.workers,
                log=log,
                sender=Sender(log.producer),
            )
            watch = gathering.Watch(settings, log)
            async with watch.watching():
                goals = asyncio.create_task(_goals(plan, settings))
                await workers.heal(ground.workers)
                fought = await _fight(scene, plan, goals, watch)
                evidence = await _evidence(scene, watch, fought)
        return Played(
            plan=plan,
            verdict=judge(evidence),
            recovery_s=fought.recovery_s if plan.strikes else None,
            took_s=time.monotonic() - began,
            crashes=workers.crashes(),
            notes=tuple(scene.notes),
            evidence=evidence,
            place=place,
        )
    finally:
        await endpoint.close()


async def _fight(
    scene: Scene, plan: Plan, goals: "asyncio.Task[tuple[Submission, ...]]", watch: gathering.Watch
) -> _Fought:
    """Goals and faults, side by side; then a fresh goal, and all answers."""
    sent = await goals
    async with asyncio.TaskGroup() as group:
        stand = [
            group.create_task(_submit(scene, goal, plan.goals_s * place / len(sent)))
            for place, goal in enumerate(sent)
        ]
        for strike in plan.strikes:
            group.create_task(_strike(scene, strike))
    ended = time.monotonic()
    await scene.workers.heal(scene.count)
    last, _ = await _submit(scene, _fresh(scene.settings.lanes), 0.0)
    answered = await watch.answered([str(last.job)], within_s=ANSWERED_S)
    recovery_s = time.monotonic() - ended if answered else None
    found = [task.result() for task in stand]
    jobs = {job for goal, offset in found if (job := goal.job_at(goal.partition, offset)) is not None}
    await watch.answered({*jobs, *scene.expected}, within_s=max(1.0, ended + ANSWERED_S - time.monotonic()))
    return _Fought(expected=_expected(found) | scene.expected, recovery_s=recovery_s, answered=answered)


async def _submit(scene: Scene, goal: Submission, after_s: float) -> tuple[Submission, int]:
    """Send a goal; the offset at which it stands."""
    await asyncio.sleep(after_s)
    return goal, await scene.sender.deliver(
        GOALS, goal.value, key=goal.key, partition=goal.partition, headers=goal.headers
    )


def _fresh(lanes: int) -> Submission:
    job, value = write_goal("Compare what there is [[plan 2]]", id="fresh")
    return Submission(value=value, key=job.encode(), partition=partition_of(job, lanes), job=job)


def _expected(stand: Sequence[tuple[Submission, int]]) -> dict[JobId, Expected]:
    """What the answers must be. Where an attempt has little time, its job's answer may tell of how little."""
    hasty = {goal.job for goal, _ in stand if b'"timeout_s"' in (goal.value or b"")}
    return {
        job: replace(each, exact=False) if job in hasty else each for job, each in expected_of(stand).items()
    }


async def _strike(scene: Scene, strike: Strike) -> None:
    await asyncio.sleep(strike.at_s)
    began = time.monotonic()
    async with asyncio.timeout(STRIKE_S):
        await FAULTS[strike.fault].strike(scene, chance(strike.seed))
    scene.notes.append(f"{strike.fault} at {strike.at_s:g} s for {time.monotonic() - began:.1f} s")


async def _evidence(scene: Scene, watch: gathering.Watch, fought: _Fought) -> Evidence:
    """All records, once nothing is behind or the time for that is over."""
    ends = time.monotonic() + LAG_S
    while True:
        done = await gathering.committed(scene.settings)
        found = await gathering.read_whole(scene.settings)
        behind = gathering.lag(found, done)
        if (not behind and _all_answered(found, scene.settings.lanes)) or time.monotonic() > ends:
            break
        await asyncio.sleep(0.5)
    return Evidence(
        lanes=scene.settings.lanes,
        concurrency=scene.settings.concurrency,
        records=found,
        seen=tuple(watch.seen),
        expected=fought.expected,
        calls=gathering.calls(scene.endpoint.counters),
        lives=scene.workers.lives(),
        committed=(*watch.committed, *done),
        open_transactions=await open_transactions(scene.settings, within_s=OPEN_S),
        lag=behind,
        fresh_answered=fought.answered,
        outages=tuple(scene.outages),
        clocks_apart=scene.clocks_apart,
        rebuilt=scene.rebuilt,
    )


def _all_answered(found: Mapping[str, Sequence[Record]], lanes: int) -> bool:
    """Also those that named themselves after their place, and those that are refused."""
    jobs = {read_goal(record, lanes=lanes).job for record in found[GOALS]} - {None}
    return jobs <= {(record.key or b"").decode(errors="replace") for record in found[ANSWERS]}


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
