"""How long to wait before a server is started again."""

import random
from collections.abc import Callable
from typing import Final

FIRST_S: Final = 0.5
"""Seconds before the first try."""

MAX_S: Final = 60.0
"""Seconds between two tries at most; a server that lasted that long begins anew."""


def delay_s(failures: int, chance: Callable[[], float] = random.random) -> float:
    """Seconds to wait after so many failures in a row, 1 at least.

    Doubling, and half of it by chance (0 to 1), so that workers that lost one server together do not
    come back together.
    """
    whole = min(FIRST_S * 2.0 ** min(failures - 1, 32), MAX_S)
    return whole * (0.5 + 0.5 * chance())
