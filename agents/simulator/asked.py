"""A chat request, read as far as the simulated model looks at it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson

from agents.simulator import directives
from agents.simulator.behaviour import MODEL
from agents.simulator.directives import JUDGE, PLANNER, REDUCTION, SUB_AGENT, SYNTHESIS, Directive
from agents.simulator.prefix_cache import BYTES_A_TOKEN
from agents.simulator.problems import Problem, Rejected

OTHER = "other"
"""The role of a request whose system prompt does not begin with ``Role: ...``."""

DEFAULT_MAX_TOKENS = 1_024
"""Output tokens of a request that does not say how many it allows, as on Moonshot's endpoints;
so a client that forgets it finds out."""

_OPENING = 2  # messages that every conversation of the agents begins with
_ENVELOPE = {"data_from", "data"}
_SCHEMAS = {SUB_AGENT: "result_schema", SYNTHESIS: "answer_schema"}
"""What the prompts call the schema of the reply."""

_ROLES = {f"Role: {role}": role for role in (PLANNER, SUB_AGENT, SYNTHESIS, REDUCTION, JUDGE)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A tool that the request offers.

    Attributes:
        properties: The JSON Schema of each parameter.
        required: The parameters that a call must have.
    """

    name: str
    properties: Mapping[str, Any]
    required: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A tool call of an earlier turn, with what the tool returned (its text read as JSON where it is)."""

    name: str
    arguments: str
    output: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One chat request.

    Attributes:
        role: ``planner``, ``sub-agent``, ``synthesis``, ``reduction``, ``judge`` or ``other``.
        goal: The goal without its directives.
        data: The JSON object of the user message; for ``other`` the last user message as ``goal``.
        tools: The tools offered, and not forbidden by ``tool_choice``.
        called: The tool calls made so far.
        again: The planner is asked again, because its plan was refused.
        max_tokens: Output tokens at most.
        json_object: The reply is to be a JSON object.
        schema: The JSON Schema that the reply is to keep to, or None.
        thinking: The model is to think first.
        stream: The reply is to be a stream.
        usage_in_stream: It is to tell its usage.
        model: The model asked for.
        rendered: The conversation as the model reads it, tools first.
        digest: A hash of what the model reads; requests with the same are the same request.
        user: The request's own ``user`` field, or an empty text.
    """

    role: str
    goal: str
    data: Mapping[str, Any]
    directives: tuple[Directive, ...]
    tools: tuple[Offered, ...]
    called: tuple[Called, ...]
    again: bool
    max_tokens: int
    json_object: bool
    schema: Mapping[str, Any] | None
    thinking: bool
    stream: bool
    usage_in_stream: bool
    model: str
    rendered: bytes
    digest: str
    user: str

    @property
    def tokens(self) -> int:
        """Input tokens, all of them."""
        return -(-len(self.rendered) // BYTES_A_TOKEN)


def read(body: bytes, models: Collection[str] = (MODEL,)) -> Asked:
    """Read the body of a request to an endpoint that has these models.

    Raises:
        Rejected: it is no request that the chat API takes, or one for a model that is not there.
    """
    request = _json(body)
    if not isinstance(request, dict):
        raise Rejected(Problem.bad_request("the body is no JSON object"))
    model = _model(request.get("model"), models)
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
        raise Rejected(Problem.bad_request("messages must be a list of at least one message", "messages"))
    tools = request.get("tools") or []
    rendered = orjson.dumps([tools, messages])
    role = _ROLES.get(_text(messages[0]).partition("\n")[0].strip(), OTHER)
    data = _data(messages, role)
    goal, written = directives.read(_string(data.get("goal")))
    if role == SUB_AGENT and "input" in data and b"[[" in rendered:
        written += directives.read(orjson.dumps(data["input"]).decode())[1]
    max_tokens = _max_tokens(request)
    thinking = _thinking(request)
    if thinking:
        _check_thinking(request, messages)
    shape = request.get("response_format")
    shape = shape if isinstance(shape, dict) else {}
    options = request.get("stream_options")
    return Asked(
        role=role,
        goal=goal,
        data=data,
        directives=written,
        tools=() if request.get("tool_choice") == "none" else tuple(map(_offered, tools)),
        called=_called(messages) if len(messages) > _OPENING else (),
        again=role == PLANNER and len(messages) > _OPENING,
        max_tokens=max_tokens,
        json_object=shape.get("type") == "json_object",
        schema=_schema(shape, data, role),
        thinking=thinking,
        stream=bool(request.get("stream")),
        usage_in_stream=isinstance(options, dict) and bool(options.get("include_usage")),
        model=model,
        rendered=rendered,
        digest=blake2b(rendered + str(max_tokens).encode(), digest_size=16).hexdigest(),
        user=_string(request.get("user")),
    )


def _model(model: Any, models: Collection[str]) -> str:
    if not isinstance(model, str) or not model:
        raise Rejected(Problem.bad_request("you must provide a model parameter", "model"))
    if model not in models:
        there = ", ".join(map(repr, models))
        raise Rejected(
            Problem(
                status=404,
                message=f"the model {model[:200]!r} does not exist; this endpoint has {there} only",
                type="invalid_request_error",
                code="model_not_found",
                param="model",
            )
        )
    return model


def _thinking(request: Mapping[str, Any]) -> bool:
    """Whether the model is told to think, in any of the ways that endpoints have for it."""
    switch, arguments = request.get("thinking"), request.get("chat_template_kwargs")
    if isinstance(switch, dict):
        return switch.get("type") == "enabled"
    if isinstance(arguments, dict):
        return arguments.get("thinking") is True
    return request.get("reasoning_effort") in ("medium", "high", "xhigh")


def _check_thinking(request: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> None:
    """What Moonshot's endpoints refuse of a request to a model that thinks."""
    if request.get("tool_choice") not in (None, "auto", "none"):
        raise Rejected(
            Problem.bad_request("tool_choice must be auto or none while the model thinks", "tool_choice")
        )
    for place, message in enumerate(messages):
        if message.get("tool_calls") and not message.get("reasoning_content"):
            text = f"reasoning_content is missing in the assistant message with tool calls at index {place}"
            raise Rejected(Problem.bad_request(text, "messages"))


def _schema(shape: Mapping[str, Any], data: Mapping[str, Any], role: str) -> Mapping[str, Any] | None:
    """The schema that the reply is held to, else the one that the prompt names."""
    held_to = shape.get("json_schema")
    if shape.get("type") == "json_schema":
        schema = held_to.get("schema") if isinstance(held_to, dict) else None
        if not isinstance(schema, dict):
            raise Rejected(Problem.bad_request("json_schema must have a schema", "response_format"))
        return schema
    told = data.get(_SCHEMAS[role]) if role in _SCHEMAS else None
    return told if isinstance(told, dict) else None


def _data(messages: Sequence[Mapping[str, Any]], role: str) -> Mapping[str, Any]:
    if role == OTHER:
        last = next((m for m in reversed(messages) if m.get("role") == "user"), None)
        return {"goal": _text(last) if last else ""}
    text = _text(messages[1]) if len(messages) > 1 else ""
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {"goal": text}
    if not isinstance(data, dict):
        return {"goal": text}
    given = data.pop("data", None)  # of a sub-agent: what it is to work on
    return {**data, **given} if role == SUB_AGENT and isinstance(given, dict) else data


def _max_tokens(request: Mapping[str, Any]) -> int:
    for name in ("max_completion_tokens", "max_tokens"):
        value = request.get(name)
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise Rejected(Problem.bad_request(f"{name} must be a whole number above 0", name))
        return value
    return DEFAULT_MAX_TOKENS


def _offered(tool: Any) -> Offered:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise Rejected(Problem.bad_request("a tool must be a function with a name", "tools"))
    schema = function.get("parameters") or {}
    properties = schema.get("properties") if isinstance(schema, dict) else None
    required = schema.get("required") if isinstance(schema, dict) else None
    return Offered(
        name=function["name"],
        properties=properties if isinstance(properties, dict) else {},
        required=tuple(name for name in required or () if isinstance(name, str)),
    )


def _called(messages: Sequence[Mapping[str, Any]]) -> tuple[Called, ...]:
    """Read the calls of the conversation; each must have exactly one result right after it."""
    called: list[Called] = []
    waiting: dict[str, Mapping[str, Any]] = {}
    for message in messages:
        if message.get("role") == "tool":
            function = waiting.pop(_string(message.get("tool_call_id")), None)
            if function is None:
                raise Rejected(
                    Problem.bad_request("a tool message must answer a tool call before it, once", "messages")
                )
            called.append(
                Called(
                    name=_string(function.get("name")),
                    arguments=_string(function.get("arguments")),
                    output=_unwrapped(_loosely(_text(message))),
                )
            )
            continue
        if waiting:
            break
        for call in message.get("tool_calls") or ():
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict):
                raise Rejected(Problem.bad_request("a tool call must have a function", "messages"))
            waiting[_string(call.get("id"))] = function
    if waiting:
        unanswered = ", ".join(waiting)
        raise Rejected(
            Problem.bad_request(f"no tool message answers the tool calls {unanswered}", "messages")
        )
    return tuple(called)


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Rejected(Problem.bad_request(f"the body is no JSON: {error}")) from None


def _loosely(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _unwrapped(message: Any) -> Any:
    """What a tool returned, out of the envelope that says that it is data."""
    return message["data"] if isinstance(message, dict) and set(message) == _ENVELOPE else message


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(_string(part.get("text")) for part in content if isinstance(part, dict))
    return _string(content)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
