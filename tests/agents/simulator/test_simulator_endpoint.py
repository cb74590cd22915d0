"""The simulated endpoint as real ones are: streams, thinking, schemas, several models and several keys."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import orjson
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships without types

from agents.configuration.values import Endpoint as Configured
from agents.configuration.values import ModelSettings, Thinking
from agents.models.client import ChatClient
from agents.models.retry import PatientModel
from agents.ports import Done, ModelError, ModelReply, ModelRequest, ToolSpec
from agents.simulator import Behaviour, FailureKind, Simulator, asked
from agents.simulator.problems import Rejected
from agents.simulator.shapes import in_shape
from agents.sub_agent import ToolUsingAgent
from agents.tools.local import LocalTools, local_tool
from streams.core.commands import RunSubTask
from streams.core.values import Inline, Json
from tests.agents.memory_attempt import MemoryAttempt
from tests.agents.simulator.conftest import Endpoint, Request, Say

TOOL = ToolSpec(
    name="lookup",
    description="d",
    parameters={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
)
SUB_AGENT = {"goal": "look them up", "input": [{"name": "orjson"}, {"name": "attrs"}]}


@asynccontextmanager
async def client_of(simulator: Simulator, **fields: Any) -> AsyncIterator[ChatClient]:
    configured = Configured(name="sim", base_url=simulator.url, **fields)
    client = ChatClient(configured)
    try:
        yield client
    finally:
        await client.close()


def request(
    request_of: Request, role: str = "sub-agent", data: Any = SUB_AGENT, **fields: Any
) -> ModelRequest:
    return ModelRequest(messages=request_of(role, data)["messages"], **fields)


async def ask(
    client: ChatClient, wanted: ModelRequest, *, key: str = "", model: str = "simulated", **more: Any
) -> ModelReply:
    settings = ModelSettings(name="m", endpoint="sim", id=model)
    return await client.chat(wanted, model=settings, key=key, timeout_s=10, **more)


@pytest.mark.parametrize("tools", [(), (TOOL,)])
@pytest.mark.parametrize("thinking", [None, True])
async def test_a_stream_says_what_a_whole_reply_says(
    endpoint: Endpoint, request_of: Request, tools: tuple[ToolSpec, ...], thinking: bool | None
) -> None:
    """Text, tool calls, thoughts and usage."""
    simulator = await endpoint(Behaviour())
    wanted = request(request_of, tools=tools)
    replies = []
    for streaming in (False, True):
        async with client_of(simulator, streaming=streaming, thinking="type") as client:
            replies.append(await ask(client, wanted, thinking=thinking))
    whole, stream = replies
    assert (stream.message, stream.finish_reason) == (whole.message, whole.finish_reason)
    assert (stream.usage.tokens_in, stream.usage.tokens_out) == (
        whole.usage.tokens_in,
        whole.usage.tokens_out,
    )
    assert stream.usage.estimated == 0
    assert stream.simulated
    assert ("reasoning_content" in stream.message) == bool(thinking)
    assert bool(stream.message.get("tool_calls")) == bool(tools)


@pytest.mark.parametrize(
    ("kind", "error"),
    [("stalled", "timeout"), ("unfinished", "malformed"), ("malformed", "malformed"), ("cut", "connection")],
)
async def test_streams_that_break(
    endpoint: Endpoint, request_of: Request, kind: FailureKind, error: str
) -> None:
    """Each is an error of its kind, and counted."""
    simulator = await endpoint(Behaviour(failures=((kind, 1.0),)))
    async with client_of(simulator, streaming=True, stall_s=0.2) as client:
        with pytest.raises(ModelError) as raised:
            await ask(client, request(request_of))
    assert raised.value.kind == error
    async with asyncio.timeout(10):
        while simulator.counters.in_flight:  # it has to notice that its client left
            await asyncio.sleep(0.001)
    assert simulator.counters.by_failure == {kind: 1}


@pytest.mark.parametrize("thinking", ["type", "template", "effort"])
async def test_thinking_is_told_in_the_way_of_the_endpoint(
    endpoint: Endpoint, request_of: Request, thinking: Thinking
) -> None:
    """On, off, and by default: the planner thinks, nobody else does."""
    simulator = await endpoint(Behaviour())
    async with client_of(simulator, thinking=thinking) as client:
        thoughts = [
            "reasoning_content" in (await ask(client, wanted, thinking=on)).message
            for wanted, on in (
                (request(request_of), True),
                (request(request_of), False),
                (request(request_of), None),
                (request(request_of, "planner", {"goal": "do it"}, kind="planner"), None),
                (request(request_of, "planner", {"goal": "do it"}, kind="planner"), False),
            )
        ]
    assert thoughts == [True, False, False, True, False]


async def test_thoughts_go_back_with_the_calls_they_led_to(endpoint: Endpoint, request_of: Request) -> None:
    """As Moonshot's endpoints want it: a turn with tool calls is refused without them."""
    simulator = await endpoint(Behaviour())
    async with client_of(simulator, thinking="type") as client:
        wanted = request(request_of, tools=(TOOL,))
        turn = await ask(client, wanted, thinking=True)
        calls: Any = turn.message["tool_calls"]
        told = [{"role": "tool", "tool_call_id": call["id"], "content": "{}"} for call in calls]
        kept = ModelRequest(messages=(*wanted.messages, turn.message, *told), tools=(TOOL,))
        assert (await ask(client, kept, thinking=True)).finish_reason == "stop"
    async with client_of(simulator, thinking="type", reasoning="drop") as client:
        with pytest.raises(ModelError, match="reasoning_content is missing"):
            await ask(client, kept, thinking=True)


class ThinkingModel:
    """A model that thinks in every call."""

    def __init__(self, client: ChatClient) -> None:
        self._client = client

    async def chat(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        return await ask(self._client, request, thinking=True)


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_sub_agent_that_thinks_keeps_its_thoughts(endpoint: Endpoint, streaming: bool) -> None:
    """Through its turns with tools to its answer, at an endpoint that refuses them where they are missing."""
    simulator = await endpoint(Behaviour())

    async def lookup(name: str) -> dict[str, str]:
        """Look a name up."""
        return {"name": name, "found": "yes"}

    async with client_of(simulator, thinking="type", streaming=streaming) as client:
        agent = ToolUsingAgent(PatientModel(ThinkingModel(client)), LocalTools([local_tool(lookup)]))
        command = RunSubTask(
            job="t/j", task="a", attempt=1, ordinal=1, timeout_s=60.0, kind="extract",
            goal="look them up", tools=("lookup",), input=Inline(value=[{"name": "orjson"}]),
        )  # fmt: skip
        done = await agent.run(command, MemoryAttempt())
    assert isinstance(done, Done), done
    assert (done.usage.calls, done.usage.tool_calls) == (2, 1)


def test_a_forced_tool_is_refused_while_thinking(request_of: Request) -> None:
    """It takes auto and none only."""
    body: Mapping[str, Any] = request_of("sub-agent", SUB_AGENT, thinking={"type": "enabled"})
    asked.read(orjson.dumps({**body, "tool_choice": "none"}))
    with pytest.raises(Rejected, match="tool_choice"):
        asked.read(orjson.dumps({**body, "tool_choice": "required"}))


SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "state": {"enum": ["done", "open"]},
        "notes": {"type": "array", "items": {"type": "string"}},
        "more": {"type": ["object", "null"], "properties": {}, "additionalProperties": False},
    },
    "required": ["text", "count", "state", "notes", "more"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(simulated) words",
        "[]",
        '[{"a": 1}]',
        '{"text": 7, "count": "x"}',
        '{"more": {"x": 1}}',
        "3",
        "null",
    ],
)
def test_an_answer_takes_the_shape_of_its_schema(text: str) -> None:
    """Whatever it was."""
    value = orjson.loads(in_shape(text, SCHEMA))
    assert not list(Draft202012Validator(SCHEMA).iter_errors(value)), value
    assert not list(
        Draft202012Validator({"type": "array"}).iter_errors(orjson.loads(in_shape(text, {"type": "array"})))
    )


async def test_a_schema_is_kept_to_where_one_is_given(
    endpoint: Endpoint, request_of: Request, say: Say
) -> None:
    """By the endpoint, or by the prompt of a sub-agent; what the answer holds is kept."""
    simulator = await endpoint(Behaviour())
    async with client_of(simulator, json_mode="schema") as client:
        reply = await ask(client, request(request_of, schema=SCHEMA))
    by_prompt = say("sub-agent", {**SUB_AGENT, "result_schema": SCHEMA})
    for text in (reply.text, by_prompt.text or ""):
        value = orjson.loads(text)
        assert not list(Draft202012Validator(SCHEMA).iter_errors(value))
        assert value["text"].startswith("(simulated)")


async def test_several_models(endpoint: Endpoint, request_of: Request) -> None:
    """Each is listed, answers under its own name, and is counted."""
    simulator = await endpoint(Behaviour(models=("simulated", "simulated-small")))
    async with httpx2.AsyncClient(base_url=simulator.url) as plain:
        listed = (await plain.get("/models")).json()["data"]
        assert [each["id"] for each in listed] == ["simulated", "simulated-small"]
        assert (await plain.get("/models/simulated-small")).json()["id"] == "simulated-small"
        assert (await plain.get("/models/simulated-large")).status_code == 404
    async with client_of(simulator) as client:
        assert (await ask(client, request(request_of), model="simulated-small")).model == "simulated-small"
        with pytest.raises(ModelError) as raised:
            await ask(client, request(request_of), model="simulated-large")
    assert raised.value.kind == "no_such_model"
    (call, _) = simulator.counters.log()["calls"]
    assert call.model == "simulated-small"


async def test_each_key_has_an_account_of_its_own(endpoint: Endpoint, request_of: Request) -> None:
    """Their limits add up, and the counters say how far each was used, without telling the key."""
    simulator = await endpoint(
        Behaviour(keys=("a", "b"), refused_keys=("c",), spent_keys=("d",), requests_per_minute=1)
    )
    kinds = []
    async with client_of(simulator, keys=("a", "b", "c", "d")) as client:
        for key in ("a", "b", "a", "c", "d", "e"):
            try:
                await ask(client, request(request_of), key=key)
            except ModelError as error:
                kinds.append(error.kind)
            else:
                kinds.append("answered")
    assert kinds == ["answered", "answered", "rate_limited", "bad_key", "quota", "bad_key"]
    report = simulator.counters.report()
    assert report["per_minute_max"] == 6
    assert report["by_limit"] == {"requests": 1}
    by_key = report["by_key"]
    assert {key: rates["per_second_max"] for key, rates in by_key.items()} == {
        "key 1": 2,
        "key 2": 1,
        "key 3": 1,
        "key 4": 1,
        "other": 1,
    }
    assert by_key["key 1"]["by_limit"] == {"requests": 1}
    assert by_key["key 2"]["tokens_per_minute_max"] > 0
