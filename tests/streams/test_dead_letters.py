"""A dead letter holds the record as it was, and says where it stood and why."""

from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import dead_letters
from streams.core.goal import Source
from streams.log import Headers, Record
from tests.wire.strategies import TEXT

BYTES = st.none() | st.binary(max_size=20)
HEADERS = st.lists(st.tuples(TEXT | st.just(dead_letters.REASON), BYTES), max_size=4).map(tuple)


def landed(letter: tuple[bytes, bytes | None, Headers]) -> Record:
    key, value, headers = letter
    return Record("dead-letters", 5, 33, 1_790_000_000_000, key, value, headers)


@given(BYTES, BYTES, HEADERS, TEXT, st.none() | st.just(Source(topic="goals", partition=1, offset=2)))
def test_the_original_is_kept_byte_for_byte(
    key: bytes | None, value: bytes | None, headers: Any, reason: str, source: Source | None
) -> None:
    record = Record("job-events", 3, 977, 5, key, value, headers)
    letter = dead_letters.read(landed(dead_letters.write(record, reason, source=source)))
    assert letter.key == key
    assert (letter.value, letter.headers, letter.reason) == (value, headers, reason)
    assert letter.place == Source(topic="job-events", partition=3, offset=977)
    assert letter.source == source
    assert (letter.at, letter.partition, letter.offset) == (1_790_000_000_000, 5, 33)
    assert letter.lost_bytes is None


def test_a_dead_letter_that_failed_again_tells_of_this_time() -> None:
    record = Record("goals", 0, 1, 5, b"k", b"v", (("own", b"h"),))
    again = Record("goals", 0, 9, 6, *dead_letters.write(record, "first"))
    letter = dead_letters.read(landed(dead_letters.write(again, "second")))
    assert (letter.reason, letter.place.offset) == ("second", 9)
    assert letter.headers == again.headers


def test_a_record_that_is_its_own_source_is_named_once() -> None:
    record = Record("goals", 0, 1, 5, b"k", b"v")
    place = Source(topic="goals", partition=0, offset=1)
    assert dead_letters.read(landed(dead_letters.write(record, "r", source=place))).source is None


def test_without_its_value_it_tells_what_the_value_was() -> None:
    record = Record("goals", 0, 1, 5, b"k" * 70_000, b"v" * 100, (("own", b"h"), ("big", b"x" * 70_000)))
    key, value, headers = dead_letters.write_without_value(record, "too large")
    letter = dead_letters.read(landed((key, value, headers)))
    assert (letter.value, letter.lost_bytes, letter.lost_digest) == (
        None,
        100,
        sha256(b"v" * 100).hexdigest(),
    )
    assert (letter.reason, letter.key, letter.headers) == ("too large", b"goals-0-1", ())


@given(BYTES, BYTES, HEADERS)
def test_anything_on_the_topic_reads(key: bytes | None, value: bytes | None, headers: Any) -> None:
    letter = dead_letters.read(Record("dead-letters", 0, 0, 0, key, value, headers))
    assert (letter.key, letter.value) == (key, value)


@pytest.mark.parametrize("number", ["--5", "-", "", "5-", "9" * 5_000, "٣", "1e3", " 1"])
def test_a_place_that_is_none_reads_as_none(number: str) -> None:
    """Anyone may put headers like ours on a record."""
    said = number.encode()
    headers = ((dead_letters.REASON, b"r"), (dead_letters.PARTITION, said), (dead_letters.VALUE_SIZE, said))
    letter = dead_letters.read(Record("dead-letters", 0, 0, 0, b"k", b"v", headers))
    assert (letter.place.partition, letter.lost_bytes) == (-1, -1)
