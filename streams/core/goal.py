"""A goal as the system accepted it: what is asked, and within which limits."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from streams.core.values import Grant, JobId, Json, TaskId, Value

Strategy: TypeAlias = Literal["synthesize", "concat", "table", "first", "vote", "rank"]
"""How results become an answer: a model writes it; they stand one after the other; they are rows; the first
success is it; the sub-agents vote; a judge orders them and the best are kept."""

WITHOUT_A_MODEL: Final[frozenset[Strategy]] = frozenset({"concat", "table", "rank"})
"""Strategies whose last step a lane makes alone, from what is there."""

Equality: TypeAlias = Literal["exact", "normalised", "judged"]
"""When two votes are the same: the same JSON; but for case, spaces and punctuation; where a judge says so."""

Counting: TypeAlias = Literal["majority", "quorum", "weighted"]
"""Which votes win: more than half of the voters; ``quorum`` of them; more than half of all weights."""

Duplicates: TypeAlias = Literal["keep", "exact", "near"]
"""Which results are left out of the join as duplicates: none; equal ones; near ones too."""

Approval: TypeAlias = Literal["plan", "tools", "answer"]
"""What waits for a person: the plan before it begins, calls of tools that change things, the answer."""

SUBMIT: Final = "submit_goal"
"""A goal that grants its sub-agents a tool of this name lets them submit child goals."""

DEPTH: Final = 5
"""Parents that may stand above a goal, at most."""

OnFailure: TypeAlias = Literal["go_on", "replan"]
"""What becomes of a plan of which a sub-task failed for good: it goes on, or a planner is asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindTimeout:
    """Seconds that one attempt of a sub-task of this kind may run."""

    kind: str
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """How much a vote of this model counts."""

    model: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a job may do at once and in all.

    Attributes:
        max_subtasks: Sub-tasks in the plan, at most 100.
        concurrency: Sub-tasks of this job released and unfinished at once.
        timeout_s: Seconds one attempt may run.
        max_attempts: Attempts a sub-task has before it fails for good.
        start_timeout_s: Seconds after which a released command that no lane has started counts
            as lost; longer than any wait in a lane, since it is a net and not a scheduler.
        timeouts: What differs from *timeout_s* by the kind of sub-task.
        max_replans: How often a planner may be asked again after a failure, where the goal says so.
    """

    max_subtasks: int = 100
    concurrency: int = 32
    timeout_s: float = 120.0
    max_attempts: int = 3
    start_timeout_s: float = 900.0
    timeouts: tuple[KindTimeout, ...] = ()
    max_replans: int = 1

    def seconds(self, kind: str) -> float:
        """Seconds one attempt of a sub-task of this kind may run."""
        return next((each.timeout_s for each in self.timeouts if each.kind == kind), self.timeout_s)

    @property
    def longest_s(self) -> float:
        """Seconds that an attempt of whatever kind may run at most."""
        return max((self.timeout_s, *(each.timeout_s for each in self.timeouts)))


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRule:
    """When results make an answer.

    Attributes:
        min_success_ratio: Share of sub-tasks that must succeed for a partial answer (0 to 1);
            with fewer the job fails. At least one success is always needed.
        fail_fast_ratio: Share of failed sub-tasks beyond which the job ends at once (0 to 1);
            1 means that it never ends early.
        strategy: How results become the answer.
        quorum: Successes that are enough: the rest is stopped, and the join begins. For a vote, the votes
            that win. None: all are waited for.
        candidates: So many sub-agents get the goal itself, and no planner is asked; for votes and
            ranks. None: the candidates are the plan's sub-tasks.
        models: The models of those, in turn; empty: each has the configured one.
        equality: When two votes are the same.
        counting: Which votes win.
        weights: What the votes of models count where *counting* is ``weighted``; 1 where nothing is said.
        keep: How many of the ranked candidates are kept.
        row: JSON Schema of a row, where the strategy is ``table``; None: any object.
        duplicates: Which results are left out as duplicates.
        near: Share of shingles that near duplicates have in common (0 to 1).
        check: A model looks for results that contradict each other before the join.
        tie_break: Where it finds some, one more sub-task decides which of them holds.
        chunk_bytes: Bytes of JSON of all results that one model call may be given; more are reduced
            in a tree.
    """

    min_success_ratio: float = 0.0
    fail_fast_ratio: float = 1.0
    strategy: Strategy = "synthesize"
    quorum: int | None = None
    candidates: int | None = None
    models: tuple[str, ...] = ()
    equality: Equality = "normalised"
    counting: Counting = "majority"
    weights: tuple[Weight, ...] = ()
    keep: int = 1
    row: Json = None
    duplicates: Duplicates = "keep"
    near: float = 0.9
    check: bool = False
    tie_break: bool = False
    chunk_bytes: int = 262_144


AS_USUAL: Final = JoinRule()
"""A model writes the answer from what succeeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hedging:
    """When a second attempt of a sub-task begins elsewhere while the first one still runs.

    Attributes:
        share: Sub-tasks of the job that may be hedged, as a share of all (0 to 1), rounded up. 0: none.
        floor_s: Seconds that an attempt runs at least before it is hedged, however fast others are.
        tool_s: Seconds after which a direct call of a tool is hedged.
    """

    share: float = 0.0
    floor_s: float = 1.0
    tool_s: float = 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRules:
    """What the operator allows the goal's tenant, as intake found it configured.

    Attributes:
        weight: The tenant's share of turns, in proportion to the others'.
        jobs: Jobs of the tenant that run at once, over all partitions. None: any number.
        day: What all its jobs may spend in a day (UTC, the broker's clock). None: any amount.
    """

    weight: int = 1
    jobs: int | None = None
    day: Grant | None = None

    @property
    def limited(self) -> bool:
        """Its jobs ask the tenant's account before they begin."""
        return self.jobs is not None or self.day is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """The tool call of a parent job's attempt that waits for this job's answer."""

    task: TaskId
    attempt: int
    call: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a job may spend, all its attempts together: see :mod:`streams.core.granting`. None means no limit.

    Attributes:
        tokens: Input and output tokens.
        calls: Model calls, those that may have cost something without an answer among them.
        usd: US dollars.
        subtask: What each sub-task may spend, in all its attempts together. None: no limit.
    """

    tokens: int | None = None
    calls: int | None = None
    usd: float | None = None
    subtask: Grant | None = None

    @property
    def limited(self) -> bool:
        """It has a limit."""
        return (
            self.tokens is not None
            or self.calls is not None
            or self.usd is not None
            or self.subtask is not None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a job is to achieve.

    Attributes:
        text: The goal in words (a string value).
        input: Any JSON to work on.
        items: How many items *input* has when it is a list, else None.
        tenant: Who pays and takes turns with others.
        priority: 0 to 9, 9 first.
        tools: Names of the tools that sub-agents may use.
        model: The model asked for, or None for the configured one.
        deadline_s: Seconds from the goal's arrival on the log until it is answered with what is there.
        digest: SHA-256 of the goal record's meaning: the same id with another digest is another goal.
        answer_schema: JSON Schema that the answer must keep to. None: any text or JSON.
        hedge: When slow attempts are hedged.
        approve: What waits for a person.
        grow: Sub-agents may propose further sub-tasks.
        notes: Sub-agents whose plan says so read and write the job's shared notes.
        on_failure: What becomes of the plan when a sub-task fails for good.
        gate: A small model looks at the goal before it is planned, and may refuse it.
        parent: The job that this one works for.
        depth: How many parents stand above it.
        asker: Who in the parent waits for the answer.
        rules: What its tenant may do.
    """

    text: Value
    input: Value | None = None
    items: int | None = None
    tenant: str = "default"
    priority: int = 5
    tools: tuple[str, ...] = ()
    model: str | None = None
    deadline_s: float | None = None
    budget: Budget = Budget()
    limits: Limits = Limits()
    join: JoinRule = JoinRule()
    digest: str = ""
    answer_schema: Json = None
    hedge: Hedging = Hedging()
    approve: tuple[Approval, ...] = ()
    grow: bool = False
    notes: bool = False
    on_failure: OnFailure = "go_on"
    gate: bool = False
    parent: JobId | None = None
    depth: int = 0
    asker: Asker | None = None
    rules: TenantRules = TenantRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A Kafka header of the goal, kept to come back on the answer; bytes that are no UTF-8 in base64."""

    name: str
    value: str | None
    base64: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a goal's record stands."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"
