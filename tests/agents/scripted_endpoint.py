"""A real HTTP endpoint that answers chat requests with given replies, in order."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web
from aiohttp.test_utils import TestServer


@dataclass(frozen=True, kw_only=True)
class Scripted:
    """One HTTP reply. A body that is text goes out as it is, anything else as JSON.

    With *pieces* it is a stream of these; *cut* and *hang* then come after them.
    """

    status: int = 200
    body: Any = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    cut: bool = False
    hang: bool = False
    pieces: Sequence[bytes] = ()


@dataclass(kw_only=True)
class Endpoint:
    """A running endpoint: its URL, and the requests it got."""

    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    connections: set[object] = field(default_factory=set)


async def stream(request: web.Request, reply: Scripted) -> web.StreamResponse:
    """Send a reply piece by piece."""
    kind = "text/event-stream" if reply.content_type == "application/json" else reply.content_type
    response = web.StreamResponse(status=reply.status, headers={**reply.headers, "content-type": kind})
    await response.prepare(request)
    for piece in reply.pieces:
        await response.write(piece)
    if reply.hang:
        await asyncio.Event().wait()
    if reply.cut:
        assert request.transport is not None
        request.transport.abort()
    else:
        await response.write_eof()
    return response


@asynccontextmanager
async def endpoint(replies: Sequence[Scripted]) -> AsyncIterator[Endpoint]:
    """Serve the replies in order, the last one for ever."""
    left = list(replies)
    seen = Endpoint()

    async def chat(request: web.Request) -> web.StreamResponse:
        seen.bodies.append(orjson.loads(await request.read()))
        seen.headers.append(dict(request.headers))
        seen.connections.add(request.transport)
        reply = left.pop(0) if len(left) > 1 else left[0]
        if reply.pieces:
            return await stream(request, reply)
        if reply.hang:
            await asyncio.Event().wait()
        body = reply.body.encode() if isinstance(reply.body, str) else orjson.dumps(reply.body)
        if reply.cut:
            response = web.StreamResponse(headers={"content-length": str(len(body) + 10)})
            await response.prepare(request)
            await response.write(body)
            assert request.transport is not None
            request.transport.abort()
            return response
        return web.Response(
            status=reply.status, body=body, headers=reply.headers, content_type=reply.content_type
        )

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    server = TestServer(app, handler_cancellation=True)
    await server.start_server()
    seen.url = str(server.make_url("/v1"))
    try:
        yield seen
    finally:
        await server.close()


def completion(
    content: str | None = "ok",
    *,
    calls: Sequence[Mapping[str, Any]] = (),
    finish: str | None = None,
    usage: Any = "default",
    **message: Any,
) -> dict[str, Any]:
    """A chat completion as an endpoint sends it."""
    said: dict[str, Any] = {"role": "assistant", "content": content, **message}
    if calls:
        said["tool_calls"] = list(calls)
    if usage == "default":
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": finish or ("tool_calls" if calls else "stop"), "message": said}
        ],
        "usage": usage,
    }


def tool_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """A tool call as a model asks for it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
