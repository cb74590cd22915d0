"""What the operator's configuration says of a goal beside the goal itself: defaults, rules, chunks."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agents.configuration.tenants import merged
from agents.configuration.values import DEFAULT, SYNTHESIS, Configuration
from streams.core.goal import JoinRule, TenantRules
from streams.core.values import Json
from streams.wire.goal_fields import BadFields, GoalFields, problems_of, read_fields

OWN: Final = ("goal", "id", "tenant", "input", "plan", "parent")
"""Fields that each goal has for itself; the others may have defaults."""

BYTES_A_TOKEN: Final = 3
"""Bytes of JSON that a token stands for: English prose has 4, numbers and many other scripts 3."""

ROOM_TOKENS: Final = 16_384
"""Tokens of the synthesis' context that are no results: 8,192 of the answer, as many of prompt and goal."""

CHUNK: Final = JoinRule().chunk_bytes
"""Bytes of results of one call, at most, however large the context: more than that models read badly."""
LEAST_CHUNK: Final = 4_096


def default_faults(given: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """What of some fields cannot be a goal's defaults: where it stands, and why."""
    for name in given:
        if name in OWN:
            yield (name,), "each goal has its own"
    written = {name: value for name, value in given.items() if name not in OWN}
    yield from problems_of({"goal": "any", **written})


def resolved(written: Mapping[str, Json], fields: GoalFields, configured: Configuration) -> GoalFields:
    """The goal with the defaults of its tenant where it says nothing itself.

    Args:
        written: What the goal says.
        fields: The same, read.

    Raises:
        BadFields: goal and defaults contradict each other; the message says so.
    """
    defaults = configured.tenant(fields.tenant).defaults
    whole = merged(defaults, written)
    if (chunk := chunk_bytes(configured, whole.get("model"))) is not None:
        whole = merged({"join": {"chunk_bytes": chunk}}, whole)
    elif not defaults:
        return fields
    try:
        return read_fields(whole)
    except BadFields as error:
        raise BadFields(f"with the defaults of tenant {fields.tenant}: {error}") from None


def chunk_bytes(configured: Configuration, named: Json) -> int | None:
    """Bytes of results that fit into one call of the synthesis; None where its context is not known.

    Args:
        named: The model that the goal names, or None.
    """
    chain = configured.kind(SYNTHESIS).models or configured.kinds[DEFAULT].models
    name = named if isinstance(named, str) else next(iter(chain), "")
    model = configured.models.get(name)
    if model is None or model.context_tokens is None:
        return None
    room = model.context_tokens - min(ROOM_TOKENS, model.context_tokens // 2)
    return max(LEAST_CHUNK, min(CHUNK, room * BYTES_A_TOKEN))


def tenant_rules(configured: Configuration, tenant: str) -> TenantRules:
    """What a goal of this tenant is told of what its tenant may do."""
    allowed = configured.tenant(tenant)
    return TenantRules(weight=allowed.weight, jobs=allowed.jobs, day=allowed.day)
