"""The configuration of the agents' side as frozen values: what ``anabranch.toml`` says, with its defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agents.configuration.tenants import UNLIMITED, EntryRules, Tenant
from streams.core.values import Json

Thinking: TypeAlias = Literal["none", "type", "template", "effort"]
"""How an endpoint is told to think or not: not at all; ``thinking: {"type": "enabled"}`` (Moonshot);
``chat_template_kwargs: {"thinking": true}`` (vLLM, SGLang); ``reasoning_effort`` (OpenAI, kimi-k3)."""

JsonMode: TypeAlias = Literal["schema", "object", "none"]
"""What an endpoint can do for JSON replies: keep to a JSON Schema, to some JSON object, or nothing."""

Reasoning: TypeAlias = Literal["verbatim", "space", "drop"]
"""What becomes of ``reasoning_content`` when an assistant message goes back: it goes along as it came
(DeepSeek wants it); so too, and a space stands for it where it is missing beside tool calls (Moonshot);
it is left out (Cerebras and others refuse a field that they do not know)."""

TokensParameter: TypeAlias = Literal["max_completion_tokens", "max_tokens"]
"""How the bound on output tokens is called: OpenAI, Moonshot, vLLM and llama.cpp take the first, Mistral
and older servers only the second."""

PLANNER, SYNTHESIS, JUDGE, DEFAULT = "planner", "synthesis", "judge", "default"
"""Kinds of their own: the planner's call, the synthesis, verdicts, and what no kind's own table says."""

CALLS = (PLANNER, SYNTHESIS, JUDGE)
"""Kinds of calls that are no sub-agent's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server that speaks the OpenAI chat API.

    Attributes:
        name: What models call it by in the configuration.
        base_url: Up to and with ``/v1``; empty means OpenAI's own.
        key_variables: Environment variables that hold its keys, for the words of errors: one for each
            of *keys*, in their order, or, where none is set, those that could be.
        keys: Its keys, used in turn; none for an endpoint that wants none.
        requests_per_minute: What the account of each key allows, over all workers. None: not known.
        tokens_per_minute: Likewise, input and output together.
        concurrency: Calls at once that the account of each key allows, over all workers.
        thinking: How it is told to think or not.
        reasoning: What becomes of reasoning that goes back to it. None: ``space`` where thinking is told
            by ``type`` and to models named ``kimi-*``, else ``verbatim``.
        tokens_parameter: What the bound on output tokens is called.
        sampling: Sampling parameters may be sent to it.
        json_mode: What it can do for JSON replies.
        streaming: Replies are read as streams, so that one that hangs is noticed.
        first_token_s: Seconds to the first piece of a stream.
        stall_s: Seconds between two pieces of a stream.
    """

    name: str
    base_url: str = ""
    key_variables: tuple[str, ...] = ()
    keys: tuple[str, ...] = field(default=(), repr=False)
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrency: int | None = None
    thinking: Thinking = "none"
    reasoning: Reasoning | None = None
    tokens_parameter: TokensParameter = "max_completion_tokens"
    sampling: bool = False
    json_mode: JsonMode = "object"
    streaming: bool = False
    first_token_s: float = 60.0
    stall_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """US dollars a million tokens, where the price list of genai-prices is not what is paid."""

    tokens_in: float
    tokens_out: float
    tokens_cached: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """A model.

    Attributes:
        name: What kinds, goals and plans call it by.
        endpoint: The name of its endpoint.
        id: What its endpoint calls it.
        context_tokens: Input and output tokens of one call together. None: not known.
        prices: What it costs, else what genai-prices knows.
        temperature: Sent only where its endpoint takes sampling parameters. None: not sent.
    """

    name: str
    endpoint: str
    id: str
    context_tokens: int | None = None
    prices: Prices | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much a sub-agent may do in one attempt.

    Attributes:
        rounds: Turns in which the model may call tools; then it must answer.
        turn_tokens: Output tokens of one turn.
        task_tokens: Output tokens of all turns together.
        calls: Tool calls of one turn that are run.
        side_by_side: Tool calls of one turn that run at once.
        tool_s: Seconds of one tool call, within the attempt's own time.
    """

    rounds: int = 3
    turn_tokens: int = 800
    task_tokens: int = 4_000
    calls: int = 64
    side_by_side: int = 8
    tool_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How sub-tasks of a kind are worked on.

    Attributes:
        models: Names of models: the first, and those to fall back on. Empty: those of ``default``.
        thinking: Whether the model is to think. None: as the endpoint does by itself.
        tools: Tools that sub-agents of this kind may use, of those the goal grants. None: all of those.
        scopes: For each tool, for each of its arguments, what it may be: see :mod:`agents.tools.scopes`.
        schema: JSON Schema of its results. None: any text or JSON.
        bounds: How much one attempt may do.
    """

    name: str
    models: tuple[str, ...] = ()
    thinking: bool | None = None
    tools: tuple[str, ...] | None = None
    scopes: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    schema: Mapping[str, Json] | None = None
    bounds: Bounds = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServer:
    """A tool server (MCP); its tools are named ``server.tool``.

    Attributes:
        command: Program and arguments of a stdio server. Empty where there is a *url*.
        url: Of a streamable HTTP server.
        environment: Environment variables that a stdio server gets beside the few that every one gets.
        headers: HTTP headers, secrets among them.
        tools: Its tools that are offered, without the server's name. None: all that it lists.
        once: Its tools that change the world: never called again where the outcome is unknown.
        read_only: Its tools whose result is shared by equal calls of one job, beside those that
            the server itself says are read-only.
        requests_per_minute: Calls that one worker makes at most. None: any number.
        concurrency: Calls at once of one worker.
        start_s: Seconds to start and to list its tools.
        call_s: Seconds of one call.
        secrets: What of *environment* and *headers* must never be shown.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tools: tuple[str, ...] | None = None
    once: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    requests_per_minute: int | None = None
    concurrency: int = 16
    start_s: float = 20.0
    call_s: float = 30.0
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalToolSettings:
    """Tools that are Python functions.

    Attributes:
        modules: ``package.module:name`` each: a function, or a list of functions and tools.
        sandbox: The code interpreter and the shell are offered, in a sandbox.
        sandbox_s: Seconds that one run in the sandbox may take.
        sandbox_bytes: Bytes of memory of one run.
        sandbox_output: Bytes of output that are kept of one run.
    """

    modules: tuple[str, ...] = ()
    sandbox: bool = False
    sandbox_s: float = 10.0
    sandbox_bytes: int = 536_870_912
    sandbox_output: int = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """All of it.

    Attributes:
        endpoints: By name; at least one.
        models: By name. Goals and plans may name these and no others, unless *open_models*.
        open_models: There is one endpoint, and any name of a model goes to it: nothing is configured
            but its address.
        kinds: By name, ``default`` always among them.
        servers: By name.
        local: Python functions.
        others: What tenants may do that have no table of their own.
        tenants: By name.
        entry: Who may submit goals for whom. None: whoever may write to ``goals``, for anybody.
        path: The file this stands in, for the words of errors; empty where there is none.
    """

    endpoints: Mapping[str, Endpoint]
    models: Mapping[str, ModelSettings]
    kinds: Mapping[str, Kind]
    open_models: bool = False
    servers: Mapping[str, ToolServer] = field(default_factory=dict)
    local: LocalToolSettings = LocalToolSettings()
    others: Tenant = UNLIMITED
    tenants: Mapping[str, Tenant] = field(default_factory=dict)
    entry: EntryRules | None = None
    path: str = ""

    def tenant(self, name: str) -> Tenant:
        """What a tenant may do."""
        return self.tenants.get(name, self.others)

    def kind(self, name: str) -> Kind:
        """The kind of this name, else ``default``; planner and synthesis take only its models."""
        default = self.kinds[DEFAULT]
        if name in CALLS:
            own = Kind(name=name, models=default.models, thinking=True if name == PLANNER else None)
            return self.kinds.get(name, own)
        return self.kinds.get(name, default)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown, wherever it turns up: keys, and the secrets of tool servers."""
        keys = [key for endpoint in self.endpoints.values() for key in endpoint.keys]
        given = [secret for server in self.servers.values() for secret in server.secrets]
        signing = [key.secret for key in self.entry.keys.values()] if self.entry else []
        return tuple(filter(None, (*keys, *given, *signing)))


def one_endpoint(*, base_url: str, api_key: str, model: str) -> Configuration:
    """What there is where no file says more: one endpoint, one model for all kinds, shipped tools.

    Args:
        base_url: The endpoint, up to and with ``/v1``; empty means OpenAI's own.
        api_key: Its key, or none.
        model: The model to use where goal and plan name none.
    """
    endpoint = Endpoint(
        name=DEFAULT,
        base_url=base_url,
        key_variables=("OPENAI_API_KEY",),
        keys=(api_key,) if api_key.strip() else (),
    )
    only = ModelSettings(name=model, endpoint=DEFAULT, id=model)
    return Configuration(
        endpoints={DEFAULT: endpoint},
        models={model: only},
        kinds={DEFAULT: Kind(name=DEFAULT, models=(model,))},
        open_models=True,
    )
