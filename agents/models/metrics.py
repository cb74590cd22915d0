"""What a monitor needs to know of models and tools, counted in one place per call."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil, log

import structlog

from agents.ports import ModelError, ModelReply, ToolReply
from streams.core.values import NO_USAGE, Usage

EVERY_S = 60.0
"""Seconds between two events in the log, at least."""

NAMES = 1_000
"""Names of models and tools that are told apart; all further ones count as one."""

OTHERS = "others"

STEP = 1.1
"""Ratio of a histogram's neighbouring bounds: a quantile is at most a tenth too high."""

TOOL_WAS_NOT_ASKED = frozenset({"unknown_tool", "not_allowed", "bad_arguments"})
"""Errors of calls that reached no tool: they say something of the model, nothing of the tool."""


class Histogram:
    """How often what latency was, in bounded memory: bounds grow by a tenth each, from a millisecond on."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, milliseconds: float) -> None:
        """Count one."""
        self._counts[max(0, ceil(log(max(milliseconds, 1.0), STEP)))] += 1

    def quantile(self, share: float) -> float | None:
        """Milliseconds that this share stays below, at most a tenth too high; None without any."""
        left = ceil(share * self._counts.total())
        for bound, count in sorted(self._counts.items()):
            left -= count
            if left <= 0:
                return float(STEP**bound)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFigures:
    """What one model did so far.

    Attributes:
        replies: Calls that brought a reply.
        errors: Calls that brought none, by kind.
        p50_ms: Half of the replies took at most this long, milliseconds.
        p99_ms: Of 100 replies 99 took at most this long.
        first_token_p50_ms: Likewise to the first piece of a streamed reply.
        first_token_p99_ms: Likewise.
        usage: What its replies cost.
    """

    replies: int
    errors: Mapping[str, int]
    p50_ms: float | None
    p99_ms: float | None
    first_token_p50_ms: float | None
    first_token_p99_ms: float | None
    usage: Usage

    @property
    def cache_hit_rate(self) -> float | None:
        """The share of input tokens that came from the provider's cache; None without any."""
        return self.usage.tokens_cached / self.usage.tokens_in if self.usage.tokens_in else None

    @property
    def cents(self) -> float:
        """What its replies cost, in US cents."""
        return self.usage.usd * 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFigures:
    """What one tool did so far.

    Attributes:
        calls: Calls that reached it.
        failures: Of these, how many ended in an error.
    """

    calls: int
    failures: int

    @property
    def success_rate(self) -> float | None:
        """None without a call."""
        return 1 - self.failures / self.calls if self.calls else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All of it at one moment, since the process began.

    Attributes:
        models: By name.
        tools: By name.
        retries: Calls made again, by the kind of error that made it so.
        decisions: Errors by what was made of them.
        breaker_changes: How often breakers went into each state.
        breakers: Models whose breaker is not closed, with its state.
        concurrency: Calls at once that each endpoint is given now.
        concurrency_changes: How often that changed.
        refused_tool_calls: Tool calls that reached no tool: unknown, forbidden, bad arguments.
    """

    models: Mapping[str, ModelFigures]
    tools: Mapping[str, ToolFigures]
    retries: Mapping[str, int]
    decisions: Mapping[str, int]
    breaker_changes: Mapping[str, int]
    breakers: Mapping[str, str]
    concurrency: Mapping[str, int]
    concurrency_changes: int
    refused_tool_calls: int


@dataclass(slots=True)
class _Model:
    latency: Histogram = field(default_factory=Histogram)
    first_token: Histogram = field(default_factory=Histogram)
    errors: Counter[str] = field(default_factory=Counter)
    replies: int = 0
    usage: Usage = NO_USAGE


class Metrics:
    """The counters of one process.

    Args:
        clock: Seconds on any clock that does not go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = structlog.get_logger()
        self._clock = clock
        self._logged_at: float | None = None
        self._news = False
        self._models: dict[str, _Model] = {}
        self._tools: dict[str, list[int]] = {}
        self._retries: Counter[str] = Counter()
        self._decisions: Counter[str] = Counter()
        self._breaker_changes: Counter[str] = Counter()
        self._breakers: dict[str, str] = {}
        self._concurrency: dict[str, int] = {}
        self._concurrency_changes = self._refused = 0

    def replied(self, model: str, reply: ModelReply) -> None:
        """A call of a model brought a reply."""
        figures = self._model(model)
        figures.replies += 1
        figures.usage += reply.usage
        figures.latency.add(reply.latency_ms)
        if reply.first_token_ms is not None:
            figures.first_token.add(reply.first_token_ms)
        self._told()

    def failed(self, error: ModelError) -> None:
        """A call of a model brought none, and it is decided what is made of it."""
        self._model(error.model).errors[error.kind] += 1
        self._decisions[error.decision] += 1
        if error.decision in ("retry", "elsewhere", "endpoint_out"):
            self._retries[error.kind] += 1
        self._told()

    def breaker(self, model: str, state: str) -> None:
        """A model's breaker went into this state."""
        self._breaker_changes[state] += 1
        self._breakers.pop(model, None)
        if state != "closed" and len(self._breakers) < NAMES:
            self._breakers[model] = state
        self._told()

    def concurrency(self, endpoint: str, limit: int) -> None:
        """An endpoint is given so many calls at once from now on."""
        self._concurrency_changes += self._concurrency.get(endpoint, limit) != limit
        self._concurrency[endpoint] = limit

    def tool(self, name: str, reply: ToolReply) -> None:
        """A tool call has its reply; a shared one was counted when it was made."""
        if reply.error in TOOL_WAS_NOT_ASKED:
            self._refused += 1
        elif not reply.shared:
            counts = self._tools.setdefault(_known(name, self._tools), [0, 0])
            counts[0] += 1
            counts[1] += reply.error is not None
        self._told()

    def snapshot(self) -> Snapshot:
        """All of it now."""
        return Snapshot(
            models={name: _figures(model) for name, model in self._models.items()},
            tools={
                name: ToolFigures(calls=calls, failures=failures)
                for name, (calls, failures) in self._tools.items()
            },
            retries=dict(self._retries),
            decisions=dict(self._decisions),
            breaker_changes=dict(self._breaker_changes),
            breakers=dict(self._breakers),
            concurrency=dict(self._concurrency),
            concurrency_changes=self._concurrency_changes,
            refused_tool_calls=self._refused,
        )

    def close(self) -> None:
        """Log what the log has not been told yet."""
        if self._news:
            self._write()

    def _model(self, name: str) -> _Model:
        return self._models.setdefault(_known(name, self._models), _Model())

    def _told(self) -> None:
        """Something happened: log all of it, at most once in so many seconds."""
        self._news = True
        now = self._clock()
        if self._logged_at is None:
            self._logged_at = now
        elif now - self._logged_at >= EVERY_S:
            self._logged_at = now
            self._write()

    def _write(self) -> None:
        self._news = False
        now = self.snapshot()
        self._log.info(
            "models_and_tools",
            models={name: _words(figures) for name, figures in now.models.items()},
            tools={name: (tool.calls, tool.failures) for name, tool in now.tools.items()},
            retries=now.retries,
            decisions=now.decisions,
            breakers=now.breakers,
            breaker_changes=now.breaker_changes,
            concurrency=now.concurrency,
            concurrency_changes=now.concurrency_changes,
            refused_tool_calls=now.refused_tool_calls,
        )


def _known(name: str, known: Mapping[str, object]) -> str:
    return name if name in known or len(known) < NAMES else OTHERS


def _figures(model: _Model) -> ModelFigures:
    return ModelFigures(
        replies=model.replies,
        errors=dict(model.errors),
        p50_ms=model.latency.quantile(0.5),
        p99_ms=model.latency.quantile(0.99),
        first_token_p50_ms=model.first_token.quantile(0.5),
        first_token_p99_ms=model.first_token.quantile(0.99),
        usage=model.usage,
    )


def _words(figures: ModelFigures) -> dict[str, object]:
    """The figures of a model as an event of the log has them."""
    told: dict[str, float | None] = {
        "p50_ms": figures.p50_ms,
        "p99_ms": figures.p99_ms,
        "first_token_p50_ms": figures.first_token_p50_ms,
        "cache_hit_rate": figures.cache_hit_rate,
        "cents": figures.cents,
    }
    rounded = {name: round(value, 3) for name, value in told.items() if value is not None}
    return {"replies": figures.replies, "errors": dict(figures.errors), **rounded}
