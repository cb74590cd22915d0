"""Goals as CloudEvents 1.0, in both of the ways they stand on Kafka."""

from base64 import b64encode
from typing import Any

import pytest

from streams.core.values import Inline
from tests.wire.test_goals import job, refused

BINARY = (("ce_specversion", b"1.0"), ("ce_id", b"e-1"), ("ce_source", b"/ci"), ("ce_type", b"goal"))
EVENT = {"specversion": "1.0", "id": "e-1", "source": "/ci", "type": "goal"}
STRUCTURED = (("content-type", b"application/cloudevents+json; charset=UTF-8"),)


@pytest.mark.parametrize("headers", [(), STRUCTURED])
@pytest.mark.parametrize(
    "data",
    [
        {"data": {"goal": "Compare"}},
        {"data": "Compare"},
        {"data_base64": b64encode(b'{"goal": "Compare"}').decode()},
        {"data_base64": b64encode(b"Compare").decode(), "datacontenttype": "text/plain"},
    ],
)
def test_structured(headers: Any, data: Any) -> None:
    submitted = job(EVENT | data, headers)
    assert submitted.goal == job(b"Compare").goal
    assert submitted.job == "default/e-1"


@pytest.mark.parametrize(
    ("value", "content_type"),
    [
        (b"Compare", b"text/plain"),
        (b"Compare", None),
        (b'{"goal": "Compare"}', b"application/json"),
        (b'{"goal": "Compare"}', None),
        (b'"Compare"', b"application/json"),
    ],
)
def test_binary(value: bytes, content_type: bytes | None) -> None:
    submitted = job(value, (*BINARY, ("content-type", content_type)))
    assert submitted.goal == job(b"Compare").goal
    assert submitted.job == "default/e-1"
    assert len(submitted.headers) == 5


def test_text_said_to_be_text_is_no_json() -> None:
    assert job(b'{"braces"}', (*BINARY, ("content-type", b"text/plain"))).goal.text == Inline(
        value='{"braces"}'
    )


def test_the_goals_own_id_goes_first() -> None:
    assert job({"id": "own", "tenant": "acme", "goal": "x"}, BINARY).job == "acme/own"


def test_an_id_that_no_job_can_have_is_hashed_with_its_source() -> None:
    """The same event is the same job; the same id from another source is another."""
    odd = EVENT | {"id": "urn:uuid:1 2", "data": "x"}
    named = job(odd).job
    assert named.startswith("default/ce-")
    assert job(odd, offset=99).job == named
    assert job(odd | {"source": "/cd"}).job != named


def test_a_bad_goal_in_a_good_event_is_answered() -> None:
    assert refused(EVENT | {"data": {"text": "x"}}).job == "default/e-1"
    assert refused(b'{"goal": 5}', BINARY).job == "default/e-1"
    assert refused(EVENT).job is None


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (EVENT, "has no `data`"),
        (EVENT | {"specversion": "0.3", "data": "x"}, "`specversion` should be 1.0"),
        (EVENT | {"id": "", "data": "x"}, "`id` is missing"),
        (EVENT | {"source": 5, "data": "x"}, "`source` is missing"),
        (EVENT | {"data_base64": "%"}, "not base64"),
        (EVENT | {"data": [1]}, "not a list"),
    ],
)
def test_what_is_no_event_says_why(event: Any, reason: str) -> None:
    assert reason in refused(event).reason


def test_a_content_type_that_promises_an_event() -> None:
    assert "not a JSON object" in refused(b"[]", STRUCTURED).reason
    assert "not JSON" in refused(b"Compare", STRUCTURED).reason
    batch = (("content-type", b"application/cloudevents-batch+json"),)
    assert "one event a record" in refused([EVENT], batch).reason


def test_binary_without_a_type() -> None:
    assert "`type` is missing" in refused(b"x", BINARY[:3]).reason
