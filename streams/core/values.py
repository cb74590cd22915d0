"""What events and commands carry: JSON in the record, or a claim check for it; and what calls cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

JobId: TypeAlias = str
"""``tenant/id``; the key of the job's records on every topic."""

TaskId: TypeAlias = str
"""Unique within its job. ``plan`` and ``answer`` are the first and the last sub-task of a job; one whose
goal brings its plan has no ``plan``, and one with a single sub-task that succeeds has no ``answer``."""

Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"

INLINE_BYTES = 8_192
"""A value up to this many bytes of JSON travels in the record itself; a larger one by claim check."""

INLINE_SET_BYTES = 262_144
"""All inline values of one record together stay below this many bytes; the rest go by claim check."""

PLAN: TaskId = "plan"
ANSWER: TaskId = "answer"

STEP = "~"
"""Ids of steps begin with it: sub-tasks of the system's own, that no plan holds."""

ACCOUNT = "@account"
"""``tenant/@account`` is the key of a tenant's account: no goal's id has an ``@``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inline:
    """A value that stands in the record itself."""

    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A claim check: where a value too large for the record can be read.

    Attributes:
        topic: The topic's name without its prefix: ``transcripts`` (chunks of the value's
            JSON, one a record) or ``job-events`` (the ``result`` of the event there).
        offsets: Offsets of the chunks, in order.
        size: Bytes of the value's JSON.
        digest: SHA-256 of the value's JSON, in hexadecimal.
    """

    topic: str
    partition: int
    offsets: tuple[int, ...]
    size: int
    digest: str


Value: TypeAlias = Inline | Reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What calls of models and tools cost.

    Attributes:
        calls: Model calls that were answered.
        tokens_in: Input tokens, the cached ones among them.
        tokens_cached: Input tokens that the provider read from its prompt cache.
        tokens_out: Output tokens.
        usd: US dollars, by the list price of the day.
        estimated: Calls whose usage the provider did not tell; their tokens are an estimate.
        tool_calls: Tool calls made.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    estimated: int = 0
    tool_calls: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            calls=self.calls + other.calls,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_cached=self.tokens_cached + other.tokens_cached,
            tokens_out=self.tokens_out + other.tokens_out,
            usd=self.usd + other.usd,
            estimated=self.estimated + other.estimated,
            tool_calls=self.tool_calls + other.tool_calls,
        )

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.tokens_in + self.tokens_out


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What one attempt may spend; reserved of the job's budget while it runs, and settled at its end.

    Attributes:
        calls: Model calls. None: any number.
        tokens: Input and output tokens together.
        usd: US dollars.
    """

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
