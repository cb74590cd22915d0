"""Laws of what is cut for a prompt, and of JSON made plain."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from agents.cut import cut_json, cut_values, head_and_tail
from agents.plain_json import dumps, plain, scrub, text_or_json
from streams.core.values import Json

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=9)  # lone surrogates among them
PLAIN: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
ODD = st.recursive(
    st.none() | st.integers() | st.floats() | ANY_TEXT | st.binary() | st.complex_numbers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.integers() | ANY_TEXT, inner, max_size=3)
    ),
    max_leaves=6,
)


@given(ODD)
def test_anything_becomes_json(value: object) -> None:
    """Whatever it is, its JSON can be written, and reading it back is stable."""
    once = plain(value)
    assert plain(once) == once


@given(PLAIN)
def test_plain_json_is_left_alone(value: Json) -> None:
    """Only what JSON has no form for is changed."""
    assert scrub(value) == value
    assert dumps(value) == orjson.dumps(value)


def test_nesting_beyond_every_bound_becomes_text() -> None:
    """A value nested a thousand deep is written, its inside as text."""
    deep: Json = []
    for _ in range(400):
        deep = [deep]
    assert orjson.loads(dumps(deep))


@given(st.text(max_size=300), st.integers(16, 200))
def test_what_is_cut_keeps_both_ends(text: str, limit: int) -> None:
    """Head and tail are the text's own, and the note counts what is missing between them."""
    encoded = dumps(text)
    cut = cut_json(encoded, limit)
    if len(encoded) <= limit:
        assert cut == encoded.decode()
        return
    kept = orjson.loads(cut)
    assert encoded.decode().startswith(kept["head"])
    assert encoded.decode().endswith(kept["tail"])
    assert len(kept["head"].encode()) + len(kept["tail"].encode()) <= limit
    assert f"{len(encoded) - limit} of {len(encoded)} bytes" in kept["note"]
    assert head_and_tail(encoded, limit) == kept


@given(st.lists(st.text(max_size=2_000) | st.integers(0, 9), max_size=12), st.integers(0, 4_000))
def test_values_share_a_limit(values: list[Json], spare: int) -> None:
    """Together they keep within it, none is left out, and one no longer than a whole one is whole."""
    limit = 500 * (len(values) + 1) + spare
    cut = cut_values(values, limit)
    assert len(cut) == len(values)
    assert len(dumps(cut)) <= limit
    whole = [len(dumps(value)) for value, one in zip(values, cut, strict=True) if one == value]
    shortened = [len(dumps(value)) for value, one in zip(values, cut, strict=True) if one != value]
    assert not shortened or not whole or max(whole) <= min(shortened)


@given(
    st.dictionaries(st.text(max_size=9), PLAIN, max_size=3) | st.lists(PLAIN, max_size=3),
    st.sampled_from(["{}", "```json\n{}\n```", " {}\n"]),
)
def test_json_that_a_model_wrote_is_read(value: Json, frame: str) -> None:
    """Bare or fenced."""
    assert text_or_json(frame.replace("{}", orjson.dumps(value).decode())) == value
