"""What is a secret goes, in whatever form it stands; what is none stays, byte for byte."""

import json
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.redaction import HIDDEN, NAMES, REDACTED, Redactor, forms, is_sure

SURE = st.text(st.characters(exclude_categories=["Cs"]), min_size=8).filter(
    lambda secret: secret.strip() and is_sure(secret) and HIDDEN not in secret
)
"""Secrets that are taken out of records."""


@given(SURE, st.text(), st.text())
def test_a_given_secret_is_nowhere(secret: str, before: str, after: str) -> None:
    """As it is, in JSON of either kind, in a literal, in an address; in texts, values and records."""
    text = before + secret + after
    redactor = Redactor([secret])
    for form in (text, json.dumps(text), repr(text), quote(text), orjson.dumps(text).decode()):
        for shown in (redactor.text(form), redactor.data(form.encode()).decode()):
            assert HIDDEN in shown
            assert secret not in shown.replace(HIDDEN, "\0")
    assert HIDDEN in str(redactor.message({"a": [text]}))
    value, headers = redactor.record(text.encode(), (("a", text.encode()), ("b", b"b"), ("c", None)))
    assert HIDDEN.encode() in (value or b"")
    assert [name for name, _ in headers] == ["a", "b", "c", REDACTED]
    assert headers[-1] == (REDACTED, b"value,a")
    assert HIDDEN in str(redactor.output([{"a": text}]))


@given(SURE, st.binary(max_size=100))
def test_bytes_without_it_are_the_same_object(secret: str, data: bytes) -> None:
    """No record is copied for nothing."""
    redactor = Redactor([secret])
    if any(form.encode() in data for form in forms(secret)):
        return
    headers = (("name", data), ("none", None))
    assert redactor.data(data) is data
    assert redactor.record(data, headers) == (data, headers)
    assert redactor.record(data, headers)[1] is headers


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("refused sk-proj-8hTqLm2VbN4c.", f"refused {HIDDEN}."),
        ("Authorization: Bearer abc.def", f"Authorization: Bearer {HIDDEN}"),
        ("{'authorization': 'Bearer abcdefgh1234'}", f"{{'authorization': 'Bearer {HIDDEN}'}}"),
        ("[(b'Authorization', b'Basic dXNlcjpwYXNz')]", f"[(b'Authorization', b'Basic {HIDDEN}')]"),
        ('{"x-api-key":"0123456789"}', f'{{"x-api-key":"{HIDDEN}"}}'),
        (r"{\"Authorization\": \"Bearer abc1defgh\"}", rf"{{\"Authorization\": \"Bearer {HIDDEN}\"}}"),
        ("http://me:hunter2@host/v1", f"http://{HIDDEN}@host/v1"),
        ("auth=Bearer abcdefgh12345678\x01\x01", f"auth=Bearer {HIDDEN}\x01\x01"),
        ("token eyJhbGciOiJub25lIn0.eyJzdWIiOiJ3b3JrZXIifQ.", f"token {HIDDEN}"),
        ("\x1b[35msk-proj-8hTqLm2VbN4c\x1b[0m", f"\x1b[35m{HIDDEN}\x1b[0m"),
        (
            "-----BEGIN PRIVATE KEY-----\nMIG\n-----END PRIVATE KEY-----",
            f"-----BEGIN PRIVATE KEY-----{HIDDEN}-----END PRIVATE KEY-----",
        ),
        ("ghp_" + 36 * "a", HIDDEN),
        ("AKIAIOSFODNN7EXAMPLE", HIDDEN),
    ],
)
def test_what_looks_like_a_secret_goes(text: str, left: str) -> None:
    """And nothing around it."""
    assert Redactor().text(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "task-skeleton sk-1 http://127.0.0.1:9092/v1 job acme/2026-11-30",
        "basic understanding of bearer instruments and token rings",
        ".sk-fading-circle { animation: none }",
        "mailto:me@example.org https://example.org/@me?time=12:30",
        "authorization is asked for, cookies are eaten",
        '{"tokens": 1234567, "max_tokens": 800}',
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    """Names that only begin like keys, addresses without a password, words of English."""
    assert Redactor().text(text) == text
    assert Redactor(["another-secret-1"]).data(text.encode()) == text.encode()


@settings(max_examples=25)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_values_keep_their_shape(value: Any) -> None:
    """A redactor that knows no secret gives back an equal value."""
    assert Redactor(["a secret that is not there 1"]).message({"value": value}) == {"value": value}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_output_of_a_tool_is_hidden_by_name(name: str) -> None:
    """An answer's headers, say."""
    shown = Redactor().output({"headers": {name.title(): "qwertz", "x": "qwertz"}, "status": 200})
    assert shown == {"headers": {name.title(): HIDDEN, "x": "qwertz"}, "status": 200}


@pytest.mark.parametrize("weak", ["none", "simulated", "succeeded", "1234567", "", " "])
def test_a_word_is_not_taken_out_of_records(weak: str) -> None:
    """Local endpoints have such keys; logs hide them all the same."""
    redactor = Redactor([weak])
    record = b'{"simulated":true,"outcome":"succeeded","n":1234567,"kind":"none"}'
    assert redactor.data(record) is record
    if weak.strip():
        assert weak not in redactor.text(f"key {weak}")


def test_of_two_secrets_the_longer_goes_first() -> None:
    """Else its rest would stay."""
    redactor = Redactor(["12345678", "12345678-and-more"])
    assert redactor.data(b"x12345678-and-morex") == f"x{HIDDEN}x".encode()
