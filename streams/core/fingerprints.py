"""What the fold compares results by: a text that the lane made of a result, so that the fold needs no values.

Three parts with a colon between them: a hash of the result's canonical JSON; one of its normalised form; and
a signature, of which two tell how many shingles their results have in common. They are made in
:mod:`streams.fingerprinting`.

The signature is a MinHash by one permutation (Li, Owen, Zhang: "One Permutation Hashing", NIPS 2012):
shingles are hashed once and fall into :data:`BINS` bins, of each of which the least hash is kept. The
share of equal bins, of those that are not empty in both, is an unbiased estimate of the Jaccard
similarity, with a standard error of about ``sqrt(J (1 - J) / BINS)``: 0.027 at 0.9.
"""

from base64 import b64decode
from binascii import Error
from collections.abc import Sequence
from operator import eq
from struct import calcsize, unpack

BINS = 128
"""Bins of a signature, of two bytes each."""

EMPTY = 0xFFFF
"""What stands in a bin without a shingle."""

PACKED = f"<{BINS}H"
"""A signature's bytes, as :mod:`struct` has them."""

_NO_SHINGLES = [EMPTY] * BINS


def exact(fingerprint: str) -> str:
    """The part that is the same where the JSON is the same; empty where there is none."""
    return fingerprint.partition(":")[0]


def normalised(fingerprint: str) -> str:
    """The part that is the same but for case, spaces and punctuation; empty where there is none."""
    return fingerprint.partition(":")[2].partition(":")[0]


def signature(fingerprint: str) -> Sequence[int]:
    """The least hash of each bin; of no shingle at all where there is no signature."""
    try:
        packed = b64decode(fingerprint.rpartition(":")[2], validate=True)
    except (Error, ValueError):
        return _NO_SHINGLES
    return unpack(PACKED, packed) if len(packed) == calcsize(PACKED) else _NO_SHINGLES


def likeness(one: Sequence[int], other: Sequence[int]) -> float:
    """An estimate of the share of shingles that two results have in common, 0 to 1; 0 without any."""
    same = sum(map(eq, one, other))
    empty = 0
    if EMPTY in one and EMPTY in other:  # seldom, and slower
        empty = sum(first == EMPTY == second for first, second in zip(one, other, strict=True))
    return (same - empty) / (BINS - empty) if empty < BINS else 0.0
