"""Hedging: jobs of 100 sub-tasks of which a few are slow, with hedges and without, and what that costs."""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from bench.figures import Figure, percentile
from bench.jobs import WITHIN_S, client
from bench.stage import stage
from streams import Swarm
from streams.core.commands import Answer
from streams.wire.goal_writing import GoalOptions

JOBS = 20
AT_ONCE = 4
SUB_TASKS = 100
LATENCY = "p50=0.3,p99=0.5"
SHARE = 0.05
FLOOR_S = 0.5

STRAGGLERS = {"3 of 100 take 10 times as long": (3, 3.0), "1 of 100 takes 8 s": (1, 8.0)}
"""By name: how many of a job's sub-tasks are slow, and how many seconds those take."""

_numbers = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """Some jobs, measured.

    Attributes:
        seconds: Of each, from the goal to the answer, by the log's clock.
        calls, tokens, usd: Of all, as their answers say, what stopped calls may have cost among them.
    """

    seconds: Sequence[float]
    calls: int
    tokens: int
    usd: float
    hedged: int


async def hedging(servers: str) -> list[Figure]:
    """Each kind of straggler, without hedges and with them."""
    figures: list[Figure] = []
    concurrency = AT_ONCE * SUB_TASKS
    async with (
        stage(servers, "hedging", "--latency", LATENCY, concurrency=concurrency) as here,
        client(here) as swarm,
    ):
        for name, (count, seconds) in STRAGGLERS.items():
            plain = await jobs(swarm, count, seconds, share=0.0)
            hedged = await jobs(swarm, count, seconds, share=SHARE)
            figures += [
                Figure(name=f"{name}: without, p50", value=percentile(plain.seconds, 0.5), unit="s"),
                Figure(name=f"{name}: without, p99", value=percentile(plain.seconds, 0.99), unit="s"),
                Figure(name=f"{name}: hedged, p50", value=percentile(hedged.seconds, 0.5), unit="s"),
                Figure(
                    name=f"{name}: hedged, p99",
                    value=percentile(hedged.seconds, 0.99),
                    unit="s",
                    floor=percentile(plain.seconds, 0.5),
                ),
                Figure(name=f"{name}: hedges a job", value=hedged.hedged / JOBS, unit=""),
                Figure(name=f"{name}: further calls", value=more(plain.calls, hedged.calls), unit="%"),
                Figure(name=f"{name}: further tokens", value=more(plain.tokens, hedged.tokens), unit="%"),
                Figure(
                    name=f"{name}: further US dollars a job", value=(hedged.usd - plain.usd) / JOBS, unit="$"
                ),
            ]
    return figures


def more(before: int, after: int) -> float:
    """By how many per cent it is more."""
    return 100 * (after - before) / before


async def jobs(swarm: Swarm, slow: int, seconds: float, *, share: float) -> Jobs:
    """Jobs of which *slow* sub-tasks take so many seconds the first time that they are asked for."""
    answers: list[Answer] = []
    for _ in range(JOBS // AT_ONCE):
        answers += await asyncio.gather(*(job(swarm, slow, seconds, share=share) for _ in range(AT_ONCE)))
    return Jobs(
        seconds=[(each.answered_at - each.submitted_at) / 1000 for each in answers],
        calls=sum(each.usage.calls for each in answers),
        tokens=sum(each.usage.tokens for each in answers),
        usd=sum(each.usage.usd for each in answers),
        hedged=sum(line.hedged for each in answers for line in each.subtasks),
    )


async def job(swarm: Swarm, slow: int, seconds: float, *, share: float) -> Answer:
    """One of them: no two ask the endpoint for the same.

    Raises:
        RuntimeError: it did not succeed; its figures would mean nothing.
    """
    number = next(_numbers)
    ordeal = f" [[straggle {seconds:g}]]"
    options: GoalOptions = {
        "plan": [
            {"id": f"t{n}", "goal": f"Part {n} of {number}" + ordeal * (n < slow)} for n in range(SUB_TASKS)
        ],
        "limits": {"concurrency": 2 * SUB_TASKS},
        "hedge": {"share": share, "floor_s": FLOOR_S},
    }
    answer = await swarm.answer("Do a hundred things", within_s=WITHIN_S, **options)
    if answer.outcome != "succeeded":
        raise RuntimeError(f"job {answer.job} is {answer.outcome}: {answer.reason}")
    return answer
