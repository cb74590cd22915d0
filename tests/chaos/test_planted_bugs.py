"""Bugs put into the real parts are found; without them the same lives keep the promise."""

from dataclasses import replace
from functools import cache

import pytest

from streams.chaos.evidence import Expected
from streams.chaos.simulation.living import Lived, answers_to, live
from streams.chaos.simulation.series import silence
from streams.chaos.verifier import judge
from streams.core.values import JobId
from tests.chaos.planted import ASLEEP, ASLEEP_IN_A_COMMIT, CALM, KILLED, PLANTED, TOO_LATE, Planted

LIVES = (CALM, KILLED, ASLEEP, ASLEEP_IN_A_COMMIT, TOO_LATE)
NAMES = ("calm", "killed", "asleep", "asleep in a commit", "too late")


SEEDS = 8
"""Lives that a bug is looked for in: whether one meets it also hangs on how long its calls take, and that on
their every word. Most bugs are found in the first."""


@cache
def answers(scenario: int, seed: int) -> dict[JobId, Expected]:
    """What the answers in a life must be, found without any bug."""
    with silence():
        return answers_to(replace(LIVES[scenario], seed=seed))


@cache
def without_bugs(scenario: int, seed: int) -> frozenset[str]:
    """The kinds of what is found in a life of the parts as they are."""
    return kinds(lived(scenario, seed))


def lived(scenario: int, seed: int) -> Lived:
    """A life, with the bugs that are planted now."""
    expected = answers(scenario, seed)
    with silence():
        return live(replace(LIVES[scenario], seed=seed), expected)


def kinds(life: Lived) -> frozenset[str]:
    """The kinds of what is found in a life."""
    return frozenset(finding.kind for finding in judge(life.evidence).findings)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.plant.__name__)
def test_a_planted_bug_is_found(planted: Planted) -> None:
    """By the rule that it breaks, in a life that keeps the promise without it.

    The verifier looks with the parts as they are.
    """
    scenario = LIVES.index(planted.scenario)
    found: list[frozenset[str]] = []
    for seed in range(SEEDS):
        answers(scenario, seed)  # before there is any bug
        with pytest.MonkeyPatch.context() as patch:
            planted.plant(patch)
            life = lived(scenario, seed)
        found.append(kinds(life))
        if found[-1] & planted.kinds:
            assert without_bugs(scenario, seed) == frozenset()
            return
    pytest.fail(f"found in {SEEDS} lives: {found}")


@pytest.mark.parametrize("scenario", range(len(LIVES)), ids=NAMES)
def test_without_it_the_same_life_keeps_the_promise(scenario: int) -> None:
    """So what is found is the bug's."""
    assert without_bugs(scenario, 0) == frozenset()
