"""The journal: what each attempt did, call by call, and the chunks of values too large for a record.

These are the records of ``transcripts``. Together those of one attempt are enough to go on from
its last reply without making any call again, to send its event again, and to explain afterwards
how it came to its result. ``run`` names the worker's life that wrote the record, ``at`` and
``offset`` say where it stands; as with events the reader sets these two.
"""

import re
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote, unquote

from agents.ports import ModelReply, ToolCall
from streams.core.events import Planned, SubTaskFailed, SubTaskSucceeded, SubTaskSuspended
from streams.core.values import NO_USAGE, JobId, TaskId, Usage, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was new in a request to a model.

    Attributes:
        seen: Messages of the request that the attempt's last call had already sent or received;
            they are left out.
        messages: The messages after those (a JSON list).
        tools: Names of the tools offered.
        max_tokens: Output tokens at most.
        json_object: A JSON object was asked for.
        model: The model asked for, or None for the configured one.
    """

    seen: int
    messages: Value
    tools: tuple[str, ...] = ()
    max_tokens: int = 0
    json_object: bool = False
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalled:
    """A model replied.

    Attributes:
        n: Which call of this attempt, from 1; tries that brought no reply do not count.
        request_hash: SHA-256 of the whole request, by which a repeated run knows its own call.
    """

    job: JobId
    task: TaskId
    attempt: int
    run: str
    n: int
    request: Asked
    request_hash: str
    reply: ModelReply
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailed:
    """A model call brought no reply.

    Attributes:
        n: Which call of this attempt, from 1.
        tried: Which try of that call, from 1.
        kind: The kind of :class:`~agents.ports.ModelError`, one word.
        wait_s: Seconds the provider asked to wait, or None.
        decision: What was made of it, one word: ``retry``, ``elsewhere``, ``endpoint_out``,
            ``give_up`` or ``fatal``.
        endpoint: The configured name of the endpoint asked; empty in records of before it was kept.
        model: The configured name of the model asked, likewise.
        request: What was asked; None in records of before it was kept.
        request_hash: SHA-256 of the whole request.
        usage: What it may have cost all the same, an estimate and marked so.
    """

    job: JobId
    task: TaskId
    attempt: int
    run: str
    n: int
    tried: int
    kind: str
    reason: str
    wait_s: float | None = None
    decision: str = ""
    endpoint: str = ""
    model: str = ""
    request: Asked | None = None
    request_hash: str = ""
    usage: Usage = NO_USAGE
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    """A call of a tool marked ``once`` is about to be made: without a ToolCalled its outcome is unknown."""

    job: JobId
    task: TaskId
    attempt: int
    run: str
    call: ToolCall
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """A tool call ended.

    Attributes:
        output: What it returned, or the error's text for the model.
        error: As of :class:`~agents.ports.ToolReply`.
        latency_ms: Milliseconds the call took.
        shared: It is the result of an equal call of the same job; False in records of before it was kept.
    """

    job: JobId
    task: TaskId
    attempt: int
    run: str
    call: ToolCall
    output: Value
    error: str | None = None
    latency_ms: float = 0.0
    shared: bool = False
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """A lane may move with calls of this attempt under way; their replies still follow.

    Said again every few seconds as long as that is so. One that names no calls takes it back: the
    lane has not moved.

    Attributes:
        model_calls: The calls of models under way, by ``n``.
        tool_calls: The calls of tools under way, by id.
        within_s: Seconds to wait for a reply or for the next word; after that none follows any more.
    """

    job: JobId
    task: TaskId
    attempt: int
    run: str
    model_calls: tuple[int, ...] = ()
    tool_calls: tuple[str, ...] = ()
    within_s: float = 0.0
    at: int = 0
    offset: int = -1


AttemptEvent: TypeAlias = Planned | SubTaskSucceeded | SubTaskFailed | SubTaskSuspended


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded:
    """An attempt is over, or waits for somebody outside.

    Attributes:
        event: The event that says so on ``job-events``, to be sent again as often as is asked.
    """

    job: JobId
    task: TaskId
    attempt: int
    run: str
    event: AttemptEvent
    at: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChunk:
    """A piece of a value that is too large for a record.

    Attributes:
        digest: SHA-256 of the whole value's JSON, in hexadecimal.
        index: Which piece, from 0.
        count: How many pieces there are.
        data: A piece of the value's JSON, as text.
    """

    run: str
    digest: str
    index: int
    count: int
    data: str
    at: int = 0
    offset: int = -1


AttemptRecord: TypeAlias = ModelCalled | ModelFailed | ToolStarted | ToolCalled | HandedOver | AttemptEnded
TranscriptRecord: TypeAlias = AttemptRecord | ValueChunk


def attempt_key(job: JobId, task: TaskId, attempt: int) -> bytes:
    """The key of an attempt's records on ``subtasks`` and ``transcripts``."""
    return f"{job}/{task}/{attempt}".encode()


def attempt_of(key: bytes | None) -> tuple[JobId, TaskId, int] | None:
    """Job, sub-task and attempt that such a key names, as of :func:`attempt_key`; None for other keys."""
    named = _ATTEMPT_KEY.fullmatch((key or b"").decode(errors="replace"))
    return None if named is None else (named[1], named[2], int(named[3]))


_ATTEMPT_KEY = re.compile(r"([^/]+/[^/]+)/([^/]+)/([1-9][0-9]{0,5})")


CALL_ID_CHARS = 512
"""A longer name of a call is left out; OpenAI takes no longer one."""


def call_place(job: JobId, task: TaskId, attempt: int) -> str:
    """How the names of an attempt's calls begin: ids in ASCII, without a slash inside of one."""
    return "/".join([*(quote(name, safe="") for name in (*job.split("/", 1), task)), str(attempt)])


@dataclass(frozen=True, slots=True, kw_only=True)
class CallId:
    """Names one call of a model for the endpoint's log: which attempt made it, and in which life of a worker.

    Attributes:
        n: Which call of the attempt, from 1; tries that brought no reply do not count.
        tried: Which try of that call, from 1.
        run: The worker's life that made it.
    """

    job: JobId
    task: TaskId
    attempt: int
    n: int
    tried: int
    run: str

    def __str__(self) -> str:
        """As it goes out; empty where it would be too long."""
        text = f"{call_place(self.job, self.task, self.attempt)}/{self.n}/{self.tried}/{self.run}"
        return text if len(text) <= CALL_ID_CHARS else ""

    @classmethod
    def read(cls, text: str) -> "CallId | None":
        """The name that stands in an endpoint's log, None where it is none of ours."""
        match text.split("/"):
            case [tenant, own, task, attempt, n, tried, run] if f"{attempt}{n}{tried}".isdecimal():
                return cls(
                    job=f"{unquote(tenant)}/{unquote(own)}",
                    task=unquote(task),
                    attempt=int(attempt),
                    n=int(n),
                    tried=int(tried),
                    run=run,
                )
            case _:
                return None
