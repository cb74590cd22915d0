"""The fields of a goal by which its job decides: join, hedges, budget, limits, and whom it works for."""

import re
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from agents.configuration.schemas import schema_faults
from streams.core import goal as core
from streams.core.values import Json
from streams.wire import bounds

NAME: Final = re.compile(bounds.NAME)
"""What ids and tenants are made of."""

_LIMITS, _JOIN, _HEDGE = core.Limits(), core.JoinRule(), core.Hedging()

DEPTH: Final = core.DEPTH


def _name(text: str) -> str:
    if NAME.fullmatch(text) is None:
        raise PydanticCustomError("name", "should be 1 to 128 letters, digits or . _ ~ -")
    return text


def _job(text: str) -> str:
    tenant, slash, own = text.partition("/")
    if not slash or NAME.fullmatch(tenant) is None or NAME.fullmatch(own) is None:
        raise PydanticCustomError("job", "should be a job, tenant/id")
    return text


def _schema(value: Json) -> Json:
    if not isinstance(value, dict):
        raise PydanticCustomError("schema", "should be a JSON Schema, an object")
    for _, what, _ in schema_faults(("schema",), value):
        raise PydanticCustomError("schema", "{what}", {"what": what[:300]})
    return value


Name = Annotated[str, AfterValidator(_name)]
JobName = Annotated[str, AfterValidator(_job)]
Schema = Annotated[Any, AfterValidator(_schema)]
Ratio = Annotated[float, Field(ge=0, le=1)]
Model = Annotated[str, Field(min_length=1, max_length=256)]
Tokens = Annotated[int | None, Field(gt=0, le=10**15, description="Tokens, in and out.")]
Calls = Annotated[int | None, Field(gt=0, le=10**15, description="Model calls.")]
Usd = Annotated[float | None, Field(gt=0, le=10**15, description="US dollars, at list prices.")]
Seconds = Annotated[float, Field(gt=0, le=86_400)]


class Fields(BaseModel):
    """Strict: what is unknown is refused, since a mistyped `deadline_s` would cost money silently."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class LimitFields(Fields):
    """How much the job may do at once and in all."""

    max_subtasks: Annotated[int, Field(ge=1, le=100, description="Sub-tasks in the plan.")] = (
        _LIMITS.max_subtasks
    )
    concurrency: Annotated[int, Field(ge=1, le=10_000, description="Sub-tasks running at once.")] = (
        _LIMITS.concurrency
    )
    timeout_s: Annotated[Seconds, Field(description="Seconds one attempt may run.")] = _LIMITS.timeout_s
    max_attempts: Annotated[int, Field(ge=1, le=10, description="Attempts a sub-task has.")] = (
        _LIMITS.max_attempts
    )
    timeouts: Annotated[
        dict[str, Seconds],
        Field(max_length=100, description="Seconds of an attempt, by kind, where they differ."),
    ] = {}
    max_replans: Annotated[int, Field(ge=0, le=10, description="How often a planner is asked again.")] = (
        _LIMITS.max_replans
    )


class JoinFields(Fields):
    """When and how results make an answer."""

    min_success_ratio: Annotated[
        Ratio, Field(description="Share that must succeed for a partial answer.")
    ] = _JOIN.min_success_ratio
    fail_fast_ratio: Annotated[Ratio, Field(description="Share of failures beyond which the job ends.")] = (
        _JOIN.fail_fast_ratio
    )
    strategy: Annotated[core.Strategy, Field(description="How results become the answer.")] = _JOIN.strategy
    quorum: Annotated[
        int | None, Field(ge=1, le=100, description="Successes (or equal votes) that are enough.")
    ] = None
    candidates: Annotated[
        int | None, Field(ge=1, le=100, description="So many sub-agents get the goal itself; no planner.")
    ] = None
    models: Annotated[list[Model], Field(max_length=100, description="Their models, in turn.")] = []
    equality: Annotated[core.Equality, Field(description="When two votes are the same.")] = _JOIN.equality
    counting: Annotated[core.Counting, Field(description="Which votes win.")] = _JOIN.counting
    weights: Annotated[
        dict[str, Annotated[float, Field(ge=0, le=1_000)]],
        Field(max_length=100, description="What a vote of a model counts; 1 where not said."),
    ] = {}
    keep: Annotated[int, Field(ge=1, le=100, description="Candidates that a ranking keeps.")] = _JOIN.keep
    row: Annotated[Schema, Field(description="JSON Schema of a row of a table.")] = None
    duplicates: Annotated[core.Duplicates, Field(description="Results left out as duplicates.")] = (
        _JOIN.duplicates
    )
    near: Annotated[Ratio, Field(description="Share of shingles that near duplicates have in common.")] = (
        _JOIN.near
    )
    check: Annotated[bool, Field(description="Look for results that contradict each other.")] = False
    tie_break: Annotated[bool, Field(description="Let one more sub-task decide which of them holds.")] = False
    chunk_bytes: Annotated[
        int, Field(ge=1_024, le=16_777_216, description="Bytes of results that one call is given.")
    ] = _JOIN.chunk_bytes

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.counting == "quorum" and self.quorum is None:
            raise PydanticCustomError("quorum", "counting by quorum needs `quorum`")
        if self.candidates is not None and self.strategy in {"concat", "table"}:
            raise PydanticCustomError("candidates", "candidates are for first, vote, rank and synthesize")
        if self.candidates is not None and self.quorum is not None and self.quorum > self.candidates:
            raise PydanticCustomError("quorum", "the quorum is larger than the number of candidates")
        if self.tie_break and not self.check:
            raise PydanticCustomError("tie_break", "tie_break needs `check`")
        return self


class HedgeFields(Fields):
    """When a second attempt begins beside a slow one."""

    share: Annotated[Ratio, Field(description="Share of the sub-tasks that may be hedged.")] = _HEDGE.share
    floor_s: Annotated[Seconds, Field(description="Seconds that an attempt has at least.")] = _HEDGE.floor_s
    tool_s: Annotated[Seconds, Field(description="Seconds of a direct call of a tool.")] = _HEDGE.tool_s


class AllowanceFields(Fields):
    """What one sub-task may spend, all its attempts together."""

    tokens: Tokens = None
    calls: Calls = None
    usd: Usd = None


class BudgetFields(Fields):
    """What the job may spend; no limit where nothing is said."""

    tokens: Tokens = None
    calls: Calls = None
    usd: Usd = None
    subtask: Annotated[AllowanceFields | None, Field(description="What each sub-task may spend.")] = None


class ParentFields(Fields):
    """The job that this goal works for, and which of its tool calls waits for the answer."""

    job: JobName
    task: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9._~-]{1,64}$")] = None
    attempt: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    call: Annotated[str, Field(max_length=256)] = ""
    depth: Annotated[int, Field(ge=1, le=DEPTH, description="Parents above this goal.")] = 1
