"""Fingerprints: what is the same, what is nearly the same, and how far the estimate is off."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.fingerprints import exact, likeness, normalised, signature
from streams.core.values import Json
from streams.fingerprinting import AT_ONCE, SHINGLE, fingerprint, words
from streams.memory_log.virtual_time import run
from tests.wire.strategies import JSON


def of(value: Json) -> str:
    """The fingerprint of a result."""
    return run(fingerprint(value))


@given(JSON)
def test_the_same_json_has_the_same_fingerprint(value: Json) -> None:
    """Whatever order its keys have."""
    turned = dict(reversed(value.items())) if isinstance(value, dict) else value
    assert of(value) == of(turned)
    assert likeness(signature(of(value)), signature(of(turned))) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The answer is 42.", "  the ANSWER is\n42"),
        ("**Paris**", "paris!"),
        ("“Straße”", "STRASSE"),
        ("ｆｏｕｒ", "four"),  # noqa: RUF001 - full-width letters are meant
        (42, "42"),
        (42, 42.0),
        (True, "true"),
        ({"n": 1.0, "who": "Ada."}, {"who": "ada", "n": 1}),
        (["A", "b"], ["a", "B"]),
    ],
)
def test_what_seldom_makes_a_difference_makes_none(one: Json, other: Json) -> None:
    """Normalised they are the same; as JSON they are not."""
    assert normalised(of(one)) == normalised(of(other))
    assert exact(of(one)) != exact(of(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.5", "15"),
        ("-5", "5"),
        ("5%", "5"),
        ("C++", "C"),
        ("it's", "its"),
        ([1, 2], [2, 1]),
        ("", "x"),
        (None, 0),
    ],
)
def test_what_makes_a_difference_stays(one: Json, other: Json) -> None:
    """A fraction, a sign, an order."""
    assert normalised(of(one)) != normalised(of(other))


def shingles(text: str) -> set[bytes]:
    """What the signature estimates by."""
    encoded = words(text).encode()
    return {encoded[place : place + SHINGLE] for place in range(len(encoded) - SHINGLE + 1)}


@pytest.mark.parametrize("length", [60, 600, 6_000])
@pytest.mark.parametrize("changed", [0.0, 0.01, 0.05, 0.3, 1.0])
def test_the_estimate_is_near_the_share_of_shingles(length: int, changed: float) -> None:
    """Four standard errors of 128 bins, 0.18 at the worst; long texts go to a thread."""
    chance = Random(length)  # noqa: S311 - repeatable
    known = ["".join(chance.choices("abcdefghijklmnop", k=chance.randint(2, 9))) for _ in range(2_000)]
    one = chance.choices(known, k=length)
    other = [chance.choice(known) if chance.random() < changed else word for word in one]
    texts = " ".join(one), " ".join(other)
    assert (len(texts[0]) > AT_ONCE) == (length > 3_000)
    first, second = map(shingles, texts)
    true = len(first & second) / len(first | second)
    estimate = likeness(signature(of(texts[0])), signature(of(texts[1])))
    assert abs(estimate - true) <= 4 * max((true * (1 - true) / 128) ** 0.5, 0.002)


@given(st.text(max_size=40))
def test_what_is_no_fingerprint_is_like_nothing(text: str) -> None:
    """Rows of another time or hand: nothing is left out for them."""
    assert likeness(signature(text), signature(of("a result"))) < 1
