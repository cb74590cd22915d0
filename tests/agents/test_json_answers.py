"""Results by a schema: what is read leniently, what is refused, and what the model is told of it."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.configuration.values import Bounds, Kind
from agents.json_answers import READ_AT_ONCE, BadJson, Read, read_result, settled
from agents.models.retry import PatientModel
from agents.ports import Done, GaveUp, ModelReply
from agents.sub_agent import ToolUsingAgent
from streams.core.commands import RunSubTask
from streams.core.values import Json, Usage
from tests.agents.memory_attempt import MemoryAttempt
from tests.agents.scripted_model import ONE_CALL, ScriptedModel, said
from tests.agents.test_kinds import GRANTED, NamedTools

ORDERS: Mapping[str, Json] = {
    "type": "object",
    "properties": {"orders": {"type": "array", "items": {"type": "integer"}}, "note": {"type": "string"}},
    "required": ["orders"],
    "additionalProperties": False,
}
NUMBERS: Mapping[str, Json] = {"type": "array", "items": {"type": "integer"}}
THREE = {"orders": [1, 2, 3]}


def read(text: str, schema: Mapping[str, Json] = ORDERS) -> Any:
    """The result in a text, or the reasons why there is none."""
    outcome = asyncio.run(read_result(text, schema))
    return outcome.result if isinstance(outcome, Read) else outcome.reasons


@pytest.mark.parametrize(
    ("text", "schema", "result"),
    [
        ('{"orders": [1, 2, 3]}', ORDERS, THREE),
        ('```json\n{"orders": [1, 2, 3]}\n```', ORDERS, THREE),
        ('Here they are:\n```\n{"orders": [1, 2, 3]}\n```\nTell me more.', ORDERS, THREE),
        ('<think>{"orders": []}?</think>{"orders": [1, 2, 3]}', ORDERS, THREE),
        ('{"orders": [1, 2, 3]}\n{"confidence": 0.5}', ORDERS, THREE),
        ('{"orders": [1, 2, 3]}, again: {"orders": [1, 2, 3]}', ORDERS, THREE),
        ("[1, 2]", NUMBERS, [1, 2]),
        ("As [3] says:\n[1, 2]", NUMBERS, [1, 2]),
        ("The numbers are: [1, 2]", NUMBERS, [1, 2]),
        ("42", {"type": "integer"}, 42),
        ("42", {"type": "string"}, "42"),
        ('"forty-two"', {"type": "string"}, "forty-two"),
        ("plain words", {"type": "string"}, "plain words"),
    ],
)
def test_what_is_read_as_it_stands(text: str, schema: Mapping[str, Json], result: Json) -> None:
    """Whole, in a fence or among words; the one that the schema takes."""
    assert read(text, schema) == result


@pytest.mark.parametrize(
    "text",
    [
        "{'orders': [1, 2, 3]}",
        '{"orders": [1, 2, 3],}',
        '{"orders": [1, 2, 3,],}',
        "{orders: [1, 2, 3]}",
        '{"orders": [1, 2 3]}',
        '{"orders": [1, // the first\n 2, 3]}',
        "Here:\n```json\n{'orders': [1, 2, 3]}\n```",
    ],
)
def test_what_is_repaired(text: str) -> None:
    """JSON as models write it where nothing holds them to the grammar."""
    assert read(text) == THREE


@pytest.mark.parametrize(
    ("text", "schema", "reason"),
    [
        ("", ORDERS, "no JSON"),
        ("I cannot do that.", ORDERS, "no JSON"),
        ("42", ORDERS, "$: 42 is not of type 'object'"),
        ('{"orders": "1, 2"}', ORDERS, "$.orders: '1, 2' is not of type 'array'"),
        ("{'orders': '1, 2'}", ORDERS, "no JSON"),
        ('{"note": "none"}', ORDERS, "'orders' is a required property"),
        ('{"orders": [1], "orders": [2]}', ORDERS, "key 'orders' stands twice"),
        ('{"orders": [1]} or {"orders": [2]}', ORDERS, "several different results"),
        ('{"orders": [1, 2', ORDERS, "has no end"),
        ('{"orders": [1]}\n{"orders": [1, 2', ORDERS, "has no end"),
        ("{'orders': [1, 2", ORDERS, "no JSON"),
        ("see [3]", NUMBERS, "no JSON"),
        ("see [3] and [4,]", NUMBERS, "no JSON"),
        ('{"confidence": 1}\n{"orders": [1],}', ORDERS, "'orders' is a required property"),
        ("[" * 200 + "]" * 200, {"type": "array"}, "nested"),
        ('{"orders": [1e999]}', ORDERS, "infinity"),
    ],
)
def test_what_is_refused(text: str, schema: Mapping[str, Json], reason: str) -> None:
    """With the reason that goes back to the model."""
    reasons = read(text, schema)
    assert isinstance(reasons, tuple)
    assert any(reason in each for each in reasons), reasons


results = st.fixed_dictionaries(
    {"orders": st.lists(st.integers(0, 99), max_size=4)}, optional={"note": st.text(max_size=12)}
)


@given(results, st.sampled_from(["", "Here it is:\n", "```json\n"]), st.booleans())
def test_a_result_is_read_whole_or_not_at_all(result: dict[str, Any], before: str, pythonic: bool) -> None:
    """Any beginning of a reply is refused, since it may be half of one, until all of it is there."""
    whole = repr(result) if pythonic else json.dumps(result, ensure_ascii=False)
    for end in range(len(whole)):
        outcome = asyncio.run(read_result(before + whole[:end], ORDERS))
        assert isinstance(outcome, BadJson), (whole[:end], outcome)
    if not pythonic:
        assert read(before + whole) == result


@given(st.text("{}[](),:\"'\\ \n`a1.-/*#", max_size=120))
def test_whatever_a_model_writes_has_an_outcome(text: str) -> None:
    """A result that the schema takes, or reasons."""
    outcome = asyncio.run(read_result(text, ORDERS))
    if isinstance(outcome, Read):
        assert isinstance(outcome.result, dict)
        assert all(isinstance(each, int) for each in outcome.result["orders"])
    else:
        assert outcome.reasons


def test_a_result_that_is_nested_too_deep_for_its_schema_is_refused() -> None:
    """The sub-agent gives up by that; its worker hears of no exception."""
    deep: dict[str, Json] = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}}
    for _ in range(20):
        deep = {"allOf": [deep]}
    schema: Mapping[str, Json] = {"$ref": "#/$defs/n", "$defs": {"n": deep}}
    assert read('{"a":' * 99 + "{}" + "}" * 99, schema) == (
        "$: it is nested deeper than its schema can be followed",
    )


def test_a_long_text_is_read_like_a_short_one() -> None:
    """In a thread, so that the others go on; only repairs have an end."""
    many = {"orders": list(range(READ_AT_ONCE))}
    assert read(json.dumps(many)) == many
    assert read(json.dumps(many)[:-1] + ",}")[0].startswith("the JSON of the reply breaks at line 1")
    assert read(str({"orders": [1] * (READ_AT_ONCE // 3)})) == {"orders": [1] * (READ_AT_ONCE // 3)}


class Dialogue:
    """A model that is asked once more, and what it was told."""

    def __init__(self, second: ModelReply | GaveUp) -> None:
        self.second = second
        self.told: list[dict[str, Any]] = []

    async def again(self, message: Mapping[str, Json]) -> ModelReply | GaveUp:
        self.told.append(json.loads(str(message["content"])))
        return self.second

    def settle(self, text: str, schema: Mapping[str, Json] | None = ORDERS) -> Done | GaveUp:
        usage = Usage(calls=7)
        return asyncio.run(settled(said(text), schema, again=self.again, usage=lambda: usage))


def test_without_a_schema_any_text_is_a_result() -> None:
    """As ever: JSON where it is JSON."""
    talk = Dialogue(said("unasked"))
    assert talk.settle("[1", None) == Done(result="[1", usage=Usage(calls=7))
    assert talk.settle("[1]", None) == Done(result=[1], usage=Usage(calls=7))
    assert talk.told == []


def test_one_re_ask_says_what_is_wrong() -> None:
    """The model mends it, told why and what the schema is."""
    talk = Dialogue(said('{"orders": [1, 2, 3]}'))
    assert talk.settle('{"orders": "three"}') == Done(result=THREE, usage=Usage(calls=7))
    (told,) = talk.told
    assert told == {"refused": ["$.orders: 'three' is not of type 'array'"], "result_schema": ORDERS}


def test_a_result_that_stays_wrong() -> None:
    """After one more try the attempt has none; another one may do better."""
    talk = Dialogue(said('{"orders": "four"}'))
    gave_up = talk.settle('{"orders": "three"}')
    assert isinstance(gave_up, GaveUp)
    assert (gave_up.kind, gave_up.final, gave_up.usage.calls, len(talk.told)) == ("bad_json", False, 7, 1)
    assert "'four' is not of type 'array'" in gave_up.reason


def test_a_re_ask_without_a_reply() -> None:
    """Its reason is the attempt's."""
    cut = GaveUp(kind="truncated", reason="cut off", final=False)
    assert Dialogue(cut).settle("?") == cut


SUB_TASK: Any = {
    "job": "t/j",
    "task": "a",
    "attempt": 1,
    "ordinal": 1,
    "timeout_s": 120.0,
    "goal": "list them",
}


@pytest.mark.parametrize("again", ['{"orders": [1, 2, 3]}', '{"orders": "four"}'])
def test_a_sub_agent_of_a_kind_with_a_schema(again: str) -> None:
    """It is asked for what its schema says, with tools once, and once more without them."""
    model = ScriptedModel(said("three orders"), said(again))
    kind = Kind(name="default", schema=ORDERS)
    agent = ToolUsingAgent(PatientModel(model), NamedTools(), lambda _: kind)
    ended = asyncio.run(agent.run(RunSubTask(**SUB_TASK, kind="list", tools=GRANTED), MemoryAttempt()))
    first, second = model.requests
    assert (first.schema, bool(first.tools), first.kind) == (ORDERS, True, "list")
    assert (second.schema, second.tools) == (ORDERS, ())
    told = [str(message["content"]) for message in second.messages[-2:]]
    assert told[0] == "three orders"
    assert json.loads(told[1])["result_schema"] == ORDERS
    assert ended.usage.calls == 2
    assert ended.result == THREE if isinstance(ended, Done) else ended.kind == "bad_json"
    assert isinstance(ended, Done) == ("four" not in again)


def test_a_re_ask_without_room() -> None:
    """All output tokens of the task are used up by the first reply."""
    model = ScriptedModel(said("three orders"))
    kind = Kind(name="default", schema=ORDERS, bounds=Bounds(task_tokens=ONE_CALL.tokens_out))
    agent = ToolUsingAgent(PatientModel(model), NamedTools(), lambda _: kind)
    ended = asyncio.run(agent.run(RunSubTask(**SUB_TASK, kind="list"), MemoryAttempt()))
    assert isinstance(ended, GaveUp)
    assert (ended.kind, len(model.requests)) == ("truncated", 1)
