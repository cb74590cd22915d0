"""Goals as programs write them: checked here by the model that intake reads them with."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack
from uuid import uuid4

from streams.core.goal import Approval, Counting, Duplicates, Equality, OnFailure, Strategy
from streams.core.values import JobId, Json
from streams.wire.envelope import dump, parse
from streams.wire.goal_fields import read_fields
from streams.wire.goal_plan import brought_plan
from streams.wire.goals import DEPTH


class LimitOptions(TypedDict, total=False):
    """How much the job may do at once and in all.

    Attributes:
        max_subtasks: Sub-tasks in the plan, at most 100.
        concurrency: Sub-tasks running at once.
        timeout_s: Seconds one attempt may run.
        max_attempts: Attempts a sub-task has.
        timeouts: Seconds one attempt may run, by the kind of sub-task, where they differ.
        max_replans: How often a planner may be asked again.
    """

    max_subtasks: int
    concurrency: int
    timeout_s: float
    max_attempts: int
    timeouts: Mapping[str, float]
    max_replans: int


class JoinOptions(TypedDict, total=False):
    """When and how results make an answer: see :class:`streams.core.goal.JoinRule`."""

    min_success_ratio: float
    fail_fast_ratio: float
    strategy: Strategy
    quorum: int | None
    candidates: int | None
    models: list[str]
    equality: Equality
    counting: Counting
    weights: Mapping[str, float]
    keep: int
    row: Json
    duplicates: Duplicates
    near: float
    check: bool
    tie_break: bool
    chunk_bytes: int


class HedgeOptions(TypedDict, total=False):
    """When a second attempt begins beside a slow one: see :class:`streams.core.goal.Hedging`."""

    share: float
    floor_s: float
    tool_s: float


class AllowanceOptions(TypedDict, total=False):
    """What one sub-task may spend, all its attempts together."""

    tokens: int
    calls: int
    usd: float


class BudgetOptions(TypedDict, total=False):
    """What the job may spend.

    Attributes:
        tokens: Tokens, in and out.
        calls: Model calls.
        usd: US dollars, at list prices.
        subtask: What each sub-task may spend.
    """

    tokens: int
    calls: int
    usd: float
    subtask: AllowanceOptions


class GoalOptions(TypedDict, total=False):
    """What a goal may say beside its words; ``docs/reference/goals.schema.json`` has the bounds.

    Attributes:
        id: The job is ``tenant/id``; a goal sent twice with one id is one job. A random one where
            none is given.
        tenant: Who pays and takes turns with others.
        priority: 0 to 9, 9 goes first.
        input: Any JSON to work on; the items of a list are divided among sub-tasks.
        tools: Names of the tools that sub-agents may use.
        plan: Its sub-tasks, where no planner is to be asked for them: each with an ``id``, a ``goal``
            or a ``tool`` with ``args``, and the ids it depends on as ``dep``.
        model: The model; the worker's own where not said.
        deadline_s: Seconds until it is answered with what is there.
        answer_schema: JSON Schema that the answer keeps to.
        approve: What waits for a person: ``plan``, ``tools``, ``answer``.
        grow: Sub-agents may propose further sub-tasks.
        notes: Sub-tasks that the plan names share notes.
        on_failure: ``go_on`` without a failed sub-task, or ``replan``.
        parent: The job that it works for, ``tenant/id``.
    """

    id: str
    tenant: str
    priority: int
    input: Json
    tools: list[str] | tuple[str, ...]
    plan: Sequence[Mapping[str, Json]] | None
    model: str | None
    deadline_s: float | None
    budget: BudgetOptions
    limits: LimitOptions
    join: JoinOptions
    hedge: HedgeOptions
    answer_schema: Mapping[str, Json] | None
    approve: list[Approval]
    grow: bool
    notes: bool
    on_failure: OnFailure
    parent: str | Mapping[str, Json] | None


def write_goal(text: str, **options: Unpack[GoalOptions]) -> tuple[JobId, bytes]:
    """The job that a goal will be, and its record's value.

    Raises:
        BadFields: a field is unknown or out of its bounds, the message says which; or the plan
            cannot be admitted.
        Unwritable: its input has no JSON.
    """
    written: dict[str, Any] = {"goal": text, **options}
    given = {name: value for name, value in written.items() if value is not None}
    if isinstance(given.get("tools"), tuple):
        given["tools"] = list(given["tools"])
    given.setdefault("id", uuid4().hex)  # so that sending it again is the same job
    fields = read_fields(given)
    value = dump(given, depth=DEPTH)
    if fields.plan is not None:
        brought_plan(read_fields(parse(value, depth=DEPTH)))  # what intake will read: tuples are lists there
    return f"{fields.tenant}/{fields.id}", value
