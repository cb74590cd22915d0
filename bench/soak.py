"""Steady load for an hour: whether memory and latency stay where they are."""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from bench.figures import Figure, median, percentile
from bench.jobs import client
from bench.stage import HOME, Stage, stage
from streams import Swarm
from streams.core.commands import Answer
from streams.kafka.lag import lag
from streams.topics import GOALS, JOB_EVENTS
from streams.wire.goal_writing import GoalOptions

SAMPLE_S = 10.0
WITHIN_S = 300.0
LATENCY = "p50=0.2,p99=0.8"

WARM_UP = 0.1
"""The share of the run, from its beginning, that the lines below leave out."""

MARKER_BYTES = 300
"""What every job that was ever answered may cost for ever."""

MEMORY_RISE, P50_RISE, P99_RISE = 0.05, 0.1, 0.25
"""How far a line fitted through the run may rise from its one end to the other, as a share of the mean:
through the memory, less what the markers cost, and through p50 and p99 of the minutes."""

DIRECT: GoalOptions = {"tools": ["noop"], "plan": [{"id": "t1", "tool": "noop", "args": {}, "dep": []}]}
BROUGHT: GoalOptions = {"plan": [{"id": "a", "goal": "One"}, {"id": "b", "goal": "Two", "dep": ["a"]}]}
SHAPES: tuple[tuple[str, GoalOptions], ...] = (
    ("Do nothing", DIRECT),
    ("[[plan 3]]", {}),
    ("Do nothing", DIRECT),
    ("Do two things", BROUGHT),
    ("Do nothing", DIRECT),
    ("[[diamond]] [[fail @2]]", {}),
    ("Do nothing", DIRECT),
    ("[[chain 2]] [[flaky 1]]", {}),
)
"""One after the other; the failing branch ends in a partial answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The worker at one moment.

    Attributes:
        at: Seconds since the load began.
        memory: Resident bytes.
        cpu_s: Seconds of CPU so far.
        open: Jobs submitted and not answered.
        behind: Records that the groups have not told to be done, on ``goals`` and ``job-events``.
    """

    at: float
    memory: int
    cpu_s: float
    threads: int
    files: int
    answered: int
    open: int
    behind: int


@dataclass(slots=True, kw_only=True)
class Load:
    """What was asked and seen."""

    began: float = field(default_factory=time.perf_counter)
    sent: int = 0
    latencies: list[tuple[float, float]] = field(default_factory=list)
    """When a job was answered, seconds since the load began, and how long that took."""

    unexpected: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    def now(self) -> float:
        """Seconds since the load began."""
        return time.perf_counter() - self.began


async def soak(servers: str, *, minutes: float, rate: float) -> list[Figure]:
    """Jobs of mixed shapes and three tenants at an even pace.

    Args:
        rate: Jobs a second.
    """
    async with stage(servers, "soak", "--latency", LATENCY) as here, client(here) as swarm:
        load = Load()
        sampling = asyncio.create_task(sample(here, load))
        async with asyncio.TaskGroup() as group:
            for number, (goal, options) in enumerate(itertools.cycle(SHAPES)):
                if load.now() >= minutes * 60:
                    break
                tenant: GoalOptions = {"tenant": f"tenant-{number % 3}"}
                group.create_task(ask(swarm, load, goal, {**options, **tenant}))
                load.sent += 1
                await asyncio.sleep(max(0.0, load.sent / rate - load.now()))
        sampling.cancel()
        await asyncio.wait([sampling])
    print(table(load))
    draw(load)
    return figures(load)


async def ask(swarm: Swarm, load: Load, goal: str, options: GoalOptions) -> None:
    """One job, and what came of it."""
    began = load.now()
    answer = await swarm.answer(goal, within_s=WITHIN_S, **options)
    load.latencies.append((load.now(), load.now() - began))
    if answer.outcome != wanted(goal):
        load.unexpected.append(told(answer))


def wanted(goal: str) -> str:
    """The outcome that a job of this shape has."""
    return "partial" if "[[fail" in goal else "succeeded"


def told(answer: Answer) -> str:
    """An answer in one line."""
    return f"{answer.job} {answer.outcome}: {answer.reason}"


async def sample(here: Stage, load: Load) -> None:
    """Look at the worker again and again."""
    assert here.worker is not None
    while True:
        behind = await lag(here.settings)
        load.samples.append(
            Sample(
                at=load.now(),
                memory=here.worker.memory_info().rss,
                cpu_s=here.cpu_s(),
                threads=here.worker.num_threads(),
                files=here.worker.num_fds(),
                answered=len(load.latencies),
                open=load.sent - len(load.latencies),
                behind=behind[GOALS] + behind[JOB_EVENTS],
            )
        )
        await asyncio.sleep(SAMPLE_S)


def minutes_of(load: Load) -> dict[int, list[float]]:
    """Latencies by the minute in which the answer came; the last one, which is no whole one, is left out."""
    found: dict[int, list[float]] = {}
    for at, latency in load.latencies:
        found.setdefault(int(at // 60), []).append(latency)
    if len(found) > 1:
        found.pop(max(found))
    return found


def table(load: Load) -> str:
    """A line a minute: of the samples in it the last one."""
    lines = ["minute  answered      p50      p99    memory   CPU  open  behind  threads  files"]
    before = load.samples[0]
    for minute, latencies in sorted(minutes_of(load).items()):
        here = [each for each in load.samples if each.at // 60 == minute]
        if here:
            last = here[-1]
            cpu = (last.cpu_s - before.cpu_s) / max(1e-9, last.at - before.at)
            lines.append(
                f"{minute + 1:6}  {last.answered:8}  {percentile(latencies, 0.5):5.3f} s"
                f"  {percentile(latencies, 0.99):5.3f} s  {last.memory / 1e6:5.1f} MB  {cpu:4.0%}"
                f"  {last.open:4}  {last.behind:6}  {last.threads:7}  {last.files:5}"
            )
            before = last
    return "\n".join(lines)


def figures(load: Load) -> list[Figure]:
    """What the lines through the run say."""
    warm = load.samples[int(WARM_UP * len(load.samples)) :]
    memory = [(each.at, float(each.memory - MARKER_BYTES * each.answered)) for each in warm]
    minutes = sorted(minutes_of(load).items())[int(WARM_UP * len(minutes_of(load))) :]
    halves = [(float(minute), percentile(times, 0.5)) for minute, times in minutes]
    tails = [(float(minute), percentile(times, 0.99)) for minute, times in minutes]
    return [
        Figure(name="jobs answered", value=len(load.latencies), unit="", floor=load.sent, higher=True),
        Figure(name="of them otherwise than expected", value=len(load.unexpected), unit="", floor=0),
        Figure(name="memory, mean", value=mean(each.memory for each in warm) / 1e6, unit="MB"),
        Figure(name="memory rises over the run", value=100 * rise(memory), unit="%", floor=100 * MEMORY_RISE),
        Figure(name="p50, median minute", value=median([half for _, half in halves]), unit="s"),
        Figure(name="p50 rises over the run", value=100 * rise(halves), unit="%", floor=100 * P50_RISE),
        Figure(name="p99, median minute", value=median([tail for _, tail in tails]), unit="s"),
        Figure(name="p99 rises over the run", value=100 * rise(tails), unit="%", floor=100 * P99_RISE),
        Figure(name="most open jobs at once", value=max(each.open for each in warm), unit=""),
        Figure(name="most records behind", value=max(each.behind for each in warm), unit=""),
        Figure(name="threads", value=max(each.threads for each in warm), unit=""),
        Figure(name="open files rise by", value=warm[-1].files - warm[0].files, unit="", floor=8),
    ]


def mean(values: Iterable[float]) -> float:
    """Their mean."""
    found = list(values)
    return sum(found) / len(found)


def rise(points: Sequence[tuple[float, float]]) -> float:
    """How far the least-squares line through these points rises or falls, as a share of their mean."""
    if len(points) < 2:
        return 0.0
    at, value = mean(x for x, _ in points), mean(y for _, y in points)
    spread = sum((x - at) ** 2 for x, _ in points)
    slope = sum((x - at) * (y - value) for x, y in points) / spread
    return slope * (points[-1][0] - points[0][0]) / value


def draw(load: Load) -> None:
    """The run as a picture."""
    from matplotlib.figure import Figure as Plot  # noqa: PLC0415 - only this measurement draws

    plot = Plot(figsize=(7, 5), layout="constrained")
    above, below = plot.subplots(2, sharex=True)
    minutes = sorted(minutes_of(load).items())
    shares: tuple[tuple[str, Callable[[list[float]], float]], ...] = (
        ("p50", lambda times: percentile(times, 0.5)),
        ("p99", lambda times: percentile(times, 0.99)),
    )
    for name, of in shares:
        above.plot([minute + 0.5 for minute, _ in minutes], [of(times) for _, times in minutes], label=name)
    above.set(ylabel="goal to answer, s", ylim=(0, None))
    above.legend()
    below.plot([each.at / 60 for each in load.samples], [each.memory / 1e6 for each in load.samples])
    below.set(xlabel="minute", ylabel="memory of the worker, MB", ylim=(0, None))
    (HOME / "bench").mkdir(parents=True, exist_ok=True)
    plot.savefig(HOME / "bench" / "soak.svg")
