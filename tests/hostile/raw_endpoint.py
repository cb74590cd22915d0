"""An endpoint that writes bytes, whether they are HTTP or not."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager

JSON = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n"


def http(body: bytes, head: bytes = JSON) -> bytes:
    """A whole reply."""
    return head + b"content-length: %d\r\n\r\n%s" % (len(body), body)


def chunked(pieces: Iterable[bytes], head: bytes = JSON) -> Iterator[bytes]:
    """A reply in chunks, maybe without an end."""
    yield head + b"transfer-encoding: chunked\r\n\r\n"
    for piece in pieces:
        yield b"%x\r\n%s\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


@asynccontextmanager
async def raw_endpoint(replies: Iterable[bytes | Iterable[bytes]]) -> AsyncIterator[str]:
    """Answer one request after another with these bytes, and close after each; gives the URL."""
    left = iter(replies)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            reply = next(left)
            for piece in (reply,) if isinstance(reply, bytes) else reply:
                writer.write(piece)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.close()
