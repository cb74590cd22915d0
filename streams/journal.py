"""The journal of one attempt: every call of a model or tool, on ``transcripts`` before the agent goes on."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import orjson

from agents.ports import ModelError, ModelReply, ModelRequest, ToolCall, ToolReply
from streams.claims import check_in
from streams.core.commands import Command
from streams.core.values import NO_USAGE, Inline, Reference
from streams.delivery import Sender
from streams.topics import TRANSCRIPTS
from streams.transcript import (
    CALL_ID_CHARS,
    Asked,
    AttemptEnded,
    AttemptEvent,
    AttemptRecord,
    HandedOver,
    ModelCalled,
    ModelFailed,
    ToolCalled,
    ToolStarted,
    attempt_key,
    call_place,
)
from streams.wire.transcripts import asked, request_hash, write_transcript

RECORD_BYTES = 1_048_576
"""A record stays below this many bytes; a larger output or request goes by claim check."""


class Journal:
    """Writes one attempt's records.

    Args:
        partition: The command's partition; the journal stands on the same one.
        run: The process's own name for its life.

    Attributes:
        run: As given.
        offsets: Where the calls stand that were written here.
    """

    def __init__(self, sender: Sender, command: Command, *, partition: int, run: str) -> None:
        self._sender, self._partition = sender, partition
        self._key = attempt_key(command.job, command.task, command.attempt)
        self._names: dict[str, Any] = {
            "job": command.job,
            "task": command.task,
            "attempt": command.attempt,
            "run": run,
        }
        self.run = run
        self.offsets: list[int] = []
        self._place = call_place(command.job, command.task, command.attempt)

    async def model_called(self, n: int, seen: int, request: ModelRequest, reply: ModelReply) -> None:
        """The *n*-th model call of the attempt was answered; *seen* messages of it are recorded before."""
        await self._write(
            ModelCalled(
                **self._names,
                n=n,
                request=asked(request, seen),
                request_hash=request_hash(request),
                reply=reply,
            )
        )

    async def model_failed(
        self, n: int, request: ModelRequest, error: ModelError, *, tried: int, seen: int, decision: str
    ) -> None:
        """A try of the *n*-th model call brought no reply; *decision* says what was made of it."""
        await self._write(
            ModelFailed(
                **self._names,
                n=n,
                tried=tried,
                kind=error.kind,
                reason=error.reason,
                wait_s=error.wait_s,
                decision=decision,
                endpoint=error.endpoint,
                model=error.model,
                request=asked(request, seen),
                request_hash=request_hash(request),
                usage=error.usage or NO_USAGE,
            )
        )

    async def tool_started(self, call: ToolCall) -> None:
        """A tool that must not be called twice is about to be called."""
        await self._write(ToolStarted(**self._names, call=call))

    async def tool_called(self, call: ToolCall, reply: ToolReply) -> None:
        """A tool call ended."""
        await self._write(
            ToolCalled(
                **self._names,
                call=call,
                output=Inline(value=reply.output),
                error=reply.error,
                latency_ms=reply.latency_ms,
                shared=reply.shared,
            )
        )

    async def handed_over(self, calls: Iterable[int | str], within_s: float) -> None:
        """The lane may move while these calls are under way: models' by number, tools' by id.

        Args:
            within_s: Seconds to wait for a reply or for the next word like this.
        """
        await self._write(
            HandedOver(
                **self._names,
                model_calls=tuple(sorted(call for call in calls if isinstance(call, int))),
                tool_calls=tuple(sorted(call for call in calls if isinstance(call, str))),
                within_s=round(within_s, 3),
            )
        )

    async def ended(self, event: AttemptEvent) -> None:
        """The attempt is over, and *event* is what its job is told."""
        await self._write(AttemptEnded(**self._names, event=event))

    def call_id(self, n: int, tried: int) -> str:
        """The name, a :class:`streams.transcript.CallId`, of the *tried*-th try of the *n*-th model call."""
        text = f"{self._place}/{n}/{tried}/{self.run}"
        return text if len(text) <= CALL_ID_CHARS else ""

    async def _write(self, record: AttemptRecord) -> None:
        data = write_transcript(record)
        if len(data) > RECORD_BYTES:
            data = write_transcript(await self._lightened(record))
        offset = await self._sender.deliver(TRANSCRIPTS, data, key=self._key, partition=self._partition)
        if isinstance(record, ModelCalled | ModelFailed | ToolStarted | ToolCalled):
            self.offsets.append(offset)

    async def _lightened(self, record: AttemptRecord) -> AttemptRecord:
        """The record with its large value checked in."""
        match record:
            case ToolCalled(output=Inline(value=value)):
                return replace(record, output=await self._check_in(value))
            case ModelCalled(request=request) | ModelFailed(request=Asked() as request) if isinstance(
                request.messages, Inline
            ):
                check = await self._check_in(request.messages.value)
                return replace(record, request=replace(request, messages=check))
            case _:
                return record

    async def _check_in(self, value: object) -> Reference:
        return await check_in(
            self._sender, orjson.dumps(value), key=self._key, partition=self._partition, run=self.run
        )
