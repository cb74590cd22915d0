"""docs/life-cycle.md holds exactly what the code prints."""

import subprocess
import sys
from pathlib import Path
from typing import get_args

from streams.core.life_cycle import draw
from streams.core.states import SubTaskState

ROOT = Path(__file__).parents[2]

DRAWN = draw()  # two seconds of a core


def test_the_picture_in_the_docs_is_the_codes() -> None:
    """To print it anew: ``python -m streams.core.life_cycle``."""
    page = (ROOT / "docs" / "life-cycle.md").read_text(encoding="utf-8")
    _, _, rest = page.partition("```mermaid\n")
    picture, fence, _ = rest.partition("```")
    assert fence
    assert picture == DRAWN


def test_the_module_prints_the_picture() -> None:
    """The same at every run, whatever the seed of the hashes."""
    printed = subprocess.run(
        [sys.executable, "-m", "streams.core.life_cycle"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert printed.stdout.decode() == DRAWN


def test_every_state_is_in_the_picture() -> None:
    """The samples reach all of them."""
    words = set(DRAWN.replace(":", " ").split())
    assert {state.__name__ for state in get_args(SubTaskState)} <= words
    assert {"New", "Planning", "Working", "Joining", "Finished"} <= words
