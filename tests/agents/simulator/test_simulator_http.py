"""The endpoint as clients meet it: over HTTP, with the openai client where it can ask for it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import orjson
import pytest
from aiohttp import ClientError, ClientSession, ClientTimeout

from agents.simulator import Behaviour, Fixed, Simulator, serve
from tests.agents.simulator.conftest import Endpoint, Request

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def _openai(simulator: Simulator, key: str = "any") -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=simulator.url, api_key=key, max_retries=0) as client:
        yield client


async def _post(simulator: Simulator, body: Any, **headers: str) -> tuple[int, dict[str, str], bytes]:
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    async with (
        ClientSession(timeout=ClientTimeout(total=10)) as session,
        session.post(f"{simulator.url}/chat/completions", data=data, headers=headers) as response,
    ):
        return response.status, dict(response.headers), await response.read()


async def _get(simulator: Simulator, path: str) -> Any:
    root = simulator.url.removesuffix("/v1")
    async with ClientSession() as session, session.get(root + path) as response:
        return orjson.loads(await response.read())


async def _until_idle(simulator: Simulator) -> None:
    """Wait for the server to notice that a client has left."""
    async with asyncio.timeout(10):
        while simulator.counters.in_flight:
            await asyncio.sleep(0.001)


async def test_everything_says_that_it_is_simulated(endpoint: Endpoint, request_of: Request) -> None:
    """Nobody can take a reply for a real model's."""
    simulator = await endpoint(Behaviour())
    async with _openai(simulator) as client:
        models = [model.id async for model in client.models.list()]
        raw = await client.chat.completions.with_raw_response.create(**request_of("sub-agent", {"goal": "g"}))
    reply = raw.parse()
    assert models == ["simulated"]
    assert raw.headers["x-anabranch-simulated"] == "1"
    assert (reply.model, reply.system_fingerprint) == ("simulated", "anabranch-simulated")
    assert (reply.choices[0].message.content or "").startswith("(simulated) ")
    assert raw.headers["x-request-id"]


async def test_streams_are_read_by_the_openai_client(endpoint: Endpoint, request_of: Request) -> None:
    """As one of the real endpoints'."""
    simulator = await endpoint(Behaviour())
    request = request_of("sub-agent", {"goal": "g", "input": "some words"})
    async with _openai(simulator) as client:
        whole = await client.chat.completions.create(**request)
        options: Any = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = [chunk async for chunk in await client.chat.completions.create(**request, **options)]
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert said == whole.choices[0].message.content
    assert chunks[-1].usage is not None
    assert whole.usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert {chunk.model for chunk in chunks} == {"simulated"}


async def test_the_same_request_has_the_same_reply(endpoint: Endpoint, request_of: Request) -> None:
    """On the same endpoint, and on another one with the same seed."""
    request = request_of("planner", {"goal": "Compare a, b and c", "max_subtasks": 100})
    bodies = [(await _post(await endpoint(Behaviour(seed=7)), request))[2] for _ in range(2)]
    simulator = await endpoint(Behaviour(seed=7))
    bodies += [(await _post(simulator, request))[2] for _ in range(2)]
    # Only what the cache held before differs, and this request is smaller than a block of it.
    assert len(set(bodies)) == 1


async def test_chance_comes_from_seed_request_and_repetition(endpoint: Endpoint, request_of: Request) -> None:
    """Two endpoints with one seed fail at the same calls; a retry has a chance of its own."""
    request = request_of("sub-agent", {"goal": "g"})
    runs = []
    for seed in (1, 1, 2):
        simulator = await endpoint(Behaviour(seed=seed, failures=(("server_error", 0.5),)))
        runs.append([(await _post(simulator, request))[0] for _ in range(24)])
    assert runs[0] == runs[1] != runs[2]
    assert set(runs[0]) == {200, 500}


async def test_a_second_conversation_finds_its_beginning_cached(
    endpoint: Endpoint, request_of: Request
) -> None:
    """Usage tells it as OpenAI does, and the counters add it up."""
    simulator = await endpoint(Behaviour())
    first = request_of("sub-agent", {"goal": "g " * 2_000})
    _, _, body = await _post(simulator, first)
    usage = orjson.loads(body)["usage"]
    assert usage["prompt_tokens_details"] == {"cached_tokens": 0}
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    more = [*first["messages"], {"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}]
    _, _, body = await _post(simulator, {**first, "messages": more})
    cached = orjson.loads(body)["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert 900 < cached <= usage["prompt_tokens"]
    assert simulator.counters.tokens_cached == cached


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "no JSON"),
        (b"[]", 400, "no JSON object"),
        (b'{"messages": []}', 400, "model"),
        (b'{"model": "gpt", "messages": []}', 404, "does not exist"),
        (b'{"model": "simulated", "messages": []}', 400, "messages"),
        (b'{"model": "simulated", "messages": ["x"]}', 400, "messages"),
        (b'{"model": "simulated", "max_tokens": 0, "messages": [{}]}', 400, "max_tokens"),
        (b'{"model": "simulated", "tools": [{}], "messages": [{}]}', 400, "tool"),
        (b'{"model": "simulated", "messages": [{},{},{"tool_calls":[{"id":"c","function":{}}]}]}', 400, "c"),
        (b'{"model": "simulated", "messages": [{},{},{"tool_calls":[7]}]}', 400, "function"),
        (
            (
                b'{"model": "simulated", "messages": [{},{},{"tool_calls":[{"id":"c","function":{}}]},'
                b'{"role":"user"},{"role":"tool","tool_call_id":"c"}]}'
            ),
            400,
            "no tool message answers",
        ),
        (b'{"model": "simulated", "messages": [{},{},{"role":"tool","tool_call_id":"c"}]}', 400, "tool"),
    ],
)
async def test_a_wrong_request_is_told_so(endpoint: Endpoint, body: bytes, status: int, words: str) -> None:
    """In OpenAI's shape, and labelled."""
    simulator = await endpoint(Behaviour())
    got, headers, reply = await _post(simulator, body)
    error = orjson.loads(reply)["error"]
    assert got == status
    assert words in error["message"]
    assert set(error) == {"message", "type", "param", "code"}
    assert headers["x-anabranch-simulated"] == "1"
    assert simulator.counters.by_status == {str(status): 1}


async def test_an_unknown_path_is_told_so(endpoint: Endpoint) -> None:
    """A wrong base URL is a common mistake."""
    simulator = await endpoint(Behaviour())
    assert "unknown request URL" in (await _get(simulator, "/chat/completions"))["error"]["message"]


async def test_a_foreign_key_is_refused(endpoint: Endpoint, request_of: Request) -> None:
    """For models and for chat; a known one is served."""
    simulator = await endpoint(Behaviour(keys=("k-1", "k-2")))
    request = request_of("sub-agent", {"goal": "g"})
    async with _openai(simulator, "k-3") as client:
        with pytest.raises(openai.AuthenticationError):
            await client.models.list()
        with pytest.raises(openai.AuthenticationError):
            await client.chat.completions.create(**request)
    async with _openai(simulator, "k-2") as client:
        assert await client.chat.completions.create(**request)
    assert "k-1" not in repr(simulator.behaviour)


async def test_requests_a_minute_are_enforced(endpoint: Endpoint, request_of: Request) -> None:
    """The third of two is refused, with what a client needs to know."""
    simulator = await endpoint(Behaviour(requests_per_minute=2))
    request = request_of("sub-agent", {"goal": "g"})
    answers = [await _post(simulator, request) for _ in range(3)]
    assert [status for status, _, _ in answers] == [200, 200, 429]
    assert [headers["X-RateLimit-Remaining-Requests"] for _, headers, _ in answers] == ["1", "0", "0"]
    _, headers, body = answers[2]
    assert 0 < float(headers["Retry-After"]) <= 61
    assert headers["X-RateLimit-Limit-Requests"] == "2"
    assert orjson.loads(body)["error"]["type"] == "rate_limit_reached_error"
    assert simulator.counters.by_limit == {"requests": 1}


async def test_tokens_a_minute_are_enforced(endpoint: Endpoint, request_of: Request) -> None:
    """By input and output together."""
    simulator = await endpoint(Behaviour(tokens_per_minute=600))
    request = request_of("sub-agent", {"goal": "g " * 800})
    assert [(await _post(simulator, request))[0] for _ in range(2)] == [200, 429]
    assert simulator.counters.by_limit == {"tokens": 1}


async def test_calls_in_flight_are_enforced(endpoint: Endpoint, request_of: Request) -> None:
    """A call that hangs holds its place until its client leaves."""
    simulator = await endpoint(Behaviour(concurrency=1))
    hanging = asyncio.create_task(_post(simulator, request_of("sub-agent", {"goal": "[[hang]]"})))
    async with asyncio.timeout(10):
        while not simulator.counters.in_flight:
            await asyncio.sleep(0.001)
    request = request_of("sub-agent", {"goal": "g"})
    status, headers, _ = await _post(simulator, request)
    assert (status, "Retry-After" in headers) == (429, True)
    hanging.cancel()
    await asyncio.wait([hanging])
    await _until_idle(simulator)
    assert (await _post(simulator, request))[0] == 200
    assert simulator.counters.by_status == {"429": 1, "left": 1, "200": 1}
    assert simulator.counters.in_flight_max == 1


async def test_failures_by_chance_look_real(endpoint: Endpoint, request_of: Request) -> None:
    """The openai client sees what it would see of a real endpoint."""
    request = request_of("sub-agent", {"goal": "g", "input": "some words"})

    async def ask(behaviour: Behaviour) -> Any:
        simulator = await endpoint(behaviour)
        async with _openai(simulator) as client:
            try:
                return await client.chat.completions.create(**request)
            finally:
                assert simulator.counters.by_failure == {behaviour.failures[0][0]: 1}

    with pytest.raises(openai.RateLimitError) as limited:
        await ask(Behaviour(failures=(("rate_limited", 1),), retry_after_s=0.25))
    assert limited.value.response.headers["Retry-After"] == "0.25"
    with pytest.raises(openai.RateLimitError) as overloaded:
        await ask(Behaviour(failures=(("overloaded", 1),)))
    assert "Retry-After" not in overloaded.value.response.headers
    with pytest.raises(openai.InternalServerError):
        await ask(Behaviour(failures=(("server_error", 1),)))
    with pytest.raises(openai.APIConnectionError):
        await ask(Behaviour(failures=(("timeout", 1),), hang_s=0))
    with pytest.raises(openai.APIConnectionError):
        await ask(Behaviour(failures=(("cut", 1),)))
    with pytest.raises(json.JSONDecodeError):
        await ask(Behaviour(failures=(("malformed", 1),)))
    truncated = await ask(Behaviour(failures=(("truncated", 1),)))
    assert truncated.choices[0].finish_reason == "length"


async def test_a_cut_body_begins(endpoint: Endpoint, request_of: Request) -> None:
    """The status says 200 and the body ends too early."""
    simulator = await endpoint(Behaviour(failures=(("cut", 1),)))
    async with ClientSession() as session:
        body = orjson.dumps(request_of("sub-agent", {"goal": "g"}))
        async with session.post(f"{simulator.url}/chat/completions", data=body) as response:
            assert response.status == 200
            with pytest.raises(ClientError):
                await response.read()
    assert simulator.counters.by_status == {"cut": 1}


async def test_directives_strike_where_they_stand(endpoint: Endpoint, request_of: Request) -> None:
    """In a sub-agent's goal or its share of the input; not in its dependencies' goals, nor elsewhere."""
    simulator = await endpoint(Behaviour())

    async def status(role: str, data: Any) -> int:
        return (await _post(simulator, request_of(role, data)))[0]

    assert await status("sub-agent", {"goal": "x [[fail]]"}) == 400
    assert await status("sub-agent", {"goal": "x", "input": ["a", {"name": "b [[fail]]"}]}) == 400
    assert await status("sub-agent", {"goal": "x [[error 503]]"}) == 503
    assert await status("sub-agent", {"goal": "x [[error fast]]"}) == 400
    assert await status("sub-agent", {"goal": "x [[not ours]] [[fail @2]]"}) == 200
    assert await status("sub-agent", {"goal": "x", "results": [{"task": "a", "goal": "[[fail]]"}]}) == 200
    assert await status("planner", {"goal": "x [[fail]]"}) == 200
    assert await status("planner", {"goal": "x [[fail planner]]"}) == 400
    assert await status("synthesis", {"goal": "x [[fail planner]] [[error 500 synthesis]]"}) == 500
    assert await status("sub-agent", {"goal": "x [[fail planner]] [[error 500 synthesis]]"}) == 200


async def test_flaky_mends_itself(endpoint: Endpoint, request_of: Request) -> None:
    """After as many failures as it says, of the very same request."""
    simulator = await endpoint(Behaviour())
    request = request_of("sub-agent", {"goal": "x [[flaky 2]]"})
    assert [(await _post(simulator, request))[0] for _ in range(4)] == [500, 500, 200, 200]
    # Who asks makes no other request of it.
    assert [call.nth for call in simulator.counters.log()["calls"]] == [0, 1, 2, 3]


async def test_a_straggler_is_slow_once(endpoint: Endpoint, request_of: Request) -> None:
    """The very same request has the endpoint's latency when it comes again."""
    simulator = await endpoint(Behaviour(latency=Fixed(0.001)))
    for _ in range(2):
        await _post(simulator, request_of("sub-agent", {"goal": "x [[straggle 0.05]]"}))
    first, second = simulator.counters.log()["calls"]
    assert first.seconds >= 0.049
    assert simulator.counters.latency_s == pytest.approx(0.051)
    assert second.nth == 1


async def test_latency_is_given_and_counted(endpoint: Endpoint, request_of: Request) -> None:
    """The directive overrules the endpoint's own latency."""
    simulator = await endpoint(Behaviour(latency=Fixed(0.01)))
    for goal in ("a", "b [[slow 0.02]]"):
        await _post(simulator, request_of("sub-agent", {"goal": goal}))
    assert simulator.counters.latency_s == pytest.approx(0.03)
    first, second = simulator.counters.log()["calls"]
    assert first.seconds >= 0.009
    assert second.seconds >= 0.019


async def test_counters_and_calls_are_served(endpoint: Endpoint, request_of: Request) -> None:
    """As JSON, and the log is bounded."""
    simulator = await endpoint(Behaviour(calls_kept=2))
    await _post(simulator, request_of("planner", {"goal": "g"}))
    await _post(simulator, request_of("sub-agent", {"goal": "g"}, user="t/1/a/1"))
    headers = {"x-client-request-id": "t/1/b/1"}
    await _post(simulator, request_of("sub-agent", {"goal": "g"}, user="ignored"), **headers)
    counters = await _get(simulator, "/counters")
    assert counters["calls"] == 3
    assert counters["by_role"] == {"planner": 1, "sub-agent": 2}
    assert counters["by_status"] == {"200": 3}
    assert (counters["in_flight"], counters["in_flight_max"]) == (0, 1)
    assert 1 <= counters["per_second_max"] <= 3
    assert counters["per_minute_max"] == 3
    assert counters["tokens_per_minute_max"] == counters["tokens_in"] + counters["tokens_out"]
    log = await _get(simulator, "/calls")
    assert [call["call_id"] for call in log["calls"]] == ["t/1/a/1", "t/1/b/1"]
    assert [call["nth"] for call in log["calls"]] == [0, 1]
    assert log["calls"][0]["digest"] == log["calls"][1]["digest"]
    assert log["dropped"] == 1


async def test_serve_runs_until_cancelled() -> None:
    """And frees its port, also with a call that hangs."""
    ready: asyncio.Future[Simulator] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(Behaviour(), ready=ready.set_result))
    simulator = await asyncio.wait_for(ready, 10)
    assert (await _get(simulator, "/counters"))["calls"] == 0
    task.cancel()
    await asyncio.wait([task], timeout=10)
    assert task.cancelled()
    with pytest.raises(ClientError):
        await _get(simulator, "/counters")


async def test_a_taken_port_is_an_error(endpoint: Endpoint) -> None:
    """Not a second server beside the first."""
    simulator = await endpoint(Behaviour())
    port = int(simulator.url.split(":")[2].split("/")[0])
    with pytest.raises(OSError, match="address already in use"):
        await serve(Behaviour(), port=port)
