"""What a round does: which faults, and when. It follows from the seed and the faults that there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from streams.chaos.attacks import Fault

JOBS: Final = 25
"""Jobs of a round; one of so many has about a hundred sub-tasks."""
GOALS_S: Final = 12.0
"""Seconds over which they come."""

_FAULTS: Final = (3, 5)
_WITHIN_S: Final = (0.5, 10.0)
_CALM: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """A fault at its time.

    Attributes:
        fault: Its name.
        at_s: Seconds from the first goal.
        seed: Of all that the fault chooses.
    """

    fault: str
    at_s: float
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a round does.

    Attributes:
        strikes: Earliest first; none in a calm round.
        jobs: How many, beside those that faults bring.
        goals_s: Seconds over which they come.
    """

    seed: int
    strikes: tuple[Strike, ...]
    jobs: int = JOBS
    goals_s: float = GOALS_S


def seeds(seed: int, rounds: int) -> range:
    """The seeds of a run's rounds: no two runs of other seeds, and up to 10,000 rounds, share one."""
    return range(seed * 10_000, seed * 10_000 + rounds)


def plan(seed: int, faults: Sequence[Fault]) -> Plan:
    """Choose what goes wrong and when: three to five faults in the first ten seconds.

    A quarter of the seeds are those of calm rounds: nothing goes wrong.
    """
    drawn = chance(seed)
    if seed % _CALM == _CALM - 1:
        return Plan(seed=seed, strikes=())
    strikes = [
        Strike(fault=each.name, at_s=round(drawn.uniform(*_WITHIN_S), 2), seed=drawn.getrandbits(32))
        for each in drawn.sample(list(faults), min(drawn.randint(*_FAULTS), len(faults)))
    ]
    return Plan(seed=seed, strikes=tuple(sorted(strikes, key=lambda strike: strike.at_s)))


def chance(seed: int) -> Random:
    """Chance that comes again with the same seed."""
    return Random(seed)  # noqa: S311 - chance that must be repeatable, no secret
