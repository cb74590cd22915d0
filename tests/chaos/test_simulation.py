"""Lives on the log in memory: the promise is kept in each, and one that breaks it is lived again, smaller."""

import subprocess
import sys
from itertools import count, islice
from pathlib import Path

import pytest

from streams.chaos.evidence import Expected
from streams.chaos.scenarios import SHARED, Incident, Scenario
from streams.chaos.simulation.deriving import derive
from streams.chaos.simulation.living import answers_to, live
from streams.chaos.simulation.series import Judged, Tally, judged, lives, silence, smallest
from streams.chaos.simulation.shrinking import shrunk
from streams.chaos.simulation.writing import read_scenario, write_scenario
from streams.chaos.verifier import judge
from streams.core.values import JobId
from tests.chaos.planted import PLANTED, Planted

LIVES, BATCH = 150, 15
FOUND_WITHIN = 50
RARE = frozenset({"a_goal_passed_over", "stops_not_heard"})
"""Bugs that take half a minute of random lives to be found: the life that is made for each shows it."""

SEEDS = sorted((Path(__file__).parent / "seeds").glob("*.json"))


def told(life: Judged) -> str:
    """What was found, and how to find it again."""
    found = "\n".join(f"{each.kind}: {each.where}: {each.what}" for each in life.findings)
    return f"anabranch chaos simulate --life {life.scenario.seed}\n{found}"


@pytest.mark.parametrize("first", range(0, LIVES, BATCH))
def test_lives_keep_the_promise(first: int) -> None:
    """Whatever goes wrong, and whenever."""
    assert [told(life) for life in lives(first, BATCH) if life.findings] == []


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_what_was_found_once_stays_mended(path: Path) -> None:
    """Scenarios that broke the promise, as small as they could be made; each file says what was wrong."""
    scenario = read_scenario(path.read_bytes())
    assert scenario.found
    assert judged(scenario).findings == ()


@pytest.mark.parametrize("name", SHARED)
def test_scenarios_that_also_run_on_a_real_kafka(name: str) -> None:
    """They end the same here."""
    life = judged(SHARED[name])
    assert life.findings == ()
    assert life.figures.answers == life.figures.jobs


def test_the_same_seed_is_the_same_life() -> None:
    """Record by record, also in another process, where sets of texts have another order."""
    digest = judged(derive(8)).digest
    assert digest == judged(derive(8)).digest
    program = (
        "from streams.chaos.simulation.series import judged\n"
        "from streams.chaos.simulation.deriving import derive\n"
        "print(judged(derive(8)).digest)"
    )
    elsewhere = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert elsewhere.stdout.split() == [digest]


@pytest.mark.parametrize("seed", range(50))
def test_a_scenario_is_read_as_it_was_written(seed: int) -> None:
    scenario = derive(seed)
    assert read_scenario(write_scenario(scenario)) == scenario


def test_a_scenario_with_a_field_that_nobody_knows_is_none() -> None:
    """It would be another one than was meant."""
    with pytest.raises(ValueError, match="not all of it is known"):
        read_scenario(b'{"seed": 1, "weather": "fine"}')


def test_a_scenario_is_made_as_small_as_still_breaks() -> None:
    """What has no part in it is left out."""
    large = next(s for s in map(derive, range(1000)) if len(s.jobs) > 5 and len(s.incidents) > 1)

    def breaks(scenario: Scenario) -> bool:
        return any(job.id == "g3" for job in scenario.jobs) and bool(scenario.incidents)

    small = shrunk(large, breaks)
    assert [job.id for job in small.jobs] == ["g3"]
    assert len(small.incidents) == 1
    assert (small.workers, small.lanes, small.delay_s, small.poison) == (1, 1, 0.0, ())


@pytest.fixture(scope="module")
def answers() -> dict[int, dict[JobId, Expected]]:
    """What the answers in a life must be, by its seed, found without any bug."""
    return {}


@pytest.mark.parametrize(
    "planted",
    [planted for planted in PLANTED if planted.plant.__name__ not in RARE],
    ids=lambda planted: planted.plant.__name__,
)
def test_lives_find_a_planted_bug(planted: Planted, answers: dict[int, dict[JobId, Expected]]) -> None:
    """Within so many lives in which the faults that show it strike at all, by the rule that it breaks."""
    faults = {incident.kind for incident in planted.scenario.incidents}
    fitting = (s for s in map(derive, count()) if faults <= {incident.kind for incident in s.incidents})
    assert any(kinds(s, planted, answers) & planted.kinds for s in islice(fitting, FOUND_WITHIN))


def kinds(scenario: Scenario, planted: Planted, answers: dict[int, dict[JobId, Expected]]) -> set[str]:
    """The kinds of what is found in a life with a bug."""
    if scenario.seed not in answers:
        answers[scenario.seed] = answers_to(scenario)
    with pytest.MonkeyPatch.context() as patch, silence():
        planted.plant(patch)
        lived = live(scenario, answers[scenario.seed])
    return {finding.kind for finding in judge(lived.evidence).findings}


def test_a_life_that_breaks_the_promise_is_told_as_small_as_it_can_be() -> None:
    """Here by a bug that a single goal shows, without any fault."""
    planted = next(each for each in PLANTED if each.plant.__name__ == "answers_twice")
    with pytest.MonkeyPatch.context() as patch:
        planted.plant(patch)
        small = smallest(judged(Scenario(jobs=SHARED["nothing goes wrong"].jobs[:3])))
    assert small.kinds == {"duplicated"}
    assert (len(small.scenario.jobs), small.scenario.workers, small.scenario.lanes) == (0, 1, 1)


def test_a_tally_counts_lives_and_what_went_wrong_in_them() -> None:
    tally = Tally()
    tally.add(judged(Scenario()))
    tally.add(judged(Scenario(incidents=(Incident(kind="kill", at=0.1, seconds=0.1),))))
    assert (tally.lives, tally.calm, tally.broken) == (2, 1, 0)
    assert tally.faults == {"kill": 1}
    assert tally.figures.jobs == 2, "a fresh goal each"
