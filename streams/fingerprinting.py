"""Fingerprints of results, made where the results are; :mod:`streams.core.fingerprints` compares them."""

import asyncio
import re
import unicodedata
from base64 import b64encode
from hashlib import blake2b
from struct import pack
from zlib import crc32

import orjson

from streams.core.fingerprints import BINS, EMPTY, PACKED
from streams.core.values import Json

SHINGLE = 12
"""Bytes of a shingle of the normalised text: about two words of English, four characters of Chinese."""

AT_ONCE = 16_384
"""Bytes of JSON that are looked at on the event loop; more go to a thread."""

_DIGEST_BYTES = 16
_LOW = 25  # bits of a hash that are compared within a bin; the seven above them name one of 128 bins
_MASK = (1 << _LOW) - 1
_SPREAD = 0x9E3779B1  # an odd number: CRC-32 is linear, and like shingles would have like hashes

_EDGES = ".,;:!?\"'()[]{}<>«»“”‘’„‚…–—`*_。、「」『』《》·"  # noqa: RUF001 - meant as they are
_MARKS = re.compile(rf"(?:^|(?<=\s))[{re.escape(_EDGES)}]+|[{re.escape(_EDGES)}]+(?=\s|$)")


async def fingerprint(result: Json) -> str:
    """The fingerprint of a result."""
    data = orjson.dumps(result, option=orjson.OPT_SORT_KEYS)
    if len(data) <= AT_ONCE:
        return made(result, data)
    return await asyncio.to_thread(made, result, data)


def made(result: Json, canonical: bytes) -> str:
    """A fingerprint.

    Args:
        canonical: The result's JSON with its keys in order.
    """
    plain = normal(result)
    text = plain if isinstance(plain, str) else orjson.dumps(plain, option=orjson.OPT_SORT_KEYS).decode()
    meant = text.encode()
    return f"{_digest(canonical)}:{_digest(meant)}:{signed(meant)}"


def normal(value: Json) -> Json:
    """A value without what seldom makes a difference, as text where it is none of a list and an object.

    Texts in Unicode's form NFKC, in one case, with single spaces and without punctuation at the ends of
    words: ``1.5`` and ``it's`` stay, as does a minus. Numbers without a fraction are whole numbers.
    """
    return (
        _normal(value)
        if isinstance(value, dict | list | tuple | str)
        else words(orjson.dumps(_normal(value)).decode())
    )


def _normal(value: Json) -> Json:
    match value:
        case str():
            return words(value)
        case bool() | int() | None:
            return value
        case float():
            return int(value) if value.is_integer() and abs(value) < 2**53 else value
        case dict():
            return {key: _normal(each) for key, each in value.items()}
        case _:
            return [_normal(each) for each in value]


def words(text: str) -> str:
    """A text as it is compared: case, spaces and the punctuation around words make no difference."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(_MARKS.sub(" ", folded).split())


def signed(meant: bytes) -> str:
    """The MinHash signature of a normalised text, in base64."""
    least = [1 << _LOW] * BINS
    for place in range(max(1, len(meant) - SHINGLE + 1)):
        spread = (crc32(meant[place : place + SHINGLE]) * _SPREAD) & 0xFFFFFFFF
        spread ^= spread >> 15
        least_of, low = spread >> _LOW, spread & _MASK
        if low < least[least_of]:  # noqa: PLR1730 - a call of min for each of 200,000 shingles takes its time
            least[least_of] = low
    # Sixteen bits of each are enough to tell two apart; the largest number stands for a bin without any.
    bins = (EMPTY if each > _MASK else min(each & 0xFFFF, EMPTY - 1) for each in least)
    return b64encode(pack(PACKED, *bins)).decode()


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
