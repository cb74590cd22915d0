"""Calls that are not made, since no model can answer them; and how many tokens a call takes at most."""

from collections.abc import Sequence

from agents.models.targets import ModelTarget
from agents.plain_json import dumps
from agents.ports import ModelError, ModelRequest

BYTES_PER_TOKEN = 4
"""For the estimate of what a call takes: English text on common tokenizers."""


def estimate(request: ModelRequest) -> float:
    """Tokens that a call takes at most, roughly: a quarter of its bytes, and all that it may answer."""
    tools = [(tool.name, tool.description, tool.parameters) for tool in request.tools]
    return len(dumps((request.messages, tools))) / BYTES_PER_TOKEN + request.max_tokens


def all_out(targets: Sequence[ModelTarget]) -> ModelError:
    """Nothing is left to ask: for one reason, or for several."""
    outs = [(target.name, out) for target in targets if (out := target.out) is not None]
    kinds = {out.kind for _, out in outs}
    words = "; ".join(dict.fromkeys(out.reason for _, out in outs))
    names = ", ".join(name for name, _ in outs)
    kind = kinds.pop() if len(kinds) == 1 else "unavailable"
    error = ModelError(kind, f"not asked: {names} out of use since this: {words}", retry=False)
    error.endpoint, error.model = targets[0].endpoint.settings.name, targets[0].name
    error.decision = "fatal"
    return error


def too_large(targets: Sequence[ModelTarget], tokens: float) -> ModelError:
    """None of these models has room for so many tokens."""
    largest = max(targets, key=lambda target: target.settings.context_tokens or 0)
    error = ModelError(
        "context_exceeded",
        f"not asked: about {tokens:.0f} tokens with the reply, and {largest.name} has room for "
        f"{largest.settings.context_tokens}",
        retry=False,
    )
    error.endpoint, error.model = largest.endpoint.settings.name, largest.name
    error.decision = "give_up"
    return error
