"""The model client against a real HTTP endpoint that answers as endpoints in the field did."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agents.configuration.values import Endpoint as Configured
from agents.configuration.values import ModelSettings, Prices
from agents.models.client import ChatClient
from agents.models.faults import RETRY
from agents.models.one_model import OneModel
from agents.models.waits import reset_of
from agents.ports import ModelError, ModelReply, ModelRequest, ToolSpec
from streams.core.values import NO_USAGE, Json, Usage
from tests.agents.scripted_endpoint import Endpoint, Scripted, completion, endpoint, tool_call

pytestmark = pytest.mark.asyncio

KEY = "sk-very-secret-0123456789"
CASES = [
    json.loads(line) for line in (Path(__file__).parent / "cases/replies.jsonl").read_text().splitlines()
]
HELLO = ModelRequest(messages=({"role": "system", "content": "s"}, {"role": "user", "content": "hello"}))


@asynccontextmanager
async def client_of(*replies: Scripted, model: str = "m") -> AsyncIterator[tuple[OneModel, Endpoint]]:
    """A client, and the endpoint that gives it these replies."""
    async with endpoint(replies) as served:
        client = OneModel(base_url=served.url, api_key=KEY, model=model)
        try:
            yield client, served
        finally:
            await client.close()


async def ask(client: OneModel, request: ModelRequest = HELLO, *, timeout_s: float = 10.0) -> ModelReply:
    """One call."""
    return await client.chat(request, timeout_s=timeout_s)


def scripted(case: dict[str, Any]) -> Scripted:
    """The reply of a case; "{key}" in it stands for the key, as careless endpoints repeat it."""
    body = case["body"]
    return Scripted(
        status=case["status"],
        body=body if isinstance(body, str) else json.loads(json.dumps(body).replace("{key}", KEY)),
        headers=case.get("headers", {}),
        content_type=case.get("content_type", "application/json"),
    )


async def test_what_endpoints_answer_instead_of_a_completion(subtests: pytest.Subtests) -> None:
    """Each such reply is an error of the right kind, with the wait that was asked for, and never the key."""
    async with client_of(*map(scripted, CASES)) as (client, served):  # one client: making one takes 0.1 s
        for case in CASES:
            with pytest.raises(ModelError) as raised:
                await ask(client)
            error = raised.value
            with subtests.test(case["case"]):
                assert (error.kind, error.retry) == (case["kind"], case.get("retry", RETRY[case["kind"]]))
                if "wait_s" in case:
                    assert error.wait_s == (None if case["wait_s"] is None else pytest.approx(case["wait_s"]))
                for words in (*case.get("says", ()), "{url}"):
                    assert words.replace("{url}", served.url) in error.reason
                assert KEY not in f"{error.reason} {error!r}"


async def test_a_cut_connection() -> None:
    """Half a reply is a broken connection, to be tried again."""
    async with client_of(Scripted(body=completion(), cut=True)) as (client, _):
        with pytest.raises(ModelError) as raised:
            await ask(client)
    assert (raised.value.kind, raised.value.retry) == ("connection", True)


async def test_nobody_listens() -> None:
    """A refused connection can be tried again, and names the endpoint."""
    async with endpoint([Scripted()]) as served:
        url = served.url
    client = OneModel(base_url=url, api_key=KEY, model="m")
    try:
        with pytest.raises(ModelError) as raised:
            await ask(client)
    finally:
        await client.close()
    assert (raised.value.kind, raised.value.retry) == ("connection", True)
    assert url in raised.value.reason


async def test_no_reply_in_time() -> None:
    """The whole call has one deadline, whatever the connection does."""
    async with client_of(Scripted(hang=True)) as (client, _):
        with pytest.raises(ModelError) as raised:
            await ask(client, timeout_s=0.05)
    assert (raised.value.kind, raised.value.retry) == ("timeout", True)


async def test_an_address_that_is_none() -> None:
    """A base URL without a scheme is the configuration's fault."""
    client = OneModel(base_url="ftp://example.invalid/v1", api_key=KEY, model="m")
    try:
        with pytest.raises(ModelError) as raised:
            await ask(client)
    finally:
        await client.close()
    assert (raised.value.kind, raised.value.retry) == ("misconfigured", False)


async def test_a_host_that_none_can_be() -> None:
    client = OneModel(base_url=f"http://{'a' * 64}.example/v1", api_key=KEY, model="m")
    with pytest.raises(ModelError) as raised:
        await ask(client)
    await client.close()
    assert raised.value.kind == "misconfigured"
    assert "OPENAI_BASE_URL" in raised.value.reason


@pytest.mark.parametrize(
    "key", [KEY + "\n", "sk\N{EN DASH}very-secret-0123456789", KEY + "\x00", KEY + "\udcff"]
)
async def test_a_key_that_cannot_be_sent_is_out_and_not_shown(key: str) -> None:
    """It is an error like any other: the sub-task is told, and another key or endpoint takes over."""
    client = OneModel(base_url="http://127.0.0.1:9/v1", api_key=key, model="m")
    with pytest.raises(ModelError) as raised:
        await ask(client)
    await client.close()
    assert raised.value.kind == "bad_key"
    assert raised.value.usage == NO_USAGE
    assert "OPENAI_API_KEY has characters that no key has" in raised.value.reason
    assert "secret" not in raised.value.reason


async def test_credentials_in_the_address_are_not_named() -> None:
    """Errors name the URL, so it may hold no password; the refusal does not show it either."""
    with pytest.raises(ValueError, match="OPENAI_BASE_URL") as raised:
        OneModel(base_url="http://me:hunter2@127.0.0.1:1/v1", api_key=KEY, model="m")
    assert "hunter2" not in str(raised.value)


async def test_a_reply_as_it_came() -> None:
    """Message, reason, usage, model and request id come from the reply; empty fields are left out."""
    calls = [tool_call("c1", "search", '{"q": "a"}')]
    body = completion(None, calls=calls, reasoning_content="first A, then B", refusal=None, annotations=[])
    async with client_of(Scripted(body=body, headers={"x-request-id": "req-7"})) as (client, _):
        reply = await ask(client)
    assert reply.message == {
        "role": "assistant",
        "content": None,
        "tool_calls": calls,
        "reasoning_content": "first A, then B",
    }
    assert reply.finish_reason == "tool_calls"
    assert reply.usage == Usage(calls=1, tokens_in=100, tokens_out=20)
    assert (reply.model, reply.request_id, reply.simulated) == ("m", "req-7", False)
    assert reply.latency_ms > 0


@pytest.mark.parametrize(
    ("usage", "cached"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 1, "cached_tokens": 64}, 64),
        ({"prompt_tokens": 100, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 32}}, 32),
        ({"prompt_tokens": 100, "completion_tokens": 1, "prompt_tokens_details": None}, 0),
        ({"prompt_tokens": 100, "completion_tokens": 1, "cached_tokens": 1_000}, 100),
    ],
)
async def test_cached_tokens(usage: dict[str, Any], cached: int) -> None:
    """Both places where providers tell cached tokens are read; there are never more than input tokens."""
    async with client_of(Scripted(body=completion(usage=usage))) as (client, _):
        reply = await ask(client)
    assert reply.usage == Usage(calls=1, tokens_in=100, tokens_cached=cached, tokens_out=1)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None, "completion_tokens": None}])
async def test_unknown_usage_is_an_estimate_and_says_so(usage: Any) -> None:
    """A call whose usage nobody tells is not free."""
    async with client_of(Scripted(body=completion(usage=usage))) as (client, _):
        reply = await ask(client)
    assert reply.usage.estimated == 1
    assert reply.usage.tokens_in > 0
    assert reply.usage.tokens_out > 0


async def test_costs_by_the_list_price() -> None:
    """Known models cost what genai-prices says, unknown ones nothing, simulated replies nothing."""
    usage = {"prompt_tokens": 1_000, "completion_tokens": 200, "cached_tokens": 400}
    known = {**completion(usage=usage), "model": "kimi-k2.5"}
    label = {"x-anabranch-simulated": "1"}
    async with client_of(
        Scripted(body=known),
        Scripted(body=known),
        Scripted(body=completion(usage=usage)),
        Scripted(body=known, headers=label),
    ) as (client, _):
        costs = [(await ask(client)) for _ in range(4)]
    assert [reply.usage.usd for reply in costs] == [pytest.approx(0.001), pytest.approx(0.001), 0.0, 0.0]
    assert [reply.simulated for reply in costs] == [False, False, False, True]


async def test_what_is_sent() -> None:
    """Model, messages, tools and room; no sampling parameter; the key, and nothing of this machine."""
    tool = ToolSpec(name="search", description="d", parameters={"type": "object"})
    request = ModelRequest(messages=HELLO.messages, tools=(tool,), max_tokens=77, model="other")
    async with client_of(Scripted(body=completion())) as (client, served):
        await ask(client, request)
        await ask(client)
    function = {"name": "search", "description": "d", "parameters": {"type": "object"}}
    assert served.bodies[0] == {
        "model": "other",
        "messages": list(HELLO.messages),
        "max_completion_tokens": 77,
        "tools": [{"type": "function", "function": function}],
    }
    assert served.bodies[1] == {
        "model": "m",
        "messages": list(HELLO.messages),
        "max_completion_tokens": 800,
    }
    assert served.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert served.headers[0]["Content-Type"] == "application/json"
    assert not {"X-Stainless-OS", "X-Stainless-Arch", "X-Stainless-Runtime-Version"} & set(served.headers[0])


@pytest.mark.parametrize(
    ("text", "arrives"),
    [("a\ud800b", "a�b"), ("\ud83d\ude00", "😀"), ("plain", "plain"), ("ünï", "ünï")],
)
async def test_lone_surrogates_are_replaced(text: str, arrives: str) -> None:
    """Text that is no Unicode goes out with replacement characters; all other text as it is."""
    async with client_of(Scripted(body=completion())) as (client, served):
        await ask(client, ModelRequest(messages=({"role": "user", "content": text},)))
    assert served.bodies[0]["messages"] == [{"role": "user", "content": arrives}]


async def test_numbers_that_json_cannot_hold() -> None:
    """NaN and infinities go out as null, not as a crash."""
    schema: dict[str, Json] = {"type": "number", "default": float("nan"), "maximum": float("inf")}
    tool = ToolSpec(name="t", description="d", parameters=schema)
    async with client_of(Scripted(body=completion())) as (client, served):
        await ask(client, ModelRequest(messages=HELLO.messages, tools=(tool,)))
    sent = served.bodies[0]["tools"][0]["function"]["parameters"]
    assert sent == {"type": "number", "default": None, "maximum": None}


def conversation(**said: Json) -> Sequence[dict[str, Json]]:
    """A conversation with a tool call, and what the assistant said along with it."""
    calls: Json = [tool_call("c1", "search", "{}")]
    return (
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": None, "tool_calls": calls, **said},
        {"role": "tool", "tool_call_id": "c1", "content": "{}"},
    )


@pytest.mark.parametrize(
    ("model", "said", "sent"),
    [
        ("kimi-k2.5", {"reasoning_content": "first A, then B"}, "first A, then B"),
        ("kimi-k2.5", {"reasoning_content": ""}, " "),
        ("kimi-k2.5", {}, " "),
        ("gpt-5", {"reasoning_content": "first A, then B"}, "first A, then B"),
        ("gpt-5", {}, None),
    ],
)
async def test_reasoning_goes_back(model: str, said: dict[str, Json], sent: str | None) -> None:
    """Reasoning goes back verbatim; Kimi models get a space where there is none, others get nothing."""
    async with client_of(Scripted(body=completion()), model=model) as (client, served):
        await ask(client, ModelRequest(messages=conversation(**said)))
    assert served.bodies[0]["messages"][1].get("reasoning_content") == sent


async def test_many_calls_at_once_share_one_client() -> None:
    """A hundred calls side by side all get their reply, and the loud loggers are quiet."""
    async with client_of(Scripted(body=completion())) as (client, served):
        replies = await asyncio.gather(*(ask(client) for _ in range(100)))
        assert len(served.bodies) == 100
    assert [reply.text for reply in replies] == ["ok"] * 100
    assert all(
        logging.getLogger(name).getEffectiveLevel() >= logging.WARNING for name in ("openai", "httpx2")
    )


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        ("12", 12),
        ("0.5", 0.5),
        ("6m0s", 360),
        ("1h2m3.5s", 3_723.5),
        ("1d", 86_400),
        ("120ms", 0.12),
        ("7.66s", 7.66),
        ("1792567710", 30),  # as GitHub writes it
        ("1792567710000", 30),
        ("1792567600", 0),
        ("-3", 0),
        ("", None),
        ("soon", None),
        ("inf", None),
        ("5m3", None),
    ],
)
async def test_when_a_limit_is_there_again(reset: str, seconds: float | None) -> None:
    """Seconds, a duration or a moment; nothing else is a wait."""
    headers = {
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": reset,
        "date": "Wed, 21 Oct 2026 07:28:00 GMT",
    }
    assert reset_of(headers) == (None if seconds is None else pytest.approx(seconds))


def configured(**fields: Any) -> Configured:
    """An endpoint of a configuration file."""
    return Configured(name="kimi", key_variables=("KIMI_A", "KIMI_B"), keys=("sk-a-secret", KEY), **fields)


async def test_errors_name_the_endpoint_and_the_variable_of_its_key() -> None:
    """Of several keys the one that was used; whatever the endpoint repeats, no key is shown."""
    refused = Scripted(status=401, body={"error": {"message": f"Bad key {KEY}, not sk-a-secret"}})
    lost = Scripted(status=404, body={"error": {"message": "Not Found"}})
    errors = []
    async with endpoint([refused, lost]) as served:
        client = ChatClient(configured(base_url=served.url))
        model = ModelSettings(name="k2", endpoint="kimi", id="kimi-k2.6")
        for _ in range(2):
            with pytest.raises(ModelError) as raised:
                await client.chat(HELLO, model=model, key=KEY, timeout_s=10)
            errors.append(raised.value)
        await client.close()
    assert [(error.kind, error.endpoint, error.model) for error in errors] == [
        ("bad_key", "kimi", "k2"),
        ("misconfigured", "kimi", "k2"),
    ]
    assert errors[0].reason == (
        f"kimi, {served.url}: 401 Bad key <key>, not <key>; set KIMI_B to a key of this endpoint"
    )
    assert "check base_url of endpoints.kimi" in errors[1].reason
    assert served.headers[0]["Authorization"] == f"Bearer {KEY}"


async def test_configured_prices_come_before_the_list() -> None:
    """Cached tokens cost as others do where nothing else is said."""
    usage = {"prompt_tokens": 1_000, "completion_tokens": 200, "cached_tokens": 400}
    known = {**completion(usage=usage), "model": "kimi-k2.5"}
    async with endpoint([Scripted(body=known)]) as served:
        client = ChatClient(configured(base_url=served.url))
        costs = []
        for prices in (
            Prices(tokens_in=2, tokens_out=10),
            Prices(tokens_in=2, tokens_out=10, tokens_cached=1),
        ):
            model = ModelSettings(name="k2", endpoint="kimi", id="kimi-k2.5", prices=prices)
            reply = await client.chat(HELLO, model=model, key=KEY, timeout_s=10)
            costs.append(reply.usage.usd)
        await client.close()
    assert costs == [pytest.approx(0.004), pytest.approx(0.0036)]
