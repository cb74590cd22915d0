"""A request in the terms of the chat API, as the endpoint that gets it wants it."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.configuration.values import PLANNER, Endpoint, ModelSettings
from agents.ports import ModelRequest, ToolSpec
from streams.core.values import Json

EFFORT = {True: "medium", False: "low"}
"""``reasoning_effort`` for thinking and for as little of it as may be: values that every model takes that
knows the parameter, ``gpt-5-pro`` apart (https://platform.openai.com/docs/api-reference/chat/create)."""


def request_body(
    request: ModelRequest, *, endpoint: Endpoint, model: ModelSettings, thinking: bool | None = None
) -> dict[str, Any]:
    """The body of a chat request.

    No ``tool_choice`` is ever sent: while a Kimi model thinks it takes ``auto`` and ``none`` only, and
    offering tools or none says the same.

    Args:
        request: What is asked.
        endpoint: Where it goes; its properties say what may stand in it.
        model: The model that is asked.
        thinking: Whether the model is to think. None: the planner's does, all others as the endpoint
            does by itself.
    """
    body: dict[str, Any] = {
        "model": model.id,
        "messages": _messages(request.messages, endpoint, model),
        endpoint.tokens_parameter: request.max_tokens,
    }
    if request.tools:
        body["tools"] = [tool_json(tool) for tool in request.tools]
    if endpoint.sampling and model.temperature is not None:
        body["temperature"] = model.temperature
    by_default = True if request.kind == PLANNER else None
    body |= _thinking(endpoint, wanted=by_default if thinking is None else thinking)
    if shape := _response_format(request, endpoint):
        body["response_format"] = shape
    if endpoint.streaming:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def tool_json(tool: ToolSpec) -> dict[str, Any]:
    """A tool as the chat API wants it."""
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    }


def _messages(
    messages: Sequence[Mapping[str, Json]], endpoint: Endpoint, model: ModelSettings
) -> Sequence[Mapping[str, Json]]:
    """The messages with their reasoning as the endpoint wants it back."""
    by_itself = endpoint.thinking == "type" or model.id.startswith("kimi-")
    match endpoint.reasoning or ("space" if by_itself else "verbatim"):
        case "space":
            return [with_reasoning(message) for message in messages]
        case "drop":
            return [{k: v for k, v in message.items() if k != "reasoning_content"} for message in messages]
        case "verbatim":
            return messages


def with_reasoning(message: Mapping[str, Json]) -> Mapping[str, Json]:
    """The message as Kimi models want it back.

    They refuse an assistant message with tool calls that lacks ``reasoning_content``, and an
    empty one as well; a single space they take.
    """
    if message.get("tool_calls") and not message.get("reasoning_content"):
        return {**message, "reasoning_content": " "}
    return message


def _thinking(endpoint: Endpoint, *, wanted: bool | None) -> dict[str, Any]:
    """How the endpoint is told whether to think; nothing where it is to do as it does by itself."""
    if wanted is None:
        return {}
    match endpoint.thinking:
        case "none":
            return {}
        case "type":
            return {"thinking": {"type": "enabled" if wanted else "disabled"}}
        case "template":
            # Kimi's and DeepSeek's templates know the first name, Qwen's and GLM's the second; a template
            # passes over what it does not know.
            return {"chat_template_kwargs": {"thinking": wanted, "enable_thinking": wanted}}
        case "effort":
            return {"reasoning_effort": EFFORT[wanted]}


def _response_format(request: ModelRequest, endpoint: Endpoint) -> dict[str, Any] | None:
    """How the endpoint is held to JSON, where it can be.

    Not beside tools: vLLM then holds all that the model writes to it, so that it cannot call any
    (https://github.com/vllm-project/vllm/issues/39929). Nor for results that are no objects, which
    OpenAI's own endpoint refuses.
    """
    if request.tools or endpoint.json_mode == "none":
        return None
    schema = request.schema
    if schema is None:
        return {"type": "json_object"} if request.json_object else None
    if schema.get("type") != "object":
        return None
    if endpoint.json_mode == "object":
        return {"type": "json_object"}
    asked: dict[str, Any] = {"name": "result", "schema": schema}
    if takes_strict(schema):
        asked["strict"] = True
    return {"type": "json_schema", "json_schema": asked}


STRICT = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf"}
    | {"description", "title", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minItems", "maxItems", "pattern", "format", "$ref", "$defs"}
)
"""Keywords that OpenAI's strict mode takes (https://platform.openai.com/docs/guides/structured-outputs)."""


def takes_strict(schema: Json) -> bool:
    """OpenAI's strict mode takes the schema: every object names all its properties and requires them all.

    Other endpoints hold the model to any schema and do not look at ``strict``.
    """
    if not isinstance(schema, Mapping) or not STRICT.issuperset(schema):
        return False
    properties = schema.get("properties")
    if schema.get("type") == "object" or properties is not None:
        named = properties if isinstance(properties, Mapping) else {}
        required = schema.get("required", [])
        if schema.get("additionalProperties") is not False:
            return False
        if not isinstance(required, list) or {str(name) for name in required} != set(named):
            return False
    inner: list[Json] = []
    for keyword in ("properties", "$defs"):
        part = schema.get(keyword)
        inner += part.values() if isinstance(part, Mapping) else ()
    alternatives = schema.get("anyOf")
    inner += alternatives if isinstance(alternatives, list) else ()
    if "items" in schema:
        inner.append(schema["items"])
    return all(takes_strict(part) for part in inner)
