"""The page on time: its goal is a good one, and its numbers are the code's."""

import orjson

from streams.core.events import JobSubmitted
from streams.core.goal import Hedging, KindTimeout
from streams.hedges import LEAST, SLOW, WINDOW
from streams.log import Record
from streams.wire.goals import read_goal
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "time.md"


def test_the_goal_is_a_good_one() -> None:
    """As intake reads it."""
    ((_, text),) = (block for block in blocks(PAGE) if block[0] == "json")
    read = read_goal(Record("goals", 0, 0, 0, None, orjson.dumps(orjson.loads(text))), lanes=8)
    assert isinstance(read, JobSubmitted)
    assert read.goal.hedge == Hedging(share=0.05)
    assert KindTimeout(kind="plan", timeout_s=60) in read.goal.limits.timeouts


def test_how_the_slowest_are_found() -> None:
    """The share, how many are remembered, and the fewest."""
    text = PAGE.read_text(encoding="utf-8")
    assert f"longer than {SLOW:.0%} of the last {WINDOW} successes".replace("%", " %") in text
    assert f"at least {LEAST} of them" in text
