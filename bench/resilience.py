"""1,000 sub-tasks against an endpoint that misbehaves and has limits, side by side with the plain way.

python -m bench.resilience

No Kafka: the agents work with attempts in memory, each with the time and the slot that a lane would
give it, and with one attempt for each sub-task. The plain way is AsyncOpenAI as it comes, with its own
retries, the same time for each sub-task and as many at once. Each way has an endpoint of its own, in a
process of its own, which counts what it gets.
"""

import asyncio
import json
import logging
import math
import random
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import aiohttp
import openai
import structlog
from openai import AsyncOpenAI

from agents.configuration.values import Configuration, Endpoint, Kind, ModelSettings
from agents.models.client import ChatClient
from agents.models.metrics import Snapshot
from agents.models.retry import PatientModel
from agents.models.traffic import Traffic
from agents.plain_attempt import PlainAttempt
from agents.ports import Done, ModelReply, ModelRequest
from agents.prompts import read_prompt
from agents.sub_agent import ToolUsingAgent
from agents.tools.local import LocalTools
from bench.figures import Figure, markdown, percentile
from bench.stage import endpoint, machine
from streams.core.commands import RunSubTask

SUBTASKS = 1_000
SLOTS = 100
ATTEMPT_S = 120.0
"""Seconds of one sub-task: the default of a goal's attempts."""

RPM, TPM, CONCURRENCY = 900, 1_000_000, 50
FAILURES = {"rate_limited": 0.05, "server_error": 0.02, "timeout": 0.01, "malformed": 0.02}
LATENCY = "p50=0.38,p99=1.12"

OPTIONS = (
    *("--latency", LATENCY, "--rpm", str(RPM), "--tpm", str(TPM), "--concurrency", str(CONCURRENCY)),
    *(part for kind, rate in FAILURES.items() for part in ("--fail", f"{kind}={rate}")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one way did.

    Attributes:
        succeeded: Sub-tasks with a result.
        seconds: From the first to the last of them.
        spent: Seconds that each took, from its first slot on.
        reasons: Why the others have none.
        counters: What the endpoint counted.
    """

    succeeded: int
    seconds: float
    spent: list[float]
    reasons: dict[str, int]
    counters: dict[str, object]

    def count(self, name: str) -> float:
        """One of the endpoint's counters."""
        value = self.counters[name]
        assert isinstance(value, int | float)
        return value

    @property
    def refused(self) -> int:
        """Calls that the account's limits refused."""
        by_limit = self.counters["by_limit"]
        assert isinstance(by_limit, dict)
        return sum(by_limit.values())

    @property
    def wasted(self) -> float:
        """Calls that brought no result."""
        return self.count("calls") - self.succeeded


class SlottedAttempt(PlainAttempt):
    """An attempt that holds a slot but while it waits."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        super().__init__(ATTEMPT_S, chance=random.random)
        self._slots, self._holds = slots, True  # it is made with a slot

    async def model(
        self, request: ModelRequest, call: Callable[[ModelRequest, float], Awaitable[ModelReply]]
    ) -> ModelReply:
        """Make the call, with a slot."""
        if not self._holds:
            await self._slots.acquire()
            self._holds = True
        return await super().model(request, call)

    async def wait(self, seconds: float) -> None:
        """Wait without a slot."""
        self.end()
        await super().wait(seconds)

    async def wait_for(self, ready: Callable[[], Awaitable[None]]) -> None:
        """Wait for it without a slot."""
        self.end()
        await super().wait_for(ready)

    def end(self) -> None:
        """Give the slot back."""
        if self._holds:
            self._holds = False
            self._slots.release()


async def resilience(_: str = "") -> list[Figure]:
    """Both ways, one after the other. The broker is not needed."""
    ours, counted = await our_way()
    plain = await plain_way()
    second = math.ceil(RPM / 60)
    share = 100 * ours.succeeded / SUBTASKS
    for name, run in (("Anabranch", ours), ("plain way", plain)):
        sys.stderr.write(f"{name}: {json.dumps(run.counters)}; without a result: {run.reasons}\n")
    sys.stderr.write(f"Anabranch: {counted}\n")
    return [
        Figure(name="succeeded", value=share, unit="%", floor=99.5, higher=True),
        Figure(name="succeeded, plain way", value=100 * plain.succeeded / SUBTASKS, unit="%"),
        Figure(name="refused by the account's limits", value=ours.refused, unit="calls", floor=0),
        Figure(name="refused by the account's limits, plain way", value=plain.refused, unit="calls"),
        Figure(name="most in a second", value=ours.count("per_second_max"), unit="calls", floor=second),
        Figure(name="most in a second, plain way", value=plain.count("per_second_max"), unit="calls"),
        Figure(name="most in a minute", value=ours.count("per_minute_max"), unit="calls", floor=RPM),
        Figure(name="most in a minute, plain way", value=plain.count("per_minute_max"), unit="calls"),
        Figure(
            name="tokens, most in a minute",
            value=ours.count("tokens_per_minute_max"),
            unit="tokens",
            floor=TPM,
        ),
        Figure(name="at once", value=ours.count("in_flight_max"), unit="calls", floor=CONCURRENCY),
        Figure(name="wasted calls", value=ours.wasted, unit="calls"),
        Figure(name="wasted calls, plain way", value=plain.wasted, unit="calls"),
        Figure(name="all of it", value=ours.seconds, unit="s"),
        Figure(name="all of it, plain way", value=plain.seconds, unit="s"),
        Figure(name="a sub-task, p99", value=percentile(ours.spent, 0.99), unit="s"),
        Figure(name="a sub-task, p99, plain way", value=percentile(plain.spent, 0.99), unit="s"),
    ]


async def our_way() -> tuple[Run, Snapshot]:
    """Sub-agents on one model with the account's limits configured."""
    async with endpoint(*OPTIONS) as url:
        account = Endpoint(
            name="simulated",
            base_url=url,
            requests_per_minute=RPM,
            tokens_per_minute=TPM,
            concurrency=CONCURRENCY,
        )
        configuration = Configuration(
            endpoints={"simulated": account},
            models={"simulated": ModelSettings(name="simulated", endpoint="simulated", id="simulated")},
            kinds={"default": Kind(name="default", models=("simulated",))},
        )
        client = ChatClient(account)
        traffic = Traffic(configuration, {"simulated": client})
        agent = ToolUsingAgent(PatientModel(traffic), LocalTools([]), configuration.kind)

        async def one(number: int, slots: asyncio.Semaphore) -> str:
            attempt = SlottedAttempt(slots)
            command = RunSubTask(
                job="bench/resilience",
                task=f"t{number}",
                attempt=1,
                ordinal=number,
                timeout_s=ATTEMPT_S,
                goal=f"Part {number}",
                kind="analyze",
            )
            try:
                async with asyncio.timeout(ATTEMPT_S):
                    ended = await agent.run(command, attempt)
            finally:
                attempt.end()
            return "" if isinstance(ended, Done) else str(getattr(ended, "kind", ended))

        run = await worked(url, one)
        traffic.close()
        await client.close()
    return run, traffic.metrics.snapshot()


async def plain_way() -> Run:
    """AsyncOpenAI with its own retries."""
    async with endpoint(*OPTIONS) as url, AsyncOpenAI(api_key="simulated", base_url=url) as client:
        prompt = read_prompt("sub_agent")

        async def one(number: int, slots: asyncio.Semaphore) -> str:
            try:
                async with asyncio.timeout(ATTEMPT_S):
                    reply = await client.chat.completions.create(
                        model="simulated",
                        max_completion_tokens=800,
                        messages=[
                            {"role": "system", "content": prompt},
                            {
                                "role": "user",
                                "content": json.dumps({"goal": f"Part {number}", "kind": "analyze"}),
                            },
                        ],
                    )
                return "" if reply.choices[0].message.content else "empty"
            except (openai.OpenAIError, ValueError) as error:  # a broken body raises a ValueError
                return type(error).__name__
            finally:
                slots.release()

        return await worked(url, one)


async def worked(url: str, one: Callable[[int, asyncio.Semaphore], Awaitable[str]]) -> Run:
    """All sub-tasks by one way, which gives the reason where there is no result; each begins with a slot."""
    slots = asyncio.Semaphore(SLOTS)
    reasons: dict[str, int] = {}
    spent: list[float] = []

    async def timed(number: int) -> None:
        await slots.acquire()
        began = time.perf_counter()
        try:
            why = await one(number, slots)
        except TimeoutError:
            why = "timeout"
        spent.append(time.perf_counter() - began)
        if why:
            reasons[why] = reasons.get(why, 0) + 1

    began = time.perf_counter()
    await asyncio.gather(*(timed(number) for number in range(SUBTASKS)))
    seconds = time.perf_counter() - began
    async with aiohttp.ClientSession() as session, session.get(f"{url.removesuffix('/v1')}/counters") as got:
        counters = await got.json()
    return Run(
        succeeded=SUBTASKS - sum(reasons.values()),
        seconds=seconds,
        spent=spent,
        reasons=reasons,
        counters=counters,
    )


async def _main() -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    figures = await resilience()
    title = f"{SUBTASKS:,} sub-tasks against an endpoint that misbehaves"
    sys.stdout.write(f"Machine: {machine()}.\n\n{markdown(title, figures)}\n")
    return int(any(not figure.holds for figure in figures))


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
