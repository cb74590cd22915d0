"""What a tool of a server returned, as JSON for a model."""

from typing import Final

from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from agents.cut import head_and_tail
from agents.plain_json import dumps, plain, scrub
from streams.core.values import Json

MAX_BYTES: Final = 4_194_304
"""Bytes of JSON of one result; a longer one is cut head and tail where it comes in."""

MAX_ERROR: Final = 4_000
"""Characters of an error's text."""


def content_json(result: CallToolResult) -> Json:
    """The result: what is structured, else its text, else a list of its parts.

    By the specification structured content says the same as the text beside it, so that the text is
    left out. Images and sound are named by their type and size, for models are asked in text; what
    they show is left out.
    """
    if result.structured_content is not None:
        return bounded(_unwrapped(result.structured_content))
    parts = [_part(block) for block in result.content]
    if len(parts) == 1:
        return bounded(parts[0])
    if parts and all(isinstance(part, str) for part in parts):
        return bounded("\n".join(str(part) for part in parts))
    return bounded(parts)


def error_text(result: CallToolResult) -> str:
    """What a tool says of its failure."""
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    said = "\n".join(texts) or "the tool failed and does not say why"
    return str(scrub(said[:MAX_ERROR]))


def bounded(value: object) -> Json:
    """*value* as plain JSON of at most about :data:`MAX_BYTES`."""
    if isinstance(value, str) and len(value) * 6 < MAX_BYTES:  # a character is \u0000 at most
        text: str = scrub(value)
        return text
    encoded = dumps(value)
    return plain(value) if len(encoded) <= MAX_BYTES else head_and_tail(encoded, MAX_BYTES)


def _unwrapped(value: object) -> object:
    """The value of a tool that returns no object: Python's servers wrap it, as only objects were allowed."""
    return value["result"] if isinstance(value, dict) and list(value) == ["result"] else value


def _part(block: ContentBlock) -> Json:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return _left_out(block.type, block.mime_type, len(block.data))
        case ResourceLink():
            return {"link": block.uri, "name": block.name, "mime_type": block.mime_type}
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return {"uri": resource.uri, "text": resource.text}
        case EmbeddedResource(resource=BlobResourceContents() as resource):
            return _left_out(resource.uri, resource.mime_type, len(resource.blob))
    return {"left_out": "a part of a kind that is not known"}


def _left_out(what: str, mime_type: str | None, characters: int) -> Json:
    """A note in place of data in base64, four characters of which are three bytes."""
    return {"left_out": what, "mime_type": mime_type, "bytes": characters * 3 // 4}
