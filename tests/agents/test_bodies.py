"""What a request says to each sort of endpoint."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.configuration.values import Endpoint, ModelSettings
from agents.models.bodies import request_body, takes_strict
from agents.ports import ModelRequest, ToolSpec
from streams.core.values import Json
from tests.agents.scripted_endpoint import tool_call

TOOL = ToolSpec(name="search", description="d", parameters={"type": "object"})
SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {"orders": {"type": "array", "items": {"$ref": "#/$defs/order"}}},
    "required": ["orders"],
    "additionalProperties": False,
    "$defs": {"order": {"type": "integer"}},
}
LOOSE: Mapping[str, Json] = {"type": "object", "properties": {"orders": {"type": "array"}}}
THOUGHT: Mapping[str, Json] = {"role": "assistant", "content": "x", "reasoning_content": "first A, then B"}


def body(
    *, model: str = "m", temperature: float | None = None, think: bool | None = None,
    kind: str = "default", wanted: Mapping[str, Any] | None = None, **endpoint: Any,
) -> dict[str, Any]:  # fmt: skip
    """The body of a request to an endpoint with these properties."""
    asked: dict[str, Any] = {"messages": ({"role": "user", "content": "u"},), **(wanted or {})}
    return request_body(
        ModelRequest(kind=kind, **asked),
        endpoint=Endpoint(name="e", **endpoint),
        model=ModelSettings(name="n", endpoint="e", id=model, temperature=temperature),
        thinking=think,
    )


@pytest.mark.parametrize(
    ("way", "on", "off"),
    [
        ("none", {}, {}),
        ("type", {"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}}),
        (
            "template",
            {"chat_template_kwargs": {"thinking": True, "enable_thinking": True}},
            {"chat_template_kwargs": {"thinking": False, "enable_thinking": False}},
        ),
        ("effort", {"reasoning_effort": "medium"}, {"reasoning_effort": "low"}),
    ],
)
def test_thinking(way: str, on: dict[str, Any], off: dict[str, Any]) -> None:
    """Told in the endpoint's own way, or not at all; the planner thinks where nothing else is said."""
    for kind, think, told in (
        ("default", True, on),
        ("default", False, off),
        ("default", None, {}),
        ("planner", None, on),
        ("planner", False, off),
    ):
        made = body(kind=kind, think=think, thinking=way)
        known = ("model", "messages", "max_completion_tokens")
        assert {name: value for name, value in made.items() if name not in known} == told


def test_no_tool_choice_is_ever_sent() -> None:
    """While they think, Kimi models take none but those that go without saying."""
    assert "tool_choice" not in body(think=True, thinking="type", wanted={"tools": (TOOL,)})


def test_sampling_parameters_only_where_they_may_be() -> None:
    """Neither the endpoint's leave nor the model's wish alone is enough."""
    assert body(temperature=0.3, sampling=True)["temperature"] == 0.3
    assert "temperature" not in body(temperature=0.3)
    assert "temperature" not in body(sampling=True)


def test_the_bound_on_tokens_has_the_name_that_the_endpoint_knows() -> None:
    """Exactly one of the two."""
    for name, other in (("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")):
        made = body(tokens_parameter=name, wanted={"max_tokens": 77})
        assert made[name] == 77
        assert other not in made


def test_a_stream_with_its_usage_is_asked_for_where_the_endpoint_streams() -> None:
    """Without its usage a call would cost an estimate."""
    assert body(streaming=True)["stream_options"] == {"include_usage": True}
    assert body(streaming=True)["stream"] is True
    assert not {"stream", "stream_options"} & set(body())


@pytest.mark.parametrize(
    ("model", "properties", "told", "called"),
    [
        ("kimi-k2.6", {}, "first A, then B", " "),
        ("m", {"thinking": "type"}, "first A, then B", " "),
        ("kimi-k2.6", {"reasoning": "verbatim"}, "first A, then B", None),
        ("m", {}, "first A, then B", None),
        ("m", {"thinking": "effort"}, "first A, then B", None),
        ("m", {"reasoning": "space"}, "first A, then B", " "),
        ("kimi-k2.6", {"reasoning": "drop"}, None, None),
    ],
)
def test_reasoning_as_the_endpoint_wants_it_back(
    model: str, properties: dict[str, Any], told: str | None, called: str | None
) -> None:
    """As it came, with a space where it is missing beside tool calls, or not at all."""
    calls: dict[str, Json] = {"role": "assistant", "content": None, "tool_calls": [tool_call("c", "t", "{}")]}
    made = body(model=model, wanted={"messages": (THOUGHT, calls)}, **properties)["messages"]
    assert [message.get("reasoning_content") for message in made] == [told, called]
    assert [message.get("tool_calls") for message in made] == [None, calls["tool_calls"]]


JSON_SCHEMA = {"name": "result", "schema": SCHEMA, "strict": True}
LOOSELY = {"name": "result", "schema": LOOSE}


@pytest.mark.parametrize(
    ("mode", "wanted", "shape"),
    [
        ("schema", {"schema": SCHEMA}, {"type": "json_schema", "json_schema": JSON_SCHEMA}),
        ("schema", {"schema": LOOSE}, {"type": "json_schema", "json_schema": LOOSELY}),
        ("schema", {"json_object": True}, {"type": "json_object"}),
        ("object", {"schema": SCHEMA}, {"type": "json_object"}),
        ("object", {"json_object": True}, {"type": "json_object"}),
        ("none", {"schema": SCHEMA}, None),
        ("none", {"json_object": True}, None),
        ("schema", {"schema": SCHEMA, "tools": (TOOL,)}, None),
        ("object", {"json_object": True, "tools": (TOOL,)}, None),
        ("schema", {"schema": {"type": "array"}}, None),
        ("object", {"schema": {"type": "string"}}, None),
        ("object", {}, None),
    ],
)  # fmt: skip
def test_json_as_far_as_the_endpoint_can(
    mode: str, wanted: dict[str, Any], shape: dict[str, Any] | None
) -> None:
    """Never beside tools, which some endpoints then never call, nor for results that are no objects."""
    assert body(json_mode=mode, wanted=wanted).get("response_format") == shape


@pytest.mark.parametrize(
    ("change", "strict"),
    [
        ({}, True),
        ({"additionalProperties": True}, False),
        ({"required": []}, False),
        ({"allOf": []}, False),
        ({"properties": {"orders": {"type": "object"}}}, False),
        ({"properties": {"orders": {"type": "array", "items": {"not": {}}}}}, False),
        ({"properties": {"orders": {"anyOf": [{"type": "null"}, {"type": "string"}]}}}, True),
        ({"properties": {"orders": {"anyOf": [{"type": "null"}, {"type": "object"}]}}}, False),
        ({"$defs": {"order": {"type": "object"}}}, False),
        ({"required": "orders"}, False),
        ({"properties": ["orders"]}, False),
    ],
)
def test_what_strict_mode_takes(change: dict[str, Json], strict: bool) -> None:
    """Every object names all its properties and requires them all; no keyword that it does not know."""
    assert takes_strict({**SCHEMA, **change}) == strict


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "items", "anyOf", "required", "$defs"]), inner
        )
    ),
    max_leaves=12,
)


@given(values)
def test_any_schema_is_strict_or_not(schema: Any) -> None:
    """None crashes."""
    assert takes_strict(schema) in (True, False)
