"""Replies that come as a stream: the pieces put together into the whole reply that they are.

Server-sent events as OpenAI's chat API sends them
(https://platform.openai.com/docs/api-reference/chat-streaming), decoded by the decoder of the openai
client. Its ``AsyncStream`` is not used: it makes a pydantic model of each piece, ends without a word
where the stream does, and knows no deadline but one for each read.
"""

from collections.abc import AsyncIterator
from typing import Any, Final

import orjson
from openai._streaming import SSEDecoder

from agents.models.reading import MAX_CALLS, BrokenReply

MAX_STREAM_BYTES: Final = 67_108_864
"""Bytes of one stream; each token comes wrapped in 200 to 400 bytes, of which nothing is kept."""

MAX_EVENT_BYTES: Final = 1_048_576
"""Bytes of one event, which are held until it ends."""

MAX_TEXT: Final = 1_048_576
"""Characters of all pieces together."""

DRAIN_S: Final = 0.5
"""Seconds that a stream may take to close behind its end, so that the connection can be used again."""

DONE: Final = "[DONE]"

_NOT_JOINED: Final = frozenset({"role", "tool_calls"})


class ErrorInStream(Exception):
    """The endpoint says in the middle of a stream that there will be no reply.

    Attributes:
        content: The event, JSON as the body of an error has it.
    """

    def __init__(self, content: bytes) -> None:
        super().__init__("an error in the stream")
        self.content = content


async def read_events(pieces: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any] | None]:
    """The events of a stream, and None for the one that ends it.

    Raises:
        BrokenReply: it is too long, or an event is no JSON object.
        ErrorInStream: an event is an error.
    """
    since = _Since(pieces)
    try:
        async for event in SSEDecoder().aiter_bytes(since.pieces()):
            since.bytes = 0
            data = event.data.strip()
            if not data:
                continue
            if data == DONE:
                yield None
                continue
            try:
                chunk = orjson.loads(data)
            except orjson.JSONDecodeError:
                raise BrokenReply(f"an event of {len(data)} characters that is no JSON") from None
            if event.event == "error" or (isinstance(chunk, dict) and chunk.get("error")):
                raise ErrorInStream(data.encode())
            if not isinstance(chunk, dict):
                raise BrokenReply("an event that is no JSON object")
            yield chunk
    except UnicodeDecodeError:
        raise BrokenReply("bytes that are no UTF-8") from None


async def sniffed(pieces: AsyncIterator[bytes]) -> tuple[bool, AsyncIterator[bytes]]:
    """Whether this is a stream of events, by its first characters, and its pieces.

    An endpoint that answers with a whole JSON, or with a web page, though a stream was asked for, is
    read as what it sent, whatever its headers say of it.

    Raises:
        BrokenReply: it begins with more blanks than any reply has characters.
    """
    head = bytearray()
    async for piece in pieces:
        head += piece
        if not piece.isspace() and piece:
            break
        if len(head) > MAX_EVENT_BYTES:
            raise BrokenReply(f"more than {MAX_EVENT_BYTES} bytes")

    async def all_pieces() -> AsyncIterator[bytes]:
        yield bytes(head)
        async for piece in pieces:
            yield piece

    begins = bytes(head.lstrip()[:1])
    return bool(begins) and begins not in b"{[<", all_pieces()


class _Since:
    """Counts what came, since the decoder bounds nothing.

    Attributes:
        bytes: Bytes since the last event.
    """

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self.bytes = 0

    async def pieces(self) -> AsyncIterator[bytes]:
        """The pieces as they came."""
        total = 0
        async for piece in self._pieces:
            total += len(piece)
            self.bytes += len(piece)
            if total > MAX_STREAM_BYTES:
                raise BrokenReply(f"a stream of more than {MAX_STREAM_BYTES} bytes")
            if self.bytes > MAX_EVENT_BYTES:
                raise BrokenReply(f"an event of more than {MAX_EVENT_BYTES} bytes")
            yield piece


class Assembly:
    """A reply that is being put together.

    Attributes:
        brought: Events that brought something of it.
        ended: The endpoint said that this was all.
    """

    def __init__(self) -> None:
        self.brought = 0
        self.ended = False
        self._head: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}
        self._values: dict[str, Any] = {}
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._finish_reason: Any = None
        self._usage: Any = None
        self._characters = 0

    def add(self, chunk: dict[str, Any]) -> bool:
        """Add an event. Whether it brought anything of the reply: words, a call, its end or its usage.

        Raises:
            BrokenReply: it is no piece of a reply, or all of them are too much.
        """
        for name in ("id", "model"):
            if isinstance(chunk.get(name), str):
                self._head.setdefault(name, chunk[name])
        brought = self._take_usage(chunk)
        choices = chunk.get("choices") or []
        if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
            raise BrokenReply("choices that are no list of objects")
        for choice in choices:
            if choice.get("index") not in (0, None):
                continue  # one was asked for
            brought |= self._take_usage(choice)  # where Moonshot puts it
            if choice.get("finish_reason") is not None:
                self._finish_reason = choice["finish_reason"]
                brought = True
            delta = choice.get("delta")
            if delta is None:
                continue
            if not isinstance(delta, dict):
                raise BrokenReply("a delta that is no object")
            brought |= self._take(delta)
        self.brought += brought
        return brought

    def end(self) -> None:
        """The endpoint says that this was all."""
        self.ended = True

    def completion(self) -> dict[str, Any]:
        """The whole reply, as an endpoint that does not stream has it.

        Raises:
            BrokenReply: the model or the endpoint has not ended it, so it may be cut off.
        """
        if self._finish_reason is None:
            raise BrokenReply("a stream that ended before its reply did: it has no finish_reason")
        if not self.ended:
            raise BrokenReply(f"a stream that was cut off: it has no {DONE}")
        message = {name: "".join(texts) for name, texts in self._texts.items()} | self._values
        if self._calls:
            message["tool_calls"] = [call.whole() for call in self._calls]
        choice = {"index": 0, "message": message, "finish_reason": self._finish_reason}
        return {**self._head, "choices": [choice], "usage": self._usage}

    def _take_usage(self, said: dict[str, Any]) -> bool:
        if not isinstance(said.get("usage"), dict):
            return False
        self._usage = said["usage"]
        return True

    def _take(self, delta: dict[str, Any]) -> bool:
        brought = False
        for name, value in delta.items():
            if name in _NOT_JOINED or value is None or value in ("", []):
                continue
            brought = True
            self._count(value)
            if isinstance(value, str):
                self._texts.setdefault(name, []).append(value)
            elif name == "content" and isinstance(value, list):
                self._texts.setdefault(name, []).extend(_texts(value))
            elif isinstance(value, list) and isinstance(self._values.get(name), list):
                self._values[name] += value
            else:
                self._values[name] = value
        calls = delta.get("tool_calls") or []
        if not isinstance(calls, list):
            raise BrokenReply("tool_calls that are no list")
        for call in calls:
            self._take_call(call)
            brought = True
        return brought

    def _take_call(self, piece: Any) -> None:
        """A piece of a tool call goes to the call of its index, else to the last one.

        Some endpoints give every call the same index, or none, and say that another begins by its id.
        """
        if not isinstance(piece, dict):
            raise BrokenReply("a piece of a tool call that is no object")
        index, said = piece.get("index"), piece.get("id")
        if isinstance(index, int):
            call = self._by_index.get(index)
        else:
            call = self._calls[-1] if self._calls else None
        if call is None or (said and call.id and said != call.id):
            if len(self._calls) == MAX_CALLS:
                raise BrokenReply(f"more than {MAX_CALLS} tool calls")
            call = _Call()
            self._calls.append(call)
            if isinstance(index, int):
                self._by_index[index] = call
        self._count(piece)
        call.add(piece)

    def _count(self, piece: Any) -> None:
        try:
            self._characters += len(piece) if isinstance(piece, str) else len(orjson.dumps(piece))
        except TypeError:
            raise BrokenReply("a piece that is nested too deep") from None
        if self._characters > MAX_TEXT:
            raise BrokenReply(f"a reply of more than {MAX_TEXT} characters")


def _texts(parts: list[Any]) -> list[str]:
    """The text of content in parts; parts that are not said to be text, such as thoughts, have none."""
    texts = [part for part in parts if isinstance(part, dict) and part.get("type") in ("text", "output_text")]
    return [text for part in texts if isinstance(text := part.get("text"), str)]


class _Call:
    """A tool call that is being put together."""

    def __init__(self) -> None:
        self.id = ""
        self._kept: dict[str, Any] = {"type": "function"}
        self._name = ""
        self._arguments: list[str] = []

    def add(self, piece: dict[str, Any]) -> None:
        """Add a piece.

        Raises:
            BrokenReply: it is none.
        """
        self._kept |= {
            name: value
            for name, value in piece.items()
            if name not in ("index", "function", "id") and value is not None
        }
        said = piece.get("id")
        if said is not None and not isinstance(said, str):
            raise BrokenReply("a tool call whose id is no text")
        self.id = self.id or said or ""
        function = piece.get("function") or {}
        if not isinstance(function, dict):
            raise BrokenReply("a tool call whose function is no object")
        name = "" if function.get("name") is None else function["name"]
        arguments = "" if function.get("arguments") is None else function["arguments"]
        if not isinstance(name, str) or not isinstance(arguments, str):
            raise BrokenReply("a tool call whose name or arguments are no text")
        if name != self._name:  # some repeat it in every piece
            self._name += name
        self._arguments.append(arguments)

    def whole(self) -> dict[str, Any]:
        """The call as a reply has it."""
        function = {"name": self._name, "arguments": "".join(self._arguments)}
        return {"id": self.id, **self._kept, "function": function}
