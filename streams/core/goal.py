"""A goal as the system accepted it: what is asked, and within which limits."""

from dataclasses import dataclass

from streams.core.values import Value


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
    """

    max_subtasks: int = 100
    concurrency: int = 32
    timeout_s: float = 120.0
    max_attempts: int = 3
    start_timeout_s: float = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRule:
    """When results make an answer.

    Attributes:
        min_success_ratio: Share of sub-tasks that must succeed for a partial answer (0 to 1);
            with fewer the job fails. At least one success is always needed.
        fail_fast_ratio: Share of failed sub-tasks beyond which the job ends at once (0 to 1);
            1 means that it never ends early.
    """

    min_success_ratio: float = 0.0
    fail_fast_ratio: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a job may spend, all its attempts together: see :mod:`streams.core.granting`. None means no limit.

    Attributes:
        tokens: Input and output tokens.
        calls: Model calls, those that may have cost something without an answer among them.
        usd: US dollars.
    """

    tokens: int | None = None
    calls: int | None = None
    usd: float | None = None

    @property
    def limited(self) -> bool:
        """It has a limit."""
        return self.tokens is not None or self.calls is not None or self.usd is not None


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
