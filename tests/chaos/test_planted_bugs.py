"""Bugs put into the real parts are found; without them the same lives keep the promise."""

from functools import cache

import pytest

from streams.chaos.evidence import Expected
from streams.chaos.scenarios import Scenario
from streams.chaos.simulation.living import answers_to, live
from streams.chaos.simulation.series import silence
from streams.chaos.verifier import judge
from streams.core.values import JobId
from tests.chaos.planted import ASLEEP, ASLEEP_IN_A_COMMIT, CALM, KILLED, PLANTED, Planted

LIVES = (CALM, KILLED, ASLEEP, ASLEEP_IN_A_COMMIT)


@cache
def answers(number: int) -> dict[JobId, Expected]:
    """What the answers in a life must be, found without any bug."""
    with silence():
        return answers_to(LIVES[number])


def kinds(scenario: Scenario) -> frozenset[str]:
    """The kinds of what is found in a life."""
    with silence():
        lived = live(scenario, answers(LIVES.index(scenario)))
    return frozenset(finding.kind for finding in judge(lived.evidence).findings)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.plant.__name__)
def test_a_planted_bug_is_found(planted: Planted) -> None:
    """By the rule that it breaks. The verifier looks with the parts as they are."""
    with pytest.MonkeyPatch.context() as patch, silence():
        planted.plant(patch)
        lived = live(planted.scenario, answers(LIVES.index(planted.scenario)))
    found = {finding.kind for finding in judge(lived.evidence).findings}
    assert found & planted.kinds, found


@pytest.mark.parametrize("scenario", LIVES, ids=("calm", "killed", "asleep", "asleep in a commit"))
def test_without_it_the_same_life_keeps_the_promise(scenario: Scenario) -> None:
    """So what is found is the bug's."""
    assert kinds(scenario) == frozenset()
