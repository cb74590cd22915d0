"""Many lives, one after the other: what was found, and what it takes to find it again."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import structlog

from streams.chaos.evidence import Evidence, Finding
from streams.chaos.scenarios import Scenario
from streams.chaos.simulation.deriving import derive
from streams.chaos.simulation.living import Lived, live
from streams.chaos.simulation.shrinking import shrunk
from streams.chaos.verifier import Figures, judge

CRASHED = "crashed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A life and what the verifier says of it.

    Attributes:
        findings: Ways in which the promise was broken.
        digest: Of all its records.
        seconds, steps: As of :class:`~streams.chaos.simulation.living.Lived`.
    """

    scenario: Scenario
    findings: tuple[Finding, ...]
    figures: Figures
    digest: str
    seconds: float
    steps: int

    @property
    def kinds(self) -> frozenset[str]:
        """In which ways the promise was broken."""
        return frozenset(finding.kind for finding in self.findings)


def judged(scenario: Scenario) -> Judged:
    """Live a scenario and verify it."""
    with silence():
        lived = live(scenario)
    verdict = judge(lived.evidence)
    return Judged(
        scenario=scenario,
        findings=(*verdict.findings, *_twice(lived), *_crashes(lived.evidence)),
        figures=verdict.figures,
        digest=lived.digest,
        seconds=lived.seconds,
        steps=lived.steps,
    )


def _twice(lived: Lived) -> Iterator[Finding]:
    """Calls of the tool that must not run twice in an attempt."""
    for name, count in lived.recorded.items():
        if count > 1:
            what = f"a tool that must not run twice ran {count} times"
            yield Finding(kind="called_again", where=f"tool {name}", what=what)


def _crashes(evidence: Evidence) -> Iterator[Finding]:
    """No fault that the parts are to live through may end one of them."""
    for life in evidence.lives:
        if life.how.startswith(CRASHED):
            yield Finding(kind=CRASHED, where=f"worker {life.run}", what=life.how)


def smallest(found: Judged) -> Judged:
    """The smallest scenario found that breaks the promise in one of the ways that *found* does."""
    last = found

    def breaks(scenario: Scenario) -> bool:
        nonlocal last
        again = judged(scenario)
        if again.kinds & found.kinds:
            last = again
            return True
        return False

    shrunk(found.scenario, breaks)
    return last


@dataclass(slots=True, kw_only=True)
class Tally:
    """What there was in many lives.

    Attributes:
        faults: Incidents by kind, and lives with a fault of the log or the endpoint by its name.
        calm: Lives in which nothing went wrong.
        broken: Lives that broke the promise.
        virtual_s: Virtual seconds lived.
        began: Seconds on the monotonic clock.
    """

    lives: int = 0
    calm: int = 0
    broken: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    figures: Figures = field(default_factory=Figures)
    virtual_s: float = 0.0
    steps: int = 0
    began: float = field(default_factory=time.monotonic)

    def add(self, life: Judged) -> None:
        """Count a life."""
        faults = Counter(faults_of(life.scenario))
        self.lives += 1
        self.calm += not faults
        self.broken += bool(life.findings)
        self.faults += faults
        self.figures += replace(life.figures, kinds=Counter(each.kind for each in life.findings))
        self.virtual_s += life.seconds
        self.steps += life.steps

    @property
    def a_minute(self) -> float:
        """Lives a minute of real time so far."""
        return 60 * self.lives / max(1e-9, time.monotonic() - self.began)


def faults_of(scenario: Scenario) -> Mapping[str, int]:
    """How often each kind of fault is in a scenario; those of log and endpoint once where there are any."""
    faults = Counter(incident.kind.replace("_", " ") for incident in scenario.incidents)
    named = {
        "late replies": scenario.delay_s > 0,
        "lost sends": scenario.lost_sends > 0,
        "lost replies": scenario.lost_replies > 0,
        "unknown commits": scenario.unknown_commits > 0,
        "short batches": scenario.short_batches > 0,
        "failing model calls": bool(scenario.failures),
    }
    poison = {"poison records": len(scenario.poison)} if scenario.poison else {}
    repeated = sum(job.times - 1 for job in scenario.jobs)
    again = {"repeated goals": repeated} if repeated else {}
    return {**faults, **{name: 1 for name, is_there in named.items() if is_there}, **poison, **again}


def lives(first: int, count: int, *, derived: Callable[[int], Scenario] = derive) -> Iterator[Judged]:
    """The lives of so many seeds, from the first on."""
    for seed in range(first, first + count):
        yield judged(derived(seed))


@contextmanager
def silence() -> Iterator[None]:
    """Lives log as workers do, thousands of lines of what was brought about on purpose; nobody reads them."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)
