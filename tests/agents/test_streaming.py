"""Replies as streams: the whole reply, however it is cut into pieces, or an error; never a part of it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.configuration.values import Endpoint as Configured
from agents.configuration.values import ModelSettings
from agents.models.client import ChatClient
from agents.models.reading import BrokenReply, read_completion
from agents.models.streaming import Assembly, ErrorInStream, read_events
from agents.ports import ModelError, ModelReply, ModelRequest
from streams.core.values import Usage
from tests.agents.scripted_endpoint import Endpoint, Scripted, completion, endpoint, tool_call

HELLO = ModelRequest(messages=({"role": "user", "content": "hello"},))
KEY = "sk-very-secret-0123456789"
MODEL = ModelSettings(name="m", endpoint="fast", id="m")
DONE = b"data: [DONE]\n\n"
CALLS = [tool_call("c1", "search", '{"q": "a"}'), tool_call("c2", "now", "")]


def event(**fields: Any) -> bytes:
    return b"data: " + json.dumps({"id": "s1", "model": "m", **fields}, ensure_ascii=False).encode() + b"\n\n"


def delta(finish: str | None = None, **fields: Any) -> bytes:
    return event(choices=[{"index": 0, "delta": fields, "finish_reason": finish}])


def streamed(whole: dict[str, Any], size: int = 3) -> Iterator[bytes]:
    """The events that an endpoint makes of a completion, with so many characters in each."""
    (choice,) = whole["choices"]
    message = choice["message"]
    yield delta(role="assistant", content="")
    for name in ("reasoning_content", "content"):
        text = message.get(name) or ""
        for at in range(0, len(text), size):
            yield delta(**{name: text[at : at + size]})
    for index, call in enumerate(message.get("tool_calls", ())):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        head = {"index": index, "id": call["id"], "type": "function"}
        yield delta(tool_calls=[{**head, "function": {"name": name, "arguments": ""}}])
        for at in range(0, len(arguments), size):
            part = arguments[at : at + size]
            yield delta(tool_calls=[{"index": index, "function": {"arguments": part}}])
    yield delta(choice["finish_reason"])
    yield event(choices=[], usage=whole["usage"])
    yield DONE


async def put_together(pieces: Sequence[bytes]) -> ModelReply:
    """The reply in a stream that came in these pieces."""

    async def feed() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    assembly = Assembly()
    async for chunk in read_events(feed()):
        if chunk is None:
            assembly.end()
        else:
            assembly.add(chunk)
    return read_completion(assembly.completion(), model="?", sent=1, received=1)


def reply_of(*pieces: bytes) -> ModelReply:
    return asyncio.run(put_together(pieces))


texts = st.text(st.characters(codec="utf-8"), max_size=12)
call_lists = st.lists(st.tuples(texts, texts), max_size=3)
wholes = st.builds(
    lambda text, thought, calls: completion(
        text,
        calls=[tool_call(f"c{n}", name + "t", arguments) for n, (name, arguments) in enumerate(calls)],
        **({"reasoning_content": thought} if thought else {}),
    ),
    texts.map(lambda text: text + "."),
    texts,
    call_lists,
)


@given(wholes, st.integers(1, 5), st.data())
def test_any_split_of_a_stream_gives_the_same_reply(
    whole: dict[str, Any], size: int, data: st.DataObject
) -> None:
    """However the endpoint cuts it into events, and the network the events into pieces."""
    raw = b"".join(streamed(whole, size))
    end = data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"]), label="line end")
    raw = b": ping" + end + end + raw.replace(b"\n", end)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6), label="cuts"))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    expected = read_completion(whole, model="?", sent=1, received=1)
    got = reply_of(*pieces)
    assert (got.message, got.finish_reason, got.usage) == (
        expected.message,
        expected.finish_reason,
        expected.usage,
    )


@given(wholes, st.data())
def test_a_stream_cut_short_is_never_a_reply(whole: dict[str, Any], data: st.DataObject) -> None:
    """Wherever it ends, be it between two events, or behind the last one of the reply."""
    raw = b"".join(streamed(whole))
    end = data.draw(st.integers(0, len(raw) - 1))
    with pytest.raises(BrokenReply):
        reply_of(raw[:end])


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        # Every piece repeats the name; every call has index 0; no index at all; a name in two pieces.
        ([("c1", 0, "look", "{"), ("c1", 0, "look", "}")], [("c1", "look", "{}")]),
        ([("c1", 0, "a", "{}"), ("c2", 0, "b", "[]")], [("c1", "a", "{}"), ("c2", "b", "[]")]),
        ([("c1", None, "a", "{}"), ("c2", None, "b", "["), (None, None, None, "]")],
         [("c1", "a", "{}"), ("c2", "b", "[]")]),
        ([("c1", 0, "lo", ""), (None, 0, "ok", "{}")], [("c1", "look", "{}")]),
        ([("c1", 0, "a", "{"), ("c2", 1, "b", "["), (None, 0, None, "}"), (None, 1, None, "]")],
         [("c1", "a", "{}"), ("c2", "b", "[]")]),
    ],
)  # fmt: skip
def test_tool_calls_as_endpoints_send_them(
    pieces: list[tuple[Any, ...]], calls: list[tuple[str, str, str]]
) -> None:
    """One call each, in the order in which they began."""
    raw = [
        delta(
            tool_calls=[
                {
                    **({} if index is None else {"index": index}),
                    **({} if call_id is None else {"id": call_id}),
                    "function": {"name": name, "arguments": arguments},
                }
            ]
        )
        for call_id, index, name, arguments in pieces
    ]
    reply = reply_of(*raw, delta("tool_calls"), DONE)
    assert reply.message["tool_calls"] == [tool_call(*call) for call in calls]


def test_usage_where_endpoints_put_it() -> None:
    """In an event of its own, in the last choice (Moonshot), or nowhere: then it is an estimate."""
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    own = reply_of(delta(content="ok"), event(choices=[last]), event(choices=[], usage=usage), DONE)
    beside = reply_of(delta(content="ok"), event(choices=[{**last, "usage": usage}]), DONE)
    nowhere = reply_of(delta(content="ok"), event(choices=[last], usage=None), DONE)
    assert own.usage == beside.usage == Usage(calls=1, tokens_in=100, tokens_out=20)
    assert nowhere.usage.estimated == 1


def test_pieces_of_other_fields() -> None:
    """Content in parts is their text; what nobody knows is kept, to go back verbatim."""
    parts = [{"type": "thinking", "text": "?"}, {"type": "text", "text": "b"}]
    details = [{"type": "reasoning.text", "text": "x"}], [{"type": "reasoning.text", "text": "y"}]
    reply = reply_of(
        delta(content="a", reasoning_details=details[0]),
        delta(content=parts, reasoning_details=details[1], audio={"id": "z"}),
        delta("stop", role="assistant"),
        DONE,
    )
    assert reply.message == {
        "role": "assistant",
        "content": "ab",
        "reasoning_details": [*details[0], *details[1]],
        "audio": {"id": "z"},
    }


BROKEN = {
    "an event that is no JSON": b"data: {\n\n",
    "an event that is a list": b"data: []\n\n",
    "choices that are text": event(choices="x"),
    "a choice that is null": event(choices=[None]),
    "a delta that is text": event(choices=[{"delta": "x"}]),
    "tool calls that are text": delta(tool_calls="x"),
    "a tool call that is text": delta(tool_calls=["x"]),
    "a function that is a list": delta(tool_calls=[{"function": ["x"]}]),
    "arguments that are an object": delta(tool_calls=[{"function": {"name": "t", "arguments": {}}}]),
    "an id that is a number": delta(tool_calls=[{"id": 7, "function": {"name": "t"}}]),
    "no UTF-8": b"data: \xff\n\n",
    "2,000 tool calls": delta(
        tool_calls=[{"index": n, "function": {"name": "t", "arguments": ""}} for n in range(2_000)]
    ),
    "a deep piece": b'data: {"choices":[{"delta":{"x":' + b"[" * 400 + b"1" + b"]" * 400 + b"}}]}\n\n",
    "an event without an end": b"data: " + b"x" * 2_000_000,
    "a reply without an end": delta(content="x" * 300_000) * 5,
    "no finish_reason": delta(content="x") + DONE,
    "no end": delta("stop", content="x"),
    "an empty message": delta("stop") + DONE,
    "a reason of its own": delta("error", content="x") + DONE,
}


@pytest.mark.parametrize("raw", BROKEN.values(), ids=BROKEN)
def test_a_broken_stream_is_no_reply(raw: bytes) -> None:
    """And says so, whatever good ending follows."""
    good = delta(content="ok") + delta("stop") + DONE
    after = b"" if raw.endswith(DONE) or b"stop" in raw else good
    with pytest.raises(BrokenReply):
        reply_of(raw + after)


junk = st.text('{}[]":,\\n\r\t dataevnt', max_size=30).map(str.encode) | st.binary(max_size=20)


@given(wholes, st.data())
def test_any_bytes_are_a_whole_reply_or_an_error(whole: dict[str, Any], data: st.DataObject) -> None:
    """A stream with something else in it: the same reply, or none, or one with the same sort of end."""
    raw = b"".join(streamed(whole))
    at = data.draw(st.integers(0, len(raw)))
    until = data.draw(st.integers(at, min(len(raw), at + 40)))
    try:
        reply = reply_of(raw[:at] + data.draw(junk) + raw[until:])
    except (BrokenReply, ErrorInStream):
        return
    assert reply.finish_reason
    assert isinstance(reply.text, str)


@asynccontextmanager
async def client_of(
    *replies: Scripted, first_token_s: float = 20.0, stall_s: float = 20.0
) -> AsyncIterator[tuple[ChatClient, Endpoint]]:
    """A client that reads streams, and the endpoint that gives it these replies."""
    async with endpoint(replies) as served:
        configured = Configured(
            name="fast",
            base_url=served.url,
            key_variables=("FAST_KEY",),
            keys=(KEY,),
            streaming=True,
            first_token_s=first_token_s,
            stall_s=stall_s,
        )
        client = ChatClient(configured)
        try:
            yield client, served
        finally:
            await client.close()


async def ask(client: ChatClient) -> ModelReply:
    return await client.chat(HELLO, model=MODEL, key=KEY, timeout_s=20.0)


async def fails(client: ChatClient) -> ModelError:
    with pytest.raises(ModelError) as raised:
        await ask(client)
    assert KEY not in raised.value.reason
    assert (raised.value.endpoint, raised.value.model) == ("fast", "m")
    return raised.value


async def test_a_stream_is_a_reply_like_any_other() -> None:
    """With the time of its first piece; one connection serves one call after the other."""
    whole = completion("grüße", calls=CALLS, reasoning_content="first A")
    label = {"x-anabranch-simulated": "1", "x-request-id": "req-7"}
    once = Scripted(pieces=list(streamed(whole)), headers=label)
    async with client_of(once) as (client, served):
        reply = await ask(client)
        assert (await ask(client)).message == reply.message
        assert len(served.connections) == 1
    assert reply.message == {
        "role": "assistant",
        "content": "grüße",
        "reasoning_content": "first A",
        "tool_calls": CALLS,
    }
    assert (reply.finish_reason, reply.usage.tokens_in, reply.usage.tokens_out) == ("tool_calls", 100, 20)
    assert (reply.model, reply.endpoint, reply.request_id, reply.simulated) == ("m", "fast", "req-7", True)
    assert reply.first_token_ms is not None
    assert 0 < reply.first_token_ms <= reply.latency_ms
    assert served.bodies[0]["stream"] is True
    assert served.bodies[0]["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("pieces", "says"),
    [
        ([b": processing\n\n"], "no piece of a reply within"),
        ([delta(role="assistant", content="")], "no piece of a reply within"),
    ],
)
async def test_a_stream_that_never_begins(pieces: list[bytes], says: str) -> None:
    """Signs of life are no pieces of a reply."""
    async with client_of(Scripted(pieces=pieces, hang=True), first_token_s=0.05) as (client, _):
        error = await fails(client)
    assert (error.kind, error.retry) == ("timeout", True)
    assert says in error.reason


async def test_a_stream_that_hangs() -> None:
    """It is ended, and may be tried again."""
    begun = list(streamed(completion("half of it")))[:3]
    async with client_of(Scripted(pieces=begun, hang=True), stall_s=0.05) as (client, _):
        error = await fails(client)
    assert (error.kind, error.retry) == ("timeout", True)
    assert "the stream hangs: after 2 pieces none came for 0.05 s" in error.reason


async def test_an_endpoint_that_does_not_close_its_stream() -> None:
    """What stands behind the end is not waited for long."""
    async with client_of(Scripted(pieces=list(streamed(completion())), hang=True)) as (client, _):
        assert (await ask(client)).text == "ok"


async def test_streams_that_are_none(subtests: pytest.Subtests) -> None:
    """An error, a whole reply, a web page, half a stream: each is what it is, whatever was asked for."""
    begun = list(streamed(completion("half of it")))[:3]
    cases: dict[str, tuple[Scripted, str]] = {
        "a cut connection": (Scripted(pieces=begun, cut=True), "connection"),
        "a clean end without an end": (Scripted(pieces=begun), "malformed"),
        "nothing": (Scripted(body=""), "malformed"),
        "blanks": (Scripted(body=" \n" * 9), "malformed"),
        "an error event": (
            Scripted(pieces=[*begun, b'event: error\ndata: {"message": "overloaded"}\n\n']),
            "overloaded",
        ),
        "an error in a chunk": (
            Scripted(pieces=[*begun, event(error={"code": 429, "message": "slow down"})]),
            "rate_limited",
        ),
        "an error at once": (Scripted(status=401, body={"error": {"message": "no"}}), "bad_key"),
        "a web page": (Scripted(body="<html>login</html>", content_type="text/html"), "misconfigured"),
        "an error in a whole reply": (Scripted(body={"error": {"type": "server_error"}}), "server_error"),
    }
    async with client_of(*(scripted for scripted, _ in cases.values())) as (client, _):
        for name, (_, kind) in cases.items():
            error = await fails(client)
            with subtests.test(name):
                assert error.kind == kind


async def test_a_whole_reply_though_a_stream_was_asked_for() -> None:
    """It is read; there was no first piece."""
    async with client_of(Scripted(body=completion()), Scripted(pieces=[b"\n", b'{"choices"', b":[]}"])) as (
        client,
        _,
    ):
        reply = await ask(client)
        assert (reply.text, reply.first_token_ms) == ("ok", None)
        assert (await fails(client)).kind == "malformed"
