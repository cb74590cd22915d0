"""A prompt cache that counts: how much of a conversation was seen before, from its beginning on."""

from collections import OrderedDict

BYTES_A_TOKEN = 4
"""Bytes of UTF-8 that count as one token, near enough to English text under usual tokenizers."""

BLOCK_TOKENS = 64
"""Tokens are cached in whole blocks of so many, as DeepSeek documents it for its context cache."""

_BLOCK_BYTES = BLOCK_TOKENS * BYTES_A_TOKEN


class PrefixCache:
    """Remembers conversations by their blocks, each block under the hash of all up to its end.

    So two conversations share what they share from the beginning, and nothing after the first
    difference, as in vLLM's prefix cache. Bounded: the blocks not used for longest go first.
    """

    def __init__(self, blocks: int = 65_536) -> None:
        """A cache of so many blocks."""
        self._blocks = blocks
        self._seen: OrderedDict[int, None] = OrderedDict()

    def note(self, conversation: bytes) -> int:
        """Remember a rendered conversation; returns how many of its tokens were cached before.

        The last token is never cached: a model must read at least one to go on.
        """
        chain: list[int] = []
        key = 0
        for start in range(0, len(conversation) - _BLOCK_BYTES, _BLOCK_BYTES):
            key = hash((key, conversation[start : start + _BLOCK_BYTES]))
            chain.append(key)
        hits = 0
        for key in chain:
            if key not in self._seen:
                break
            hits += 1
        # From the end to the beginning, so that the beginning, which others share, goes last.
        for key in reversed(chain):
            self._seen.pop(key, None)
            self._seen[key] = None
        while len(self._seen) > self._blocks:
            self._seen.popitem(last=False)
        return hits * BLOCK_TOKENS
