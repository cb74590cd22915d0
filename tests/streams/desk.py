"""One attempt under way, alone with its journal on the log in memory."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agents.ports import ModelError, ModelReply, ModelRequest, ToolCall, ToolReply
from streams.attempt import RunningAttempt
from streams.claims import Resolver
from streams.core.events import Event
from streams.core.values import JobId, Json, Usage
from streams.delivery import Sender
from streams.journal import Journal
from streams.memory_log import NO_FAULTS, Faults, MemoryCluster
from streams.past import Past
from streams.redaction import NO_SECRETS, Redactor
from streams.slots import Slots
from streams.standing import Standing
from streams.topics import TRANSCRIPTS
from streams.wire.transcripts import read_transcript
from tests.streams.lanes_in_memory import sub_task

LOOK = ToolCall(id="c1", name="look", arguments='{"at": 1}')


def user(text: str) -> dict[str, Json]:
    return {"role": "user", "content": text}


def asks(*messages: dict[str, Json], **request: Any) -> ModelRequest:
    return ModelRequest(messages=list(messages), **request)


def says(text: str, *, after_s: float = 1.0) -> Callable[[ModelRequest, float], Awaitable[ModelReply]]:
    """A model that says so."""

    async def call(request: ModelRequest, timeout_s: float) -> ModelReply:
        await asyncio.sleep(after_s)
        usage = Usage(calls=1, tokens_in=7)
        return ModelReply(
            message={"role": "assistant", "content": text}, finish_reason="stop", usage=usage, model="m"
        )

    return call


async def fails(request: ModelRequest, timeout_s: float) -> ModelReply:
    """A model that is overloaded."""
    raise ModelError("overloaded", "529", retry=True, wait_s=3.0)


async def refuses(request: ModelRequest, timeout_s: float) -> ModelReply:
    """A model that will never answer this."""
    raise ModelError("content_filter", "no", retry=False)


def tool(output: Json, *, error: str | None = None) -> Callable[[float], Awaitable[ToolReply]]:
    """A tool that returns so."""

    async def call(timeout_s: float) -> ToolReply:
        return ToolReply(output=output, error=error, latency_ms=2.5)

    return call


class Desk:
    """One attempt under way and its journal. To be made inside the running loop."""

    def __init__(
        self,
        *,
        timeout_s: float = 100.0,
        slots: int = 1,
        faults: Faults = NO_FAULTS,
        before: "Desk | None" = None,
        redactor: Redactor = NO_SECRETS,
    ) -> None:
        """Begin an attempt, or with *before* go on with the one there as another worker would."""
        self.cluster: MemoryCluster = (
            before.cluster if before else MemoryCluster({TRANSCRIPTS: 2}, faults=faults)
        )
        self.log = self.cluster.connect("worker")
        self.slots = Slots(lambda: slots)
        self.told: list[Event] = []
        self.submitted: list[JobId] = []
        self.takes_s = 0.0
        command = sub_task("t", attempt=3, timeout_s=timeout_s)
        self.run: str = f"run-{int(before.run[4:]) + 1 if before else 1}"
        journal = Journal(Sender(self.log.producer), command, partition=1, run=self.run)
        self.past = Past()
        for record in self.cluster.records(TRANSCRIPTS, 1):
            self.past.add(record)
        self.standing = Standing(6.0, lambda: 0.0, lambda: None)
        self.standing.heard(0.0)
        self.standing.take([0, 1], 1)
        self.attempt = RunningAttempt(
            command,
            journal,
            self.slots,
            self.standing,
            past=self.past,
            resolver=Resolver(self.log),
            chance=lambda: 0.25,
            tell=self._tell,
            submit=self._submit,
            redactor=redactor,
        )

    async def _tell(self, event: Event) -> None:
        await asyncio.sleep(self.takes_s)
        self.told.append(event)

    async def _submit(self, job: JobId, _: bytes) -> None:
        self.submitted.append(job)

    def journal(self) -> Sequence[Any]:
        """What is on it by now."""
        return [read_transcript(record) for record in self.cluster.records(TRANSCRIPTS, 1)]
