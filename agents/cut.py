"""Long data in a prompt: its head and its tail, and a note of what was left out."""

from collections.abc import Sequence

from agents.plain_json import dumps, dumps_text
from streams.core.values import Json

HEAD_SHARE = 0.75
"""Of what is kept, the share taken from the head: most data says what it is at its beginning."""

NOTE_BYTES = 160
"""A value no longer than this stays whole: the note alone would be as long."""

SHRINK = 0.95
"""A little less than what would just fit, so that cutting again ends soon."""

MAX_ROUNDS = 8
"""Times that values are cut again, shorter, to keep within the limit."""


def cut_json(encoded: bytes, limit: int) -> str:
    """JSON text as it is where it has at most *limit* bytes, else a JSON object of head, tail and note."""
    if len(encoded) <= limit:
        return encoded.decode()
    return dumps_text(head_and_tail(encoded, limit))


def head_and_tail(encoded: bytes, limit: int) -> dict[str, Json]:
    """About *limit* bytes of an encoded JSON value, as an object with ``note``, ``head`` and ``tail``."""
    head_bytes = int(limit * HEAD_SHARE)
    # A cut inside a character leaves bytes that are no character: they are dropped, on both sides.
    head = encoded[:head_bytes].decode("utf-8", "ignore")
    tail = encoded[len(encoded) - (limit - head_bytes) :].decode("utf-8", "ignore")
    left_out = len(encoded) - limit
    return {
        "note": f"too long: {left_out} of {len(encoded)} bytes are left out between head and tail",
        "head": head,
        "tail": tail,
    }


def cut_values(values: Sequence[Json], limit: int) -> list[Json]:
    """Values cut so that their JSON, as a list, has at most *limit* bytes.

    Small values stay whole; the long ones share what is left, each the same number of bytes. A
    limit too small for that, about 500 bytes a value, is passed over.
    """
    encoded = [dumps(value) for value in values]
    if sum(map(len, encoded)) + len(encoded) < limit:
        return list(values)
    room, cut = limit, list(values)
    for _ in range(MAX_ROUNDS):
        cut = _share(values, encoded, room)
        size = len(dumps(cut))
        if size <= limit:
            break
        # Notes, and quotes escaped once more inside head and tail, made it longer than was cut for.
        room = int(room * limit / size * SHRINK)
    return cut


def _share(values: Sequence[Json], encoded: Sequence[bytes], room: int) -> list[Json]:
    allowance, left = 0, room
    for place, size in enumerate(sorted(map(len, encoded))):
        allowance = left // (len(encoded) - place)
        if size > allowance:
            break
        left -= size
    allowance = max(allowance, NOTE_BYTES)
    return [
        value if len(text) <= allowance else head_and_tail(text, allowance)
        for value, text in zip(values, encoded, strict=True)
    ]
