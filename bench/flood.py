"""100,000 goals at once on one slow endpoint: what a waiting goal costs, and who is served meanwhile."""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from bench.figures import Figure, percentile
from bench.jobs import client
from bench.stage import Stage, stage
from streams import Swarm
from streams.kafka.lag import lag
from streams.kafka.log import KafkaLog
from streams.topics import ANSWERS, GOALS, JOB_EVENTS, partition_of
from streams.wire.answers import read_answer
from streams.wire.goal_writing import write_goal

LATENCY_S = 0.5
CONCURRENCY = 100
SAMPLE_S = 5.0
URGENT_S = 5.0
"""Seconds between two urgent goals of another tenant, from the moment on when the flood is sent."""

WITHIN_S, SETTLE_S = 3_600.0, 60.0
WAITING_BYTES = 3_000
FLOOD, URGENT = "flood", "urgent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The system at one moment.

    Attributes:
        at: Seconds since the flood was begun to be sent.
        cpu_s: Seconds of CPU that the worker has used.
        memory: Resident bytes of the worker.
        behind: Records by topic that the groups have not told to be done.
        waiting: Goals of the flood that the worker has taken in and not answered.
        answered: Goals of the flood.
    """

    at: float
    cpu_s: float
    memory: int
    behind: dict[str, int]
    waiting: int
    answered: int

    def __str__(self) -> str:
        """As a line of the run."""
        return (
            f"{self.at:7.1f} s  {self.cpu_s:6.1f} s CPU  {self.memory / 1e6:6.1f} MB"
            f"  {self.waiting:6} waiting  {self.answered:6} answered  behind: {self.behind}"
        )


@dataclass(slots=True, kw_only=True)
class Flood:
    """What was seen of it.

    Attributes:
        goals: How many.
        urgent: When each of another tenant was asked, and seconds until it was answered.
    """

    goals: int
    began: float = 0.0
    sent_s: float = 0.0
    outcomes: dict[str, str] = field(default_factory=dict)
    twice: int = 0
    samples: list[Sample] = field(default_factory=list)
    urgent: list[tuple[float, float]] = field(default_factory=list)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def now(self) -> float:
        """Seconds since it began."""
        return time.perf_counter() - self.began


async def flood(servers: str, *, goals: int) -> list[Figure]:
    """Goals of one sub-task that asks the model once, all of one tenant and all at once."""
    options = ("--latency", str(LATENCY_S))
    async with stage(servers, "flood", *options, concurrency=CONCURRENCY) as here, client(here) as swarm:
        assert here.worker is not None
        before = here.worker.memory_info().rss
        seen = Flood(goals=goals)
        async with KafkaLog(here.settings) as log, counting(log, here, seen), asyncio.timeout(WITHIN_S):
            seen.began = time.perf_counter()
            await send(log, here, seen)
            async with beside(sample(here, seen), ask_urgently(swarm, seen)):
                await seen.done.wait()
            took = seen.now()
            left = await settled(here)
        after = here.worker.memory_info().rss
        calls = await counters(here.url)
    fullest = max(seen.samples, key=lambda each: each.waiting)
    each_goal = grown(seen.samples, fullest)
    taken_in = next((each.at for each in seen.samples if not each.behind[GOALS]), took)
    meanwhile = [latency for at, latency in seen.urgent if at >= taken_in] or [0.0]
    succeeded = sum(outcome == "succeeded" for outcome in seen.outcomes.values())
    return [
        Figure(name="goals sent", value=goals, unit=f"in {seen.sent_s:.1f} s"),
        Figure(name="answered, each once", value=succeeded, unit="", floor=goals, higher=True),
        Figure(name="answered twice", value=seen.twice, unit="", floor=0),
        Figure(name="all taken in after", value=taken_in, unit="s"),
        Figure(name="all answered after", value=took, unit="s"),
        Figure(name="rate", value=goals / took, unit="goals/s"),
        Figure(name="most that waited at once", value=fullest.waiting, unit="goals"),
        Figure(name="memory before", value=before / 1e6, unit="MB"),
        Figure(name="memory with the most waiting", value=fullest.memory / 1e6, unit="MB"),
        Figure(name="memory a waiting goal", value=each_goal, unit="bytes", floor=WAITING_BYTES),
        Figure(name="memory after", value=after / 1e6, unit="MB"),
        Figure(name="most calls at once", value=calls["in_flight_max"], unit="", floor=CONCURRENCY),
        Figure(name="urgent goal behind the flood", value=seen.urgent[0][1], unit="s"),
        Figure(name="urgent goal while it waits, p50", value=percentile(meanwhile, 0.5), unit="s"),
        Figure(name="urgent goal while it waits, max", value=max(meanwhile), unit="s"),
        Figure(name="records behind at the end", value=left[GOALS] + left[JOB_EVENTS], unit="", floor=0),
    ]


def grown(samples: Sequence[Sample], fullest: Sample) -> float:
    """Bytes by which the memory grows for each goal that waits, by the line through the samples.

    From a fifth of the most on: before, buffers fill, which are the same for any flood.
    """
    first = next(each for each in samples if each.waiting >= fullest.waiting / 5)
    rising = samples[samples.index(first) : samples.index(fullest) + 1]
    mean = sum(each.waiting for each in rising) / len(rising)
    spread = sum((each.waiting - mean) ** 2 for each in rising)
    return sum((each.waiting - mean) * each.memory for each in rising) / spread if spread else 0.0


async def send(log: KafkaLog, here: Stage, seen: Flood) -> None:
    """Put the whole flood on its topic."""
    sent = []
    for number in range(seen.goals):
        plan = [{"id": "audit", "goal": f"Audit the licences of package {number}"}]
        job, value = write_goal(f"Audit package {number}", id=f"goal-{number}", tenant=FLOOD, plan=plan)
        place = partition_of(job, here.settings.lanes)
        sent.append(await log.producer.send(GOALS, value, key=job.encode(), partition=place))
    await asyncio.gather(*sent)
    seen.sent_s = seen.now()


@asynccontextmanager
async def counting(log: KafkaLog, here: Stage, seen: Flood) -> AsyncIterator[None]:
    """Count the flood's answers as they come."""

    async def count() -> None:
        async for records in answers:
            for record in records:
                if (record.key or b"").startswith(b"flood/"):
                    answer = read_answer(record)
                    seen.twice += answer.id in seen.outcomes
                    seen.outcomes[answer.id] = answer.outcome
            if len(seen.outcomes) >= seen.goals:
                seen.done.set()

    async with log.follow(ANSWERS, range(here.settings.lanes)) as answers, beside(count()):
        yield


@asynccontextmanager
async def beside(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run these meanwhile."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def sample(here: Stage, seen: Flood) -> None:
    """Look at the system again and again."""
    assert here.worker is not None
    while True:
        behind = await lag(here.settings)
        answered = len(seen.outcomes)
        seen.samples.append(
            Sample(
                at=seen.now(),
                cpu_s=here.cpu_s(),
                memory=here.worker.memory_info().rss,
                behind=behind,
                waiting=max(0, seen.goals - behind[GOALS] - answered),
                answered=answered,
            )
        )
        print(seen.samples[-1], flush=True)
        await asyncio.sleep(SAMPLE_S)


async def ask_urgently(swarm: Swarm, seen: Flood) -> None:
    """Goals of another tenant, one after the other, each planned and answered by the model."""
    while True:
        at = seen.now()
        await swarm.answer("[[plan 1]]", tenant=URGENT, priority=9, within_s=WITHIN_S)
        seen.urgent.append((at, seen.now() - at))
        print(f"{at:7.1f} s  an urgent goal, answered after {seen.urgent[-1][1]:.2f} s", flush=True)
        await asyncio.sleep(URGENT_S)


async def settled(here: Stage) -> dict[str, int]:
    """What the groups are behind once they have told their last."""
    async with asyncio.timeout(SETTLE_S):
        while (behind := await lag(here.settings))[GOALS] + behind[JOB_EVENTS]:
            await asyncio.sleep(1)
    return behind


async def counters(url: str) -> dict[str, int]:
    """What the endpoint counted."""
    async with aiohttp.ClientSession() as session, session.get(f"{url.removesuffix('/v1')}/counters") as got:
        found: dict[str, int] = await got.json()
        return found
