"""The reply of the simulated model to one request, and its body in the shape of the chat API."""

from dataclasses import dataclass, replace
from typing import Any

import orjson

from agents.simulator import joining, judging, planning, reducing, shapes, working
from agents.simulator.asked import OTHER, Asked
from agents.simulator.behaviour import FINGERPRINT
from agents.simulator.directives import JUDGE, PLANNER, REDUCTION, SUB_AGENT
from agents.simulator.prefix_cache import BYTES_A_TOKEN
from agents.simulator.wanted import Wanted
from agents.simulator.wording import LABEL, head


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model says.

    Attributes:
        text: The content, or None where it calls tools.
        calls: Tool calls, as id, name and arguments.
        finish_reason: ``stop``, ``tool_calls`` or ``length``.
        tokens: Output tokens.
        thought: What it thought first, or None.
    """

    text: str | None
    calls: tuple[tuple[str, str, str], ...] = ()
    finish_reason: str
    tokens: int
    thought: str | None = None


def reply(asked: Asked) -> Reply:
    """What the model says to a request: the same to the same request.

    Raises:
        Rejected: a directive in the goal makes no sense.
    """
    said = _reply(asked)
    thought = f"{LABEL}The goal is: {head(asked.goal, 200)}"
    tokens = said.tokens + -(-len(thought.encode()) // BYTES_A_TOKEN)
    return (
        replace(said, thought=thought, tokens=tokens)
        if asked.thinking and tokens <= asked.max_tokens
        else said
    )


def _reply(asked: Asked) -> Reply:
    if asked.role == PLANNER:
        entries = planning.plan(asked)
        return _said(asked, orjson.dumps({"tasks": entries} if asked.json_object else entries).decode())
    if asked.role == SUB_AGENT:
        turn = working.work(asked)
        return _said(asked, turn) if isinstance(turn, str) else _calls(asked, turn)
    if asked.role == OTHER:
        return _said(asked, f"{LABEL}{head(asked.goal, 200) or 'The request holds no words.'}")
    if asked.role == JUDGE:
        return _said(asked, judging.judge(asked))
    if asked.role == REDUCTION:
        return _said(asked, reducing.reduce(asked))
    return _said(asked, joining.join(asked))


def _said(asked: Asked, text: str) -> Reply:
    if asked.schema is not None:
        text = shapes.in_shape(text, asked.schema)
    elif asked.json_object and not text.startswith("{"):
        text = orjson.dumps({"text": text}).decode()
    raw = text.encode()
    tokens = -(-len(raw) // BYTES_A_TOKEN)
    if tokens <= asked.max_tokens:
        return Reply(text=text, finish_reason="stop", tokens=max(1, tokens))
    kept = raw[: asked.max_tokens * BYTES_A_TOKEN].decode(errors="ignore")
    return Reply(text=kept, finish_reason="length", tokens=asked.max_tokens)


def _calls(asked: Asked, wanted: tuple[Wanted, ...]) -> Reply:
    tokens = sum(call.tokens for call in wanted)
    calls = tuple(
        (f"call_{asked.digest[:16]}_{k}", call.name, call.arguments) for k, call in enumerate(wanted)
    )
    if tokens <= asked.max_tokens:
        return Reply(text=None, calls=calls, finish_reason="tool_calls", tokens=tokens)
    return halved(Reply(text=None, calls=calls, finish_reason="length", tokens=asked.max_tokens))


def halved(whole: Reply) -> Reply:
    """The reply when the model stops half-way: half a text, or a last call with half its arguments."""
    calls = whole.calls
    if calls:
        name, tool, arguments = calls[-1]
        calls = (*calls[:-1], (name, tool, arguments[: len(arguments) // 2]))
    text = whole.text[: len(whole.text) // 2] if whole.text else whole.text
    return Reply(
        text=text,
        calls=calls,
        finish_reason="length",
        tokens=max(1, whole.tokens // 2),
        thought=whole.thought,
    )


def body(asked: Asked, said: Reply, tokens_cached: int) -> bytes:
    """The JSON body. ``created`` is always 0: the same request has the same reply at any time."""
    message: dict[str, Any] = {"role": "assistant", "content": said.text, "refusal": None}
    if said.thought is not None:
        message["reasoning_content"] = said.thought
    if said.calls:
        message["tool_calls"] = [
            {"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call, name, arguments in said.calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": said.finish_reason}
    head = opening(asked, "chat.completion")
    return orjson.dumps({**head, "choices": [choice], "usage": usage(asked, said, tokens_cached)})


def opening(asked: Asked, kind: str) -> dict[str, Any]:
    """What every reply, and every event of a stream, says of itself."""
    return {
        "id": f"chatcmpl-{asked.digest}",
        "object": kind,
        "created": 0,
        "model": asked.model,
        "system_fingerprint": FINGERPRINT,
    }


def usage(asked: Asked, said: Reply, tokens_cached: int) -> dict[str, Any]:
    """What the call cost."""
    return {
        "prompt_tokens": asked.tokens,
        "completion_tokens": said.tokens,
        "total_tokens": asked.tokens + said.tokens,
        "prompt_tokens_details": {"cached_tokens": tokens_cached},
    }
