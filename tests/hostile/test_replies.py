"""Whatever an endpoint sends: the call has a reply that the journal can hold, or an error that says why."""

import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import repeat
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.conversation import Conversation
from agents.models.client import MAX_REPLY_BYTES
from agents.models.faults import RETRY, provider_words
from agents.models.one_model import OneModel
from agents.models.waits import wait_of
from agents.ports import ModelError, ModelReply, ModelRequest
from streams.core.values import Usage
from streams.wire.envelope import dump
from streams.wire.transcripts import DEPTH
from tests.agents.scripted_endpoint import Scripted, completion, endpoint, tool_call
from tests.hostile.raw_endpoint import JSON, chunked, http, raw_endpoint

HELLO = ModelRequest(messages=({"role": "user", "content": "hello"},))
KEY = "sk-very-secret-0123456789"
DEEP = b"[" * 900 + b"]" * 900
EVENTS = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n"
ZIPPED = JSON + b"content-encoding: gzip\r\n"
MOVED = JSON.replace(b"200 OK", b"307 Moved") + b"location: http://127.0.0.1:9/v1/chat/completions\r\n"


def whole(**fields: Any) -> bytes:
    return orjson.dumps(completion() | fields)


def saying(**message: Any) -> bytes:
    """A completion whose message has these fields."""
    return whole(choices=[{"finish_reason": "stop", "message": {"role": "assistant", **message}}])


ENDLESS = chunked(repeat(b" " * 65_536))


BROKEN: dict[str, tuple[Any, str]] = {
    "no HTTP": (b"\x00\x01\x02 what?\r\n\r\n", "connection"),
    "nothing": (b"", "connection"),
    "a header without an end": (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000, "connection"),
    "fewer bytes than said": (http(whole())[:-9], "connection"),
    "more bytes than said": (http(whole()).replace(b"length: 2", b"length: 1"), "connection"),
    "a broken chunk": (b"".join(chunked([whole()])).replace(b"\r\n0\r\n\r\n", b"\r\nzz\r\n"), "connection"),
    "no gzip": (http(whole(), ZIPPED), "connection"),
    "half a gzip": (http(gzip.compress(whole())[:-20], ZIPPED), "malformed"),
    "a body without an end": (ENDLESS, "malformed"),
    "a bomb of gzip": (http(gzip.compress(bytes(200_000_000), 1), ZIPPED), "malformed"),
    "a redirect": (http(b"", MOVED), "misconfigured"),
    "a stream of events": (http(b'data: {"choices":[]}\n\ndata: [DONE]\n\n', EVENTS), "malformed"),
    "half of its JSON": (http(whole()[:-9]), "malformed"),
    "UTF-16": (http(whole().decode().encode("utf-16")), "malformed"),
    "no UTF-8": (http(whole().replace(b"ok", b"\xff\xfe")), "malformed"),
    "half a character": (http(whole().replace(b"ok", b"\\ud800")), "malformed"),
    "not a number": (http(whole().replace(b"100", b"NaN")), "malformed"),
    "a number without an end": (http(whole().replace(b"100", b"1" + b"0" * 5_000)), "malformed"),
    "100,000 levels": (http(b"[" * 100_000), "malformed"),
    "a deep message": (http(saying(content="ok").replace(b'"ok"', b'"ok","x":' + DEEP)), "malformed"),
    "content that is a number": (http(saying(content=7)), "malformed"),
    "content that is an object": (http(saying(content={"text": "ok"})), "malformed"),
    "parts that are none": (http(saying(content=["ok"])), "malformed"),
    "a part whose text is none": (http(saying(content=[{"type": "text", "text": 7}])), "malformed"),
    "parts without text": (http(saying(content=[{"type": "image", "text": "x"}])), "malformed"),
    "tool calls that are an object": (http(saying(tool_calls={})), "malformed"),
    "tool calls that are text": (http(saying(tool_calls="")), "malformed"),
    "tool calls that are 0": (http(saying(tool_calls=0)), "malformed"),
    "a tool call that is null": (http(saying(tool_calls=[None])), "malformed"),
    "a function that is text": (http(saying(tool_calls=[{"function": "x"}])), "malformed"),
    "an id that is a list": (http(saying(tool_calls=[tool_call("c", "t", "{}") | {"id": [1]}])), "malformed"),
    "an id of 10 KB": (http(saying(tool_calls=[tool_call("c" * 10_240, "t", "{}")])), "malformed"),
    "2,000 tool calls": (http(saying(tool_calls=[tool_call("c", "t", "{}")] * 2_000)), "malformed"),
    "it broke off": (
        http(whole(choices=[{"finish_reason": "error", "message": {"content": "half"}}])),
        "malformed",
    ),
    "a reason that is a list": (
        http(whole(choices=[{"finish_reason": ["stop"], "message": {"content": "x"}}])),
        "malformed",
    ),
    "choices that are an object": (http(whole(choices={"0": 1})), "malformed"),
    "a choice that is null": (http(whole(choices=[None])), "malformed"),
    "a deep error": (http(b'{"error":{"message":%s}}' % DEEP), "server_error"),
    "a deep type of error": (http(b'{"error":{"type":%s,"code":{}}}' % DEEP), "server_error"),
    "an error of a megabyte": (http(b'{"error":{"message":"%s"}}' % (b"exceed" * 160_000)), "server_error"),
}


@asynccontextmanager
async def client_at(url: str) -> AsyncIterator[OneModel]:
    client = OneModel(base_url=url, api_key=KEY, model="m")
    try:
        yield client
    finally:
        await client.close()


async def test_a_broken_reply_is_an_error_that_says_so(subtests: pytest.Subtests) -> None:
    """Of a known kind, in few words, and without the key."""
    replies = [reply for reply, _ in BROKEN.values()]
    async with raw_endpoint(replies) as url, client_at(url) as client:  # to make a client takes 0.1 s
        for name, (_, kind) in BROKEN.items():
            with pytest.raises(ModelError) as raised:
                await client.chat(HELLO, timeout_s=20)
            with subtests.test(name):
                assert (raised.value.kind, raised.value.retry) == (kind, RETRY[kind])
                assert len(raised.value.reason) < 700
                assert url in raised.value.reason
                assert KEY not in raised.value.reason


async def replies_to(*bodies: bytes) -> list[ModelReply]:
    scripted = [Scripted(body=body.decode()) for body in bodies]
    async with endpoint(scripted) as served, client_at(served.url) as client:
        return [await client.chat(HELLO, timeout_s=20) for _ in bodies]


async def test_content_in_parts_is_their_text() -> None:
    """An empty result would look like success: some endpoints send a list where others send text."""
    parts = [{"type": "text", "text": "a"}, {"type": "thinking", "text": "?"}, {"type": "text", "text": "b"}]
    (reply,) = await replies_to(saying(content=parts))
    assert reply.text == "ab"


async def test_whoever_speaks_is_the_assistant() -> None:
    """Another role would go back to the endpoint as somebody else's words."""
    (reply,) = await replies_to(saying(content="x", role="system"))
    assert reply.message["role"] == "assistant"


async def test_a_reply_that_ended_at_its_limit_is_cut_off() -> None:
    """In whichever word of whichever provider."""
    words = ["length", "max_tokens", "MAX_TOKENS", "model_length"]
    bodies = [whole(choices=[{"finish_reason": word, "message": {"content": "half"}}]) for word in words]
    assert {reply.finish_reason for reply in await replies_to(*bodies)} == {"length"}


NO_USAGE: list[Any] = [
    None,
    [],
    "many",
    {"prompt_tokens": -1, "completion_tokens": 1},
    {"prompt_tokens": True, "completion_tokens": 1},
    {"prompt_tokens": 2**63, "completion_tokens": 2**63},
    {"prompt_tokens": 1.5, "completion_tokens": 1},
    {"prompt_tokens": "1", "completion_tokens": 1},
]


async def test_usage_that_is_none_is_estimated() -> None:
    replies = await replies_to(*(whole(usage=usage) for usage in NO_USAGE))
    assert [reply.usage.estimated for reply in replies] == [1] * len(NO_USAGE)


async def test_details_of_usage_that_are_none_count_nothing() -> None:
    told = {"prompt_tokens": 9, "completion_tokens": 1}
    wrong: list[Any] = [[1], "x", {"cached_tokens": -5}, {"cached_tokens": True}, {}, 0]
    replies = await replies_to(*(whole(usage=told | {"prompt_tokens_details": each}) for each in wrong))
    assert {reply.usage for reply in replies} == {Usage(calls=1, tokens_in=9, tokens_out=1)}


async def test_names_that_are_none_are_left_out() -> None:
    """The model that was asked is the model that answered; an id is none."""
    names: list[Any] = [7, ["m"], "m" * 300, "", None]
    replies = await replies_to(*(whole(model=name, id=name) for name in names))
    assert {(reply.model, reply.request_id) for reply in replies} == {("m", "")}


async def test_the_largest_reply_fits_the_journal() -> None:
    """However its numbers are written: 1e15 has four bytes, and 18 once it is written again."""
    numbers = b",".join(repeat(b"1e15", (MAX_REPLY_BYTES - 500) // 5))
    body = saying(content="ok").replace(b'"ok"', b'"ok","x":[' + numbers + b"]")
    assert MAX_REPLY_BYTES - 1_000 < len(body) <= MAX_REPLY_BYTES
    assert len(dump(dict((await replies_to(body))[0].message), depth=DEPTH)) < 4_100_000


def test_a_thousand_calls_under_one_id_have_each_their_own() -> None:
    calls = [tool_call("c", "t", "{}")] * 1_000
    reply = ModelReply(message={"tool_calls": calls}, finish_reason="stop", usage=Usage(), model="m")
    assert len({call.id for call in Conversation(()).take_turn(reply)}) == 1_000


WORDS = st.text() | st.sampled_from(
    [
        "retry after " + "9" * 5_000 + "h",
        "try again in " + "1" * 100_000,
        "wait for 99999999999999999999 hours",
        "try again in 1." + "1" * 100_000 + "s",
        "exceed" * 10_000,
    ]
)
HEADERS = st.dictionaries(
    st.sampled_from(["retry-after", "retry-after-ms", "date"]),
    st.text(max_size=30)
    | st.sampled_from(
        [
            "nan",
            "-inf",
            "1e999",
            "9" * 5_000,
            "Wed, 21 Oct 2026 07:28:30 +99999999999999999999",
            "Wed, 21 Oct 99999 07:28:30 GMT",
            "Wed, 00 Oct 2026 99:99:99 GMT",
            "Mon, 01 Jan 0001 00:00:00 +1400",
            ", , , ,",
        ]
    ),
)


@given(HEADERS, WORDS)
def test_a_wait_is_a_number_of_seconds_or_none(headers: dict[str, str], words: str) -> None:
    found = wait_of(headers, words)
    assert found is None or found >= 0


WORD = st.sampled_from(["error", "type", "code", "message", "detail"])
ERRORS = st.recursive(
    st.none() | st.text() | st.integers(0, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORD, inner),
)


@given(st.binary() | ERRORS.map(orjson.dumps))
def test_the_words_of_an_error_are_words(content: bytes) -> None:
    kind, words = provider_words(content)
    assert isinstance(words, str)
    assert kind is None or isinstance(kind, str)
