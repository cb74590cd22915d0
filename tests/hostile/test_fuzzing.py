"""A short form of ``python -m tests.hostile``: two thousand hostile inputs, each accounted for."""

import pytest

from tests.hostile.kinds import KINDS, portions
from tests.hostile.mutating import Mutator, places
from tests.hostile.samples import GOALS, of
from tests.hostile.tally import Tally, table

SHORT = portions(2_000, list(KINDS))


@pytest.mark.parametrize("name", KINDS)
def test_no_crash_no_hang_everything_accounted_for(name: str) -> None:
    """Taken for what it is, or said to be none, with a reason; and what is good beside it goes its way."""
    tally = KINDS[name].put_in(7, SHORT[name])
    assert tally.crashes == []
    assert tally.hangs == 0
    assert tally.inputs == SHORT[name]
    assert tally.accepted + tally.refused >= tally.inputs
    assert tally.accepted > 0


def test_all_together_are_two_thousand() -> None:
    assert sum(SHORT.values()) == 2_000
    assert sum(kind.share for kind in KINDS.values()) == 100


def test_a_seed_repeats_its_inputs() -> None:
    """And another one has others."""
    one, again, other = (Mutator(seed) for seed in (3, 3, 4))
    made = [[mutator.json(goal, GOALS) for goal in GOALS] for mutator in (one, again, other)]
    assert made[0] == made[1] != made[2]


def test_what_is_changed_is_a_copy() -> None:
    """Else the first inputs would spoil the samples for all that come after them."""
    before = of("job-events")
    mutator = Mutator(5)
    for _ in range(300):
        mutator.json(mutator.chosen(before), before)
    assert before == of("job-events")
    assert len(places({"a": [1, {"b": 2}]})) == 4


def test_what_goes_wrong_is_counted_and_what_takes_too_long() -> None:
    """And the next input gets its turn."""
    tally = Tally(kind="x")
    with tally.watching("first", 5):
        raise ValueError("no")
    with tally.watching("second", 1):
        while True:
            pass
    assert (len(tally.crashes), tally.hangs) == (2, 1)
    assert "first: ValueError: no" in tally.crashes
    assert "| x | 0 | 0 | 0 | 0 | 2 | 1 |" in table([tally])
