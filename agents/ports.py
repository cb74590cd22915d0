"""What the agents' side offers to the lanes, and what it needs of them.

A poor answer is a value (:class:`PlanRefused`, :class:`GaveUp`); a broken program is an exception.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from streams.core.commands import CallEnded, Judge, MakeAnswer, MakePlan, RunSubTask
from streams.core.plan import Plan
from streams.core.values import NO_USAGE, Grant, JobId, Json, TaskId, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as a model sees it.

    Attributes:
        parameters: JSON Schema of the arguments, an object.
        once: An unknown outcome is never tried again; for tools that change the world.
        read_only: It changes nothing, so equal calls of one job may share one result.
    """

    name: str
    description: str
    parameters: Mapping[str, Json]
    once: bool = False
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model asks for a tool. ``arguments`` is the JSON text as the model wrote it, maybe broken."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """On whose behalf a tool is called.

    Attributes:
        job: Equal calls of read-only tools are shared within it; empty: not shared.
        kind: The kind of the sub-task, whose scopes on arguments hold.
    """

    job: str = ""
    task: str = ""
    kind: str = ""


NOBODY = Caller()


UNKNOWN_OUTCOME = "Whether the call was carried out is not known."
"""How the output of an ``unavailable`` call ends that was under way when its server went away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReply:
    """What came of a tool call.

    Attributes:
        output: What the tool returned (any JSON), or the error's text for the model.
        error: The kind of error, one word, or None: ``unknown_tool``, ``not_allowed``,
            ``bad_arguments``, ``timeout``, ``tool_error``, ``unavailable`` (its server is away, or
            fails so often that it is not asked now).
        latency_ms: Milliseconds the call took.
        shared: It is the result of an equal call of the same job.
    """

    output: Json
    error: str | None = None
    latency_ms: float = 0.0
    shared: bool = False

    @property
    def unknown(self) -> bool:
        """The tool may have done its work, or not. Told by what the journal keeps, so it is recalled, too."""
        lost = isinstance(self.output, str) and self.output.endswith(UNKNOWN_OUTCOME)
        return self.error == "timeout" or (self.error == "unavailable" and lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call of a model, in the terms of the OpenAI chat API.

    Attributes:
        messages: The whole conversation, fixed part first, so that the provider's prompt cache hits.
        tools: Tools offered; none means that the model is not to call any.
        max_tokens: Output tokens at most.
        json_object: Ask for a JSON object where the endpoint can.
        schema: Ask for a reply by this JSON Schema where the endpoint can, else for a JSON object.
        model: The model asked for, or None for the configured one of *kind*.
        kind: The kind of the sub-task, ``planner`` or ``synthesis``: it says which models and
            whether they think.
        fallback: Places by which the chain of models is turned, so that another one is asked first.
        call_id: Names this very call for the endpoint's own log; at most 512
            characters of ASCII. It goes out as the header ``X-Client-Request-Id``, by which
            OpenAI's support finds a call. Empty: none.
        tenant: Whose limit of requests a second it counts for. Empty: nobody's.
    """

    messages: Sequence[Mapping[str, Json]]
    tools: Sequence[ToolSpec] = ()
    max_tokens: int = 800
    json_object: bool = False
    schema: Mapping[str, Json] | None = None
    model: str | None = None
    kind: str = "default"
    fallback: int = 0
    call_id: str = ""
    tenant: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """One finished turn of a model.

    Attributes:
        message: The assistant message as it came (``content``, ``tool_calls``,
            ``reasoning_content``), to be sent back verbatim.
        finish_reason: ``stop``, ``length``, ``tool_calls`` or the provider's own word.
        usage: What this call cost; ``usage.calls`` is 1.
        model: The model that answered.
        request_id: The provider's id of the call, to ask them about it.
        latency_ms: Milliseconds from request to whole reply.
        simulated: The reply came from the simulated endpoint.
        endpoint: The configured name of the endpoint that answered.
        first_token_ms: Milliseconds to the first piece, where the reply was a stream.
    """

    message: Mapping[str, Json]
    finish_reason: str
    usage: Usage
    model: str
    request_id: str = ""
    latency_ms: float = 0.0
    simulated: bool = False
    endpoint: str = ""
    first_token_ms: float | None = None

    @property
    def text(self) -> str:
        """The reply's text, empty where there is none."""
        content = self.message.get("content")
        return content if isinstance(content, str) else ""


class ModelError(Exception):
    """A model call that brought no reply.

    Attributes:
        kind: One word: ``rate_limited``, ``overloaded``, ``server_error``, ``timeout``,
            ``connection``, ``malformed``, ``content_filter``, ``context_exceeded``,
            ``bad_request``, ``bad_key``, ``quota``, ``misconfigured``, ``no_such_model``,
            ``unavailable`` (every model of the chain is out), ``budget`` (the grant is spent).
        retry: The same call may succeed later.
        wait_s: Seconds the provider asked us to wait, or None.
        endpoint: The configured name of the endpoint that was asked, where one was.
        model: The configured name of the model that was asked, where one was.
        decision: What is made of it, one word, as the table of :mod:`agents.models.decisions` says:
            ``retry``, ``elsewhere``, ``give_up``, ``endpoint_out``, ``fatal``. Empty: not decided yet.
        usage: What the call may have cost all the same, an estimate and marked so; nothing where it
            surely cost nothing. None: not known yet. Whoever runs the attempt counts it.
    """

    endpoint: str = ""
    model: str = ""
    decision: str = ""
    usage: Usage | None = None

    def __init__(self, kind: str, reason: str, *, retry: bool, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.retry = retry
        self.wait_s = wait_s


class Model(Protocol):
    """One call of a model endpoint, no retries."""

    async def chat(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        """Ask once.

        Raises:
            ModelError: there is no reply; its kind says what to do.
        """


class Tools(Protocol):
    """The tools this process has."""

    def specs(self, names: Sequence[str]) -> tuple[ToolSpec, ...]:
        """The tools of these names; unknown names are left out."""

    async def call(
        self, name: str, arguments: Mapping[str, Json], *, timeout_s: float, caller: Caller = NOBODY
    ) -> ToolReply:
        """Run a tool. Never raises: what goes wrong is the reply."""


class Attempt(Protocol):
    """The attempt an agent works for: journal, slot and time belong to whoever runs it.

    ``model`` and ``tool`` record each reply before they return it, and give a reply that is
    already on the journal back without calling again, so an agent's code must make the same
    calls in the same order when it runs again with the same command.

    An attempt that nobody needs any more is stopped: the agent's task is cancelled wherever it waits
    (:class:`asyncio.CancelledError`), which an agent lets pass. A tool call made with ``once`` comes to
    its end first.
    """

    async def model(
        self, request: ModelRequest, call: Callable[[ModelRequest, float], Awaitable[ModelReply]]
    ) -> ModelReply:
        """Make the next model call of this attempt by ``call(request, timeout_s)``, or recall it.

        Raises:
            ModelError: as *call* raises it.
        """

    async def tool(
        self, call: ToolCall, run: Callable[[float], Awaitable[ToolReply]], *, once: bool = False
    ) -> ToolReply:
        """Make this tool call by ``run(timeout_s)``, or recall its reply.

        Calls with different ids may run side by side.
        """

    async def note(self, call: ToolCall, topic: str, value: Json, *, base: int, timeout_s: float) -> None:
        """Write a shared note of the job, and wait until the job's log has it.

        To be called within the *run* of :meth:`tool`: a call that is made again there, since nobody knows
        whether it came to its end, writes no second note.

        Args:
            base: The version of the topic that the writer has seen; 0: none.

        Raises:
            TimeoutError: the log did not take it in time; it may still.
        """

    async def wait_outside(
        self,
        call: ToolCall,
        *,
        on: Literal["approval", "child"],
        args: Json = None,
        child: JobId | None = None,
    ) -> CallEnded:
        """What this tool call has come to outside, once a person or a child job has answered it.

        Where it is not answered yet this raises what ends the attempt for now: it holds nothing while it
        waits, and its agent's code runs again later, up to here. Calls side by side with this one are to be
        over: an attempt waits for one call after the other, before :meth:`tool` makes it.

        Args:
            args: The call's arguments, for a person.
            child: The job that is waited for.
        """

    async def ask_child(self, call: ToolCall, goal: Mapping[str, Json]) -> CallEnded:
        """Submit a goal for the job of this attempt, and wait for its answer as :meth:`wait_outside` does.

        The same call is the same child job, however often it is made. Where the goal cannot be submitted
        the outcome is ``rejected``.

        Args:
            goal: Its fields, without id, tenant and parent.
        """

    async def wait(self, seconds: float) -> None:
        """Wait without holding a slot, for a provider's limit or a backoff.

        Raises:
            TimeoutError: the attempt's time would be over before.
        """

    async def wait_for(self, ready: Callable[[], Awaitable[None]]) -> None:
        """Wait without holding a slot until ``ready()`` returns, for a turn at an endpoint.

        ``ready`` must only wait and take nothing, since the attempt may end in between: what is
        scarce is taken afterwards, without waiting, or waited for again.

        Raises:
            TimeoutError: the attempt's time is over; ``ready()`` has been cancelled.
        """

    @property
    def grant(self) -> Grant | None:
        """What this attempt may spend, all its calls together; None: any amount."""

    @property
    def usage(self) -> Usage:
        """What its calls have cost so far, those recalled from the journal among them."""

    @property
    def fallback(self) -> int:
        """Attempts of the same work that came before this one: another model is the first to be asked."""

    def jitter(self) -> float:
        """Chance for backoffs: 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMade:
    """The planner's admitted plan."""

    plan: Plan
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRefused:
    """The planner's replies, the one re-ask among them, held no plan that can be admitted."""

    reasons: tuple[str, ...]
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A result.

    Attributes:
        result: Any JSON.
        proposed: Further sub-tasks that the sub-agent proposes.
        cites: Sub-tasks that an answer names as its sources.
    """

    result: Json
    usage: Usage = NO_USAGE
    proposed: Plan = ()
    cites: tuple[TaskId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GaveUp:
    """An attempt without a result.

    Attributes:
        kind: The kind of error, one word: those of :class:`ModelError`, and ``timeout``,
            ``loop_detected``, ``too_many_rounds``, ``truncated``, ``tool_error``, ``no_plan``,
            ``unknown_outcome`` (of a tool that must not run twice), ``bad_json`` (the result is not what
            the kind's schema asks for).
        final: No further attempt can help.
    """

    kind: str
    reason: str
    final: bool
    usage: Usage = NO_USAGE


class Planner(Protocol):
    """Turns a goal into a plan."""

    async def plan(self, command: MakePlan, attempt: Attempt) -> PlanMade | PlanRefused | GaveUp:
        """Make a plan; every value of *command* is inline."""


class SubAgent(Protocol):
    """Works on sub-tasks."""

    async def run(self, command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        """Work on one sub-task; every value of *command* is inline."""


class Synthesiser(Protocol):
    """Joins results into an answer."""

    async def answer(self, command: MakeAnswer, attempt: Attempt) -> Done | GaveUp:
        """Join the results into the final answer; every value of *command* is inline."""


class Referee(Protocol):
    """Judges goals and results."""

    async def judge(self, command: Judge, attempt: Attempt) -> Done | GaveUp:
        """The verdict, as JSON of the form that ``command.asks`` names; every value is inline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """The agents a lane puts to work.

    Attributes:
        close: End what they have open: connections, tool servers.
        share: Told this worker's share of the whole system, 0 to 1, each time it changes: limits
            of accounts are divided by it.
    """

    planner: Planner
    sub_agent: SubAgent
    synthesiser: Synthesiser
    judge: Referee
    tools: Tools
    close: Callable[[], Awaitable[None]] = field(repr=False)
    share: Callable[[float], None] = field(default=lambda _: None, repr=False)
