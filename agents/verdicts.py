"""What a model's failure or finish means for the attempt."""

from agents.ports import GaveUp, ModelError, ModelReply
from streams.core.events import BUDGET
from streams.core.values import Grant, Usage

_NONE = (None, None)


def gave_up(error: ModelError, usage: Usage) -> GaveUp:
    """The attempt ends with the error of its model call; *usage* is what it had cost until then."""
    return GaveUp(kind=error.kind, reason=error.reason, final=not error.retry, usage=usage)


def unfit(reply: ModelReply, max_tokens: int, usage: Usage, grant: Grant | None = None) -> GaveUp | None:
    """Why this reply is never taken as an answer, or None.

    A reply that was cut off may miss anything, so it is no shorter answer but none.

    Args:
        max_tokens: Output tokens that were wanted; the attempt's *grant* may have had room for fewer.
        usage: What the attempt has spent.
    """
    if reply.finish_reason == "length":
        had = reply.usage
        if grant and not had.estimated and had.tokens_out < max_tokens and (grant.tokens, grant.usd) != _NONE:
            reason = (
                f"the reply of {reply.model} was cut off at {had.tokens_out} of {max_tokens} tokens: "
                "no more was granted"
            )
            return GaveUp(kind=BUDGET, reason=reason, final=True, usage=usage)
        reason = f"the reply of {reply.model} was cut off at {max_tokens} tokens"
        return GaveUp(kind="truncated", reason=reason, final=False, usage=usage)
    if reply.finish_reason == "content_filter":
        reason = f"{reply.model} withheld its reply: content filter"
        return GaveUp(kind="content_filter", reason=reason, final=True, usage=usage)
    return None
