"""How long to wait before the next attempt of a sub-task, or the next try of a call."""

FIRST_S, LONGEST_S = 1.0, 8.0


def backoff(attempt: int, chance: float) -> float:
    """Seconds to wait after *attempt* failed: exponential, with full jitter.

    Full jitter spreads those who failed together best (Marc Brooker, "Exponential Backoff And
    Jitter", AWS Architecture Blog, 2015).

    Args:
        attempt: The attempt or try that failed, from 1.
        chance: Between 0 and 1, drawn outside the core.
    """
    return chance * min(LONGEST_S, FIRST_S * 2.0 ** (attempt - 1))
