"""How an attempt stays inside its grant: what a call may cost is looked at before it, and what it did after.

A call is made only where what it may cost at most fits what is left of the grant: one call, its input
and its output in tokens, and both in dollars. Output is cut to what fits, down to a floor below which
no answer is worth its price. The output's bound is the endpoint's to keep; the input is an estimate, on
the high side: where it is too low all the same, the attempt has spent more than it should by that much,
once, since after it nothing fits any more.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from agents.configuration.values import JUDGE, PLANNER, SYNTHESIS
from agents.plain_json import dumps
from agents.ports import ModelError, ModelRequest
from streams.core.events import BUDGET
from streams.core.values import NO_USAGE, Grant, Usage

Price: TypeAlias = Callable[[Usage], float]
"""US dollars of such a call."""

BYTES_PER_TOKEN: Final = 3
"""Of messages, tools and schema as JSON. English text on common tokenizers has above 4, code and JSON
above 3, Chinese about 4; only text that no language has, such as base64, comes below."""

LEAST: Final = {PLANNER: 512, SYNTHESIS: 256, JUDGE: 128}
"""Output tokens, by the kind of the request, with fewer of which a call is not worth making: a plan or an
answer would be cut off."""

LEAST_OF_OTHERS: Final = 64

MAY_HAVE_COST: Final = frozenset({"timeout", "connection", "malformed"})
"""Kinds of errors after which the endpoint may have worked, and be paid, though it brought no reply.
What it refused or failed at with a word of its own is not charged by any provider we know of."""

AGAIN: Final = "asking again would find no more"


def input_tokens(request: ModelRequest) -> int:
    """Tokens that the input has at most, but for a rare kind of text."""
    tools = [(tool.name, tool.description, tool.parameters) for tool in request.tools]
    return -(-len(dumps((request.messages, tools, request.schema))) // BYTES_PER_TOKEN)


def most(request: ModelRequest, price: Price | None = None) -> Usage:
    """What a call may cost at most, marked as an estimate; without a price its dollars are not known."""
    usage = Usage(calls=1, tokens_in=input_tokens(request), tokens_out=request.max_tokens, estimated=1)
    return usage if price is None else replace(usage, usd=price(usage))


def within_tokens(request: ModelRequest, grant: Grant | None, usage: Usage) -> ModelRequest:
    """The request with as much output as the grant has room for, after *usage*.

    Raises:
        ModelError: ``budget``; no call is left, or too few tokens.
    """
    if grant is None:
        return request
    if grant.calls is not None and usage.calls >= grant.calls:
        raise refused(f"all {grant.calls} model calls that were granted are made")
    if grant.tokens is None:
        return request
    tokens = input_tokens(request)
    room = grant.tokens - usage.tokens - tokens
    if room < least_output(request):
        left = max(0, grant.tokens - usage.tokens)
        raise refused(
            f"{left} of {grant.tokens} granted tokens are left, and the call needs about {tokens} for its "
            f"input and {least_output(request)} for an answer"
        )
    return replace(request, max_tokens=min(request.max_tokens, room))


def within_dollars(
    request: ModelRequest, grant: Grant | None, usage: Usage, *, model: str, price: Price | None
) -> ModelRequest:
    """The request with as much output as the granted dollars buy of this model, after *usage*.

    Raises:
        ModelError: ``budget``; too little is left, or nobody knows what the model costs: then no
            budget in dollars can be kept.
    """
    if grant is None or grant.usd is None:
        return request
    if price is None:
        raise refused(
            f"the goal has a budget in US dollars, and nobody knows what {model} costs: give it prices in "
            "anabranch.toml, or the goal a budget in tokens"
        )
    left = grant.usd - usage.usd
    least = least_output(request)
    cheapest = most(replace(request, max_tokens=least), price).usd
    if cheapest > left:
        raise refused(
            f"{max(left, 0.0):.6f} of {grant.usd:.6f} granted US dollars are left, and a call of {model} "
            f"with an answer of {least} tokens costs up to {cheapest:.6f}"
        )
    # The price of tokens rises with their number at some providers, so it is asked and not divided by.
    low, high = least, request.max_tokens
    while low < high:
        middle = (low + high + 1) // 2
        if most(replace(request, max_tokens=middle), price).usd <= left:
            low = middle
        else:
            high = middle - 1
    return replace(request, max_tokens=low)


def least_output(request: ModelRequest) -> int:
    """Output tokens with fewer of which the call is not made."""
    return min(request.max_tokens, LEAST.get(request.kind, LEAST_OF_OTHERS))


def cost_of(error: ModelError, request: ModelRequest, price: Price | None) -> Usage:
    """What a call without a reply may have cost: all that it could, where its endpoint may have worked."""
    if error.usage is not None:
        return error.usage
    return most(request, price) if error.kind in MAY_HAVE_COST else NO_USAGE


def unfinished(request: ModelRequest, grant: Grant | None, usage: Usage) -> Usage:
    """What a call may have cost that was cut off here, after *usage*: all that it could, and was granted.

    Its price is not known here: all dollars that were granted count.
    """
    cost = most(request)
    if grant is None:
        return cost
    if grant.tokens is not None:
        tokens_in = min(cost.tokens_in, max(0, grant.tokens - usage.tokens))
        room = max(0, grant.tokens - usage.tokens - tokens_in)
        cost = replace(cost, tokens_in=tokens_in, tokens_out=min(cost.tokens_out, room))
    if grant.usd is not None:
        cost = replace(cost, usd=max(0.0, grant.usd - usage.usd))
    return cost


def refused(why: str) -> ModelError:
    """No call is made, since the grant has no room for it; a retry would find no more."""
    error = ModelError(BUDGET, f"not asked: {why}; {AGAIN}", retry=False)
    error.decision = "give_up"
    error.usage = NO_USAGE
    return error
