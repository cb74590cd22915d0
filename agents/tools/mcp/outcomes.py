"""What came of a call of a tool server, in words for the model and in a word for the server's health."""

import asyncio
from dataclasses import dataclass, replace
from typing import Final

from mcp import MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    CallToolResult,
)
from pydantic import ValidationError

from agents.plain_json import scrub, words_of
from agents.ports import UNKNOWN_OUTCOME
from agents.tools.mcp.content import MAX_ERROR, content_json, error_text
from agents.tools.mcp.steady_http import BROKEN, SESSION_GONE
from streams.core.values import Json

CLOSED: Final = (CONNECTION_CLOSED, "Connection closed")
"""What the mcp package makes of calls whose connection is gone; other words are of one request only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Of a call.

    Attributes:
        output: For the model.
        error: As of :class:`agents.ports.ToolReply`.
        answered: The server answered (True) or failed (False). None: it was not asked.
        gone: Why the connection is of no use any more, where it is not.
    """

    output: Json
    error: str | None = None
    answered: bool | None
    gone: str = ""


def outcome(call: "asyncio.Task[CallToolResult]", server: str, within_s: float) -> Outcome:
    """What a call that is done came to."""
    if call.cancelled():
        return lost(server, "its transport was cancelled")
    error = call.exception()
    if error is None:
        return _result(call.result())
    if not isinstance(error, MCPError):
        # Either the result is none of the protocol, or it is not what the tool's schema promises.
        answered = not isinstance(error, ValidationError)
        return Outcome(output=f"tool server {server}: {words(error)}", error="tool_error", answered=answered)
    if error.code == REQUEST_TIMEOUT:
        return timed_out(server, within_s)
    said = str(scrub(str(error.message)[:MAX_ERROR]))
    if (error.code, error.message) == CLOSED:
        return replace(lost(server, said), gone=said)
    if error.code == SESSION_GONE:
        not_made = f"tool server {server} is not available: {said}. The call was not made."
        return Outcome(output=not_made, error="unavailable", answered=False, gone=said)
    if error.code == PARSE_ERROR:
        return lost(server, "its answer broke off")
    if error.code in (CONNECTION_CLOSED, BROKEN):
        return lost(server, said)
    answered = error.code != INTERNAL_ERROR  # that is of the server itself, or of what stands before it
    return Outcome(output=f"tool server {server}: {said}", error="tool_error", answered=answered)


def lost(server: str, why: str) -> Outcome:
    """The connection, or this one request, broke off."""
    said = f"tool server {server} went away during the call ({why or 'the connection is gone'}). "
    return Outcome(output=said + UNKNOWN_OUTCOME, error="unavailable", answered=False)


def timed_out(server: str, within_s: float) -> Outcome:
    """No result in time."""
    said = f"tool server {server} gave no result within {within_s:.1f} s. "
    return Outcome(output=said + UNKNOWN_OUTCOME, error="timeout", answered=False)


def words(error: BaseException) -> str:
    """An exception in words; of a group, its first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(scrub(f"{type(error).__name__}: {words_of(error)}"[:MAX_ERROR]))


def _result(result: CallToolResult) -> Outcome:
    if result.is_error:
        return Outcome(output=error_text(result), error="tool_error", answered=True)
    return Outcome(output=content_json(result), answered=True)
