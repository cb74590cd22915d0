"""What is made of a model call that brought no reply: one table, from the kind of error to the decision."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

Decision: TypeAlias = Literal["retry", "elsewhere", "give_up", "endpoint_out", "fatal"]
"""``retry``: the same model again, after a pause. ``elsewhere``: the next model of the chain, at once.
``give_up``: the sub-task fails with this reason. ``endpoint_out``: this key, model or endpoint is not
asked again while this process runs, and the call goes on with what is left. ``fatal``: nothing is left
that it could go on with, until somebody mends what the reason names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a kind of error means.

    Attributes:
        decision: What is made of it. Where there is no other model, ``elsewhere`` becomes ``retry``;
            where tries are used up or the time is over, both become ``give_up``; where nothing is
            left to ask, ``endpoint_out`` becomes ``fatal``.
        counted: It is one of the few failed tries that a call has. One that is not is bounded by the
            attempt's time alone.
        ill: It speaks against the model: its breaker counts it.
        congested: It says that too much is asked at once: fewer calls at once go to the endpoint.
        charged: The endpoint may have worked for it, so that its tokens count against the account.
    """

    decision: Decision
    counted: bool = True
    ill: bool = False
    congested: bool = False
    charged: bool = False


GIVE_UP: Final = Rule(decision="give_up", counted=False)
OUT: Final = Rule(decision="endpoint_out", counted=False)

RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "rate_limited": Rule(decision="retry", congested=True),
        "overloaded": Rule(decision="retry", counted=False, ill=True, congested=True),
        "server_error": Rule(decision="retry", ill=True, charged=True),
        "malformed": Rule(decision="retry", ill=True, charged=True),
        "timeout": Rule(decision="elsewhere", ill=True, congested=True, charged=True),
        "connection": Rule(decision="elsewhere", ill=True, charged=True),
        "bad_key": OUT,
        "quota": OUT,
        "misconfigured": OUT,
        "no_such_model": OUT,
        "content_filter": GIVE_UP,
        "context_exceeded": GIVE_UP,
        "bad_request": GIVE_UP,
        "unavailable": GIVE_UP,
        "budget": GIVE_UP,
    }
)
"""By the kinds of :class:`agents.ports.ModelError`. ``overloaded`` counts as no failed try: the
breaker ends the trying, and whoever meets it open waits for it, or goes to another model."""

KEY_OUT: Final = frozenset({"bad_key", "quota"})
"""These put the key out, and its endpoint with the last of them."""

MODEL_OUT: Final = frozenset({"no_such_model"})
"""These put the model out, and nothing else of its endpoint."""


def rule_of(kind: str) -> Rule:
    """The rule of a kind; one that nobody knows gives up, so that nothing repeats for ever."""
    return RULES.get(kind, GIVE_UP)
