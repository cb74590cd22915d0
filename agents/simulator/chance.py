"""Chance without a random generator: drawn from the seed, the request, and how often it came before."""

from collections import OrderedDict
from hashlib import blake2b


def draw(seed: int, digest: str, nth: int, purpose: str) -> float:
    """A number between 0 and 1, both excluded, the same for the same arguments on every machine."""
    drawn = blake2b(f"{seed}/{digest}/{nth}/{purpose}".encode(), digest_size=8).digest()
    return ((int.from_bytes(drawn, "big") >> 11) + 0.5) / 2**53  # 53 bits: what a float holds


class Repetitions:
    """Counts how often each request came, for the *capacity* requests seen last.

    A request forgotten counts as new when it comes again.
    """

    def __init__(self, capacity: int = 100_000) -> None:
        self._capacity = capacity
        self._seen: OrderedDict[str, int] = OrderedDict()

    def note(self, digest: str) -> int:
        """Count this request; returns how many times it came before."""
        before = self._seen.pop(digest, 0)
        self._seen[digest] = before + 1
        if len(self._seen) > self._capacity:
            self._seen.popitem(last=False)
        return before
