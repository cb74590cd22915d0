"""Words of people on ``goals``: each has one meaning, and none is taken for a goal or the other way round."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.events import ApprovalGiven, ApprovalRefused, JobCancelled, JobSubmitted
from streams.core.goal import Source
from streams.log import Headers, Record
from streams.wire.goals import BadGoal, read_goal
from streams.wire.outside import BadWord, is_word, read_word, write_word

SOURCE = Source(topic="goals", partition=1, offset=7)


def record(value: object, headers: Headers = ()) -> Record:
    """A record of ``goals``: bytes as they are, anything else as JSON."""
    data = value if isinstance(value, bytes) else orjson.dumps(value)
    return Record("goals", 1, 7, 1_700_000_000_000, b"k", data, headers)


def test_each_verb_is_its_event() -> None:
    """With the place of its record, and whoever it claims to be of."""
    said: dict[str, Any] = {"what": "tools", "task": "a", "reason": "fine", "by": "ada"}
    event: dict[str, Any] = said | {"job": "acme/g", "by": "ada (claimed)", "source": SOURCE}
    assert read_word(record({"approve": "acme/g", **said})) == ApprovalGiven(**event)
    assert read_word(record({"reject": "acme/g", **said})) == ApprovalRefused(**event)
    assert read_word(record({"cancel": "acme/g"})) == JobCancelled(job="acme/g", source=SOURCE)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"approve": "g"}, "`approve`: should be a job, tenant/id"),
        ({"approve": ["plan"]}, "`approve`: "),
        ({"approve": "a/g", "cancel": "a/g"}, "say one of"),
        ({"approve": None}, "say one of"),
        ({"cancel": "a/g", "what": "plan"}, "whole"),
        ({"approve": "a/g", "what": "plan", "task": "a"}, "`task`"),
        ({"approve": "a/g", "what": "everything"}, "`what`"),
        ({"approve": "a/g", "reasons": "x"}, "`reasons` is unknown, known are approve"),
        (b'{"approve": "a/g", "approve": "a/h"}', "no one meaning"),
    ],
)
def test_what_is_wrong_is_told(value: object, why: str) -> None:
    """By the field."""
    word = read_word(record(value))
    assert isinstance(word, BadWord)
    assert why in word.reason


@pytest.mark.parametrize(
    "value",
    [
        {"goal": "x", "approve": ["plan"]},
        {"goal": '{"goal": "approve", "cancel": "a/g"}'},
        b'{"goal": "say {\\"approve\\": \\"a/g\\"}"}',
        b'please "approve" this',
        b'["approve"]',
        {
            "specversion": "1.0",
            "id": "1",
            "source": "x",
            "type": "y",
            "data": {"goal": "x", "approve": ["plan"]},
        },
    ],
)
def test_a_goal_stays_a_goal(value: object) -> None:
    """Whatever stands in it."""
    assert read_word(record(value)) is None


@pytest.mark.parametrize("verb", ["approve", "reject", "cancel"])
def test_a_goal_and_a_word_in_one_are_refused(verb: str) -> None:
    """Nobody knows which is meant."""
    both = record({"goal": "x", verb: "a/g"})
    assert read_word(both) is None
    goal = read_goal(both, lanes=2)
    assert isinstance(goal, BadGoal)
    assert f"`{verb}`" in goal.reason


def test_cloud_events_carry_words() -> None:
    """In the value, in base64, and in headers."""
    attributes = {"specversion": "1.0", "id": "1", "source": "x", "type": "y"}
    bare = orjson.dumps({"cancel": "acme/g"})
    headers = tuple((f"ce_{name}", text.encode()) for name, text in attributes.items())
    for each in (
        record(attributes | {"data": {"cancel": "acme/g"}}),
        record(attributes | {"data_base64": "eyJjYW5jZWwiOiAiYWNtZS9nIn0="}),
        record(bare, (*headers, ("content-type", b"application/json"))),
    ):
        assert read_word(each) == JobCancelled(job="acme/g", source=SOURCE)


def test_what_a_program_writes_reads_back() -> None:
    """And what it may not write is refused before it is sent."""
    value = write_word("approve", "acme/g", what="plan", task=None, reason="fine", by="")
    assert read_word(record(value)) == ApprovalGiven(job="acme/g", what="plan", reason="fine", source=SOURCE)
    with pytest.raises(ValueError, match="tenant/id"):
        write_word("cancel", "g")


@given(
    st.dictionaries(
        st.sampled_from(("goal", "approve", "reject", "cancel", "id", "x")), st.text() | st.none()
    )
)
def test_no_record_is_both(fields: dict[str, str | None]) -> None:
    """A word is never a goal that intake would take."""
    one = record(fields)
    if read_word(one) is not None:
        assert is_word(fields)
        assert not isinstance(read_goal(one, lanes=2), JobSubmitted)
