"""``anabranch chaos simulate``: lives are lived, counted, and lived again alone."""

from pathlib import Path

import pytest

from streams.chaos.scenarios import Incident, Scenario
from streams.chaos.simulation.series import judged
from streams.chaos.simulation.writing import read_scenario, write_scenario
from streams.cli.exits import Exit
from tests.chaos.planted import PLANTED
from tests.cli.conftest import anabranch, printed

SMALL = Scenario(seed=7, incidents=(Incident(kind="kill", at=0.3, seconds=0.5),))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A scenario."""
    path = tmp_path / "scenario.json"
    path.write_bytes(write_scenario(SMALL))
    return path


def test_lives_are_counted() -> None:
    """And none is broken."""
    result = anabranch("chaos", "simulate", "--lives", "2", "--seed", "4")
    assert result.exit_code == Exit.FINE, result.output
    assert "lives a minute" in result.stdout
    (told,) = printed(anabranch("chaos", "simulate", "--lives", "2", "--seed", "4", "--json"))
    assert (told["lives"], told["broken"], told["lost"], told["duplicated"], told["wrong"]) == (2, 0, 0, 0, 0)
    assert told["jobs"] > 2


def test_a_scenario_is_lived_alone(file: Path) -> None:
    """Its digest tells whether it was the same life elsewhere."""
    result = anabranch("chaos", "simulate", "--scenario", str(file))
    assert result.exit_code == Exit.FINE, result.output
    assert "kept the promise: 1 jobs" in result.stdout
    assert judged(SMALL).digest in result.stdout


def test_what_breaks_the_promise_is_told_and_kept(tmp_path: Path) -> None:
    """As small as it can be, for another day."""
    planted = next(each for each in PLANTED if each.plant.__name__ == "answers_twice")
    with pytest.MonkeyPatch.context() as patch:
        planted.plant(patch)
        result = anabranch("chaos", "simulate", "--lives", "1", "--seed", "4", "--out", str(tmp_path))
    assert result.exit_code == Exit.POOR
    assert "life 4: duplicated" in result.stderr
    assert "duplicated: default/fresh" in result.stdout
    kept = read_scenario((tmp_path / "4.json").read_bytes())
    assert (kept.seed, kept.jobs, kept.incidents) == (4, (), ())


def test_a_file_that_is_no_scenario(tmp_path: Path) -> None:
    path = tmp_path / "scenario.json"
    path.write_text('{"weather": "fine"}')
    result = anabranch("chaos", "simulate", "--scenario", str(path))
    assert result.exit_code == Exit.USAGE
    assert "no scenario" in result.stderr
