"""A scenario from a seed: jobs of every shape, and faults that meet them at their worst moments."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from streams.chaos.scenarios import Incident, IncidentKind, Job, Poison, Scenario
from streams.chaos.simulation.shapes import a_job
from streams.topics import GOALS, JOB_EVENTS, SUBTASKS

WITHOUT_FAULTS = 0.1
"""Share of lives in which nothing goes wrong: what fails there is no fault's fault."""

CLASHING = 0.1
"""Share of lives in which two goals have one id: whichever comes first has it, the other is buried."""

NAMED = 0.3
"""Share of lives in which workers have stable names."""

BUSY_S = 10.0
"""Seconds in which goals come and most incidents strike."""

SESSION_S = 6.0


def derive(seed: int) -> Scenario:
    """The scenario of this seed, the same on every machine."""
    chance = Random(f"life {seed}")  # noqa: S311 - chance that must be repeatable, no secret
    lanes = chance.randint(1, 4)
    workers = chance.choice((1, 2, 2, 3))
    jobs = [_sent(a_job(f"g{n}", chance), chance) for n in range(chance.choice((2, 4, 6, 8, 12, 20)))]
    if chance.random() < CLASHING:
        jobs[0], jobs[1] = _clashing(jobs[0], jobs[1])
    calm = Scenario(
        seed=seed,
        lanes=lanes,
        workers=workers,
        concurrency=chance.choice((2, 4, 8, 16)),
        static=chance.random() < NAMED,
        window=chance.choice((256, 256, 8, 2)),
        batch=chance.choice((500, 500, 3)),
        drain_s=chance.choice((10.0, 10.0, 0.5)),
        latency_s=chance.choice((0.3, 1.0, 3.0)),
        jobs=tuple(jobs),
    )
    return calm if chance.random() < WITHOUT_FAULTS else _with_faults(calm, chance)


def _sent(job: Job, chance: Random) -> Job:
    return replace(
        job,
        at=round(chance.uniform(0, BUSY_S * chance.choice((0.0, 0.3, 0.8))), 2),
        partition=chance.randrange(4),
        times=chance.choice((1, 1, 1, 1, 2, 3)),
        padding=0 if "input" in job.goal else chance.choice((0, 0, 0, 0, 12_000)),
    )


def _clashing(one: Job, other: Job) -> tuple[Job, Job]:
    """Both under the id of the first; nobody knows beforehand which of them is answered."""
    names = {name: one.goal[name] for name in ("id", "tenant") if name in one.goal}
    fields = {name: value for name, value in other.goal.items() if name not in {"id", "tenant"}}
    return replace(one, certain=False), replace(other, goal={**names, **fields}, certain=False)


def _with_faults(calm: Scenario, chance: Random) -> Scenario:
    def sometimes(share: float, most: float) -> float:
        return round(chance.uniform(0, most), 4) if chance.random() < share else 0.0

    failures: dict[str, float] = {}
    if chance.random() < 0.3:  # noqa: PLR2004 - a share
        failures = {"server_error": 0.05, "rate_limited": 0.04, "overloaded": 0.02}
    return replace(
        calm,
        failures=failures,
        delay_s=chance.choice((0.0, 0.0, 0.003, 0.03, 0.2)),
        lost_sends=sometimes(0.2, 0.02),
        lost_replies=sometimes(0.2, 0.02),
        unknown_commits=sometimes(0.2, 0.08),
        short_batches=chance.choice((0.0, 0.3)),
        request_timeout_s=chance.choice((3.0, 10.0, 30.0)),
        poison=tuple(_poison(chance) for _ in range(chance.choice((0, 0, 0, 1, 3)))),
        incidents=tuple(_incidents(calm, chance)),
    )


def _poison(chance: Random) -> Poison:
    at, partition = round(chance.uniform(0, BUSY_S), 2), chance.randrange(4)
    topic = chance.choice((GOALS, GOALS, JOB_EVENTS, SUBTASKS))
    if topic == GOALS:
        value, binary = chance.choice(
            ((None, False), ("ff00fe", True), ("[1, 2", False), ('{"text": "no goal"}', False), ("", False))
        )
    else:
        value, binary = chance.choice((("{", False), ("00", True), ('{"type": "Nothing"}', False)))
    return Poison(at=at, topic=topic, partition=partition, key="default/nobody", value=value, binary=binary)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moment:
    """When and where something is to strike."""

    at: float
    workers: int
    chance: Random

    def somebody(self) -> int:
        return self.chance.randrange(self.workers)

    def steps(self) -> int:
        """Anywhere in the next moments of a process: few steps more often than many."""
        return int(2 ** self.chance.uniform(0, 8.5))

    def down(self) -> float:
        """Seconds that a worker is away: within its session, about as long, or longer."""
        return round(
            self.chance.choice((0.1, 1.0, 4.0, SESSION_S + 0.5, 12.0)) * self.chance.uniform(0.7, 1.1), 2
        )


def _incidents(calm: Scenario, chance: Random) -> Iterator[Incident]:
    for _ in range(chance.choice((0, 1, 1, 2, 2, 3, 5))):
        moment = _Moment(at=round(chance.uniform(0.0, BUSY_S), 2), workers=calm.workers, chance=chance)
        yield from chance.choice(PATTERNS)(moment)


def _killed(moment: _Moment) -> Iterator[Incident]:
    yield Incident(
        kind="kill", at=moment.at, worker=moment.somebody(), seconds=moment.down(), steps=moment.steps()
    )


def _two_killed(moment: _Moment) -> Iterator[Incident]:
    for worker in range(min(2, moment.workers)):
        at = round(moment.at + moment.chance.uniform(0, 0.5), 2)
        yield Incident(kind="kill", at=at, worker=worker, seconds=moment.down(), steps=moment.steps())


def _killed_again_and_again(moment: _Moment) -> Iterator[Incident]:
    """As it takes over, reads its rows, catches up."""
    worker, at = moment.somebody(), moment.at
    for _ in range(moment.chance.randint(2, 4)):
        yield Incident(kind="kill", at=round(at, 2), worker=worker, seconds=0.3, steps=moment.steps())
        at += moment.chance.choice((0.3, 0.4, 1.0, 3.0))


def _heir_killed(moment: _Moment) -> Iterator[Incident]:
    """One is killed, and then another as it takes over."""
    worker = moment.somebody()
    yield Incident(kind="kill", at=moment.at, worker=worker, seconds=20.0, steps=moment.steps())
    yield Incident(
        kind="kill",
        at=round(moment.at + SESSION_S + moment.chance.uniform(-1.2, 1.0), 2),
        worker=(worker + 1) % moment.workers,
        seconds=moment.down(),
        steps=moment.steps(),
    )


def _stopped(moment: _Moment) -> Iterator[Incident]:
    yield Incident(kind="stop", at=moment.at, worker=moment.somebody(), seconds=moment.down())


def _handover_killed(moment: _Moment) -> Iterator[Incident]:
    """Told to stop, and killed before it has; or the one that it hands over to is."""
    worker = moment.somebody()
    yield Incident(kind="stop", at=moment.at, worker=worker, seconds=moment.down())
    yield Incident(
        kind="kill",
        at=round(moment.at + moment.chance.choice((0.0, 0.3, 2.0)) * moment.chance.random(), 2),
        worker=moment.chance.choice((worker, (worker + 1) % moment.workers)),
        seconds=moment.down(),
        steps=moment.steps(),
    )


def _asleep(moment: _Moment) -> Iterator[Incident]:
    """For a moment, for about its session, or long enough to be a zombie."""
    seconds = moment.chance.choice((1.0, SESSION_S - 1.0, SESSION_S, SESSION_S + 0.5, 10.0, 25.0))
    yield Incident(kind="pause", at=moment.at, worker=moment.somebody(), seconds=seconds)


def _asleep_in_a_handover(moment: _Moment) -> Iterator[Incident]:
    worker = moment.somebody()
    yield Incident(kind="join", at=moment.at)
    at = round(moment.at + moment.chance.uniform(0, 0.3), 2)
    yield Incident(kind="pause", at=at, worker=worker, seconds=moment.chance.choice((2.0, 8.0, 15.0)))


def _one_to_many_to_one(moment: _Moment) -> Iterator[Incident]:
    """Rebalance after rebalance."""
    more, gap = moment.chance.randint(1, 3), moment.chance.choice((0.05, 0.7, 3.0))
    for n in range(more):
        yield Incident(kind="join", at=round(moment.at + gap * n, 2))
    for n in range(more):
        yield Incident(kind="leave", at=round(moment.at + gap * (more + n), 2), worker=n)


def _no_broker(moment: _Moment) -> Iterator[Incident]:
    yield Incident(kind="outage", at=moment.at, seconds=moment.chance.choice((0.5, 3.0, 8.0, 20.0)))


def _killed_without_a_broker(moment: _Moment) -> Iterator[Incident]:
    yield from _no_broker(moment)
    yield from _killed(moment)


def _stranger(moment: _Moment) -> Iterator[Incident]:
    yield Incident(
        kind="stranger",
        at=moment.at,
        worker=moment.chance.randrange(4),
        seconds=moment.chance.choice((0.0, 1.0, 5.0)),
    )


def _no_model(moment: _Moment) -> Iterator[Incident]:
    kinds: tuple[IncidentKind, ...] = ("endpoint_down", "endpoint_slow")
    kind = moment.chance.choice(kinds)
    yield Incident(kind=kind, at=moment.at, seconds=moment.chance.choice((1.0, 4.0)))


PATTERNS: tuple[Callable[[_Moment], Iterator[Incident]], ...] = (
    _killed,
    _killed,
    _two_killed,
    _killed_again_and_again,
    _heir_killed,
    _stopped,
    _handover_killed,
    _asleep,
    _asleep,
    _asleep_in_a_handover,
    _one_to_many_to_one,
    _no_broker,
    _killed_without_a_broker,
    _stranger,
    _no_model,
)
