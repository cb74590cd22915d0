"""An hour of steady load: do memory and latency stay flat? ``python -m bench.soak --minutes 60``."""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import psutil

from bench.beside import beside
from bench.figures import percentile
from bench.jobs import client
from bench.stage import HOME, Stage, machine, stage
from streams import Swarm, broker
from streams.kafka.lag import lag

SAMPLE_S = 10.0
WARM_SHARE = 0.25
"""Share of the time, at the beginning, that shows how it was: caches fill, memory pools grow."""

GOALS = ("[[plan 5]]", "[[chain 4]]", "[[diamond]]", "[[join 9]]", "[[plan 10]] [[fail @3]]")
LATENCY_S = 0.1

FLAT_MB = 20.0
"""Megabytes that the last quarter's mean may lie above the second's: less than a large plan's results."""

FLAT_TIMES = 1.5
"""Times that the last quarter's median latency may be the second's: the machine does other things, too."""

MARKER_BYTES = 500
"""What a finished job costs by design: a marker that stays for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A look at the worker.

    Attributes:
        at: Seconds since the beginning.
        memory_mb: Resident memory in megabytes, and what of it markers of finished jobs explain.
    """

    at: float
    memory_mb: float
    markers_mb: float
    threads: int
    files: int
    behind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A goal and its answer: when it was asked, and seconds until the answer."""

    at: float
    took: float
    outcome: str


async def soak(here: Stage, swarm: Swarm, minutes: float, rate: float) -> tuple[list[Sample], list[Asked]]:
    """Goals of mixed shapes at an even pace, and looks at the worker meanwhile."""
    began = time.perf_counter()
    samples: list[Sample] = []
    asked: list[Asked] = []

    async def ask(goal: str) -> None:
        at = time.perf_counter()
        answer = await swarm.answer(goal, within_s=300)
        asked.append(Asked(at=at - began, took=time.perf_counter() - at, outcome=answer.outcome))

    async def look() -> None:
        assert here.worker is not None
        while True:
            behind = sum((await lag(here.settings)).values())
            samples.append(
                Sample(
                    at=time.perf_counter() - began,
                    memory_mb=here.memory_mb(),
                    markers_mb=len(asked) * MARKER_BYTES / 1e6,
                    threads=here.worker.num_threads(),
                    files=here.worker.num_fds(),
                    behind=behind,
                )
            )
            await asyncio.sleep(SAMPLE_S)

    async with beside(look()), asyncio.TaskGroup() as group:
        number = 0
        while (now := time.perf_counter() - began) < minutes * 60:
            group.create_task(ask(GOALS[number % len(GOALS)]))
            number += 1
            await asyncio.sleep(max(0.0, number / rate - now))
    return samples, asked


def quarters(samples: Sequence[Sample], asked: Sequence[Asked], seconds: float) -> list[str]:
    """A table, a line a quarter of the time."""
    lines = [
        "| quarter | goals | p50 s | p99 s | memory MB | without markers | threads | files | most behind |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for number in range(4):
        low, high = seconds * number / 4, seconds * (number + 1) / 4
        looks = [each for each in samples if low <= each.at < high]
        took = [each.took for each in asked if low <= each.at < high]
        if not looks or not took:
            continue
        memory = sum(each.memory_mb for each in looks) / len(looks)
        bare = sum(each.memory_mb - each.markers_mb for each in looks) / len(looks)
        lines.append(
            f"| {number + 1} | {len(took)} | {percentile(took, 0.5):.3f} | {percentile(took, 0.99):.3f} | "
            f"{memory:.1f} | {bare:.1f} | {max(each.threads for each in looks)} | "
            f"{max(each.files for each in looks)} | {max(each.behind for each in looks)} |"
        )
    return lines


def verdict(samples: Sequence[Sample], asked: Sequence[Asked], seconds: float) -> list[str]:
    """What is not flat: the last quarter against the second, since the first one warms up."""
    wrong = []

    def memory(low: float, high: float) -> float:
        looks = [s.memory_mb - s.markers_mb for s in samples if low * seconds <= s.at < high * seconds]
        return sum(looks) / len(looks)

    def latency(low: float, high: float) -> float:
        return percentile([a.took for a in asked if low * seconds <= a.at < high * seconds], 0.5)

    grown = memory(0.75, 1.0) - memory(WARM_SHARE, 0.5)
    if grown > FLAT_MB:
        wrong.append(f"memory has grown by {grown:.1f} MB, more than {FLAT_MB:g}")
    times = latency(0.75, 1.0) / latency(WARM_SHARE, 0.5)
    if times > FLAT_TIMES:
        wrong.append(f"the median latency is {times:.2f} times what it was, more than {FLAT_TIMES:g}")
    if poor := sum(each.outcome not in ("succeeded", "partial") for each in asked):
        wrong.append(f"{poor} goals neither succeeded nor partial")
    return wrong


async def main(minutes: float, rate: float, target: Path | None) -> int:
    """Soak, print, and say by the exit code whether everything is flat."""
    running = await broker.start(HOME)
    try:
        async with (
            stage(running.servers, "soak", "--latency", str(LATENCY_S)) as here,
            client(here) as swarm,
        ):
            samples, asked = await soak(here, swarm, minutes, rate)
    finally:
        await running.stop()
    seconds = minutes * 60
    wrong = verdict(samples, asked, seconds)
    load = psutil.getloadavg()[2]
    lines = [
        f"{minutes:g} minutes, {rate:g} goals a second, model latency {LATENCY_S:g} s",
        f"{machine()}; load {load:.1f}",
        "",
        *quarters(samples, asked, seconds),
        "",
        "; ".join(wrong) or "flat",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    if target is not None:
        target.write_bytes(orjson.dumps({"samples": samples, "asked": asked}))
    return int(bool(wrong))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=2.0, help="goals a second")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there, too")
    arguments = parser.parse_args()
    sys.exit(asyncio.run(main(arguments.minutes, arguments.rate, arguments.json)))
