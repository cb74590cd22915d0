"""What the orchestrator asks for: commands to the lanes, and the answer to the world."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from streams.core.goal import Header, Source
from streams.core.values import NO_USAGE, Grant, JobId, Json, Reference, TaskId, Usage, Value

Outcome: TypeAlias = Literal["succeeded", "partial", "failed", "rejected"]
TaskOutcome: TypeAlias = Literal["succeeded", "failed", "skipped", "unfinished"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """How a sub-task ended, as its dependants and the synthesis see it.

    Attributes:
        goal: What it was asked to do.
        result: Its result, where it succeeded.
        reason: Why there is none, where it did not.
    """

    task: TaskId
    goal: str
    outcome: TaskOutcome
    result: Value | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MakePlan:
    """Turn a goal into a plan. ``ordinal`` is 0.

    Attributes:
        ordinal: The sub-task's place in the job; with job and attempt it names the lane.
        timeout_s: Seconds this attempt may run.
        priority: Of the goal, 0 to 9, 9 first.
        text: The goal in words.
        input: The goal's input, whole.
        items: How many items a list input has.
        tools: Tools that sub-agents may use.
        max_subtasks: Sub-tasks the plan may have.
        grant: What this attempt may spend. None: any amount.
    """

    job: JobId
    task: TaskId
    attempt: int
    ordinal: int
    timeout_s: float
    text: Value
    input: Value | None = None
    items: int | None = None
    tools: tuple[str, ...] = ()
    model: str | None = None
    max_subtasks: int = 100
    priority: int = 5
    grant: Grant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSubTask:
    """Run one attempt of one sub-task of a plan.

    Attributes:
        goal: What to do; empty where *tool* runs directly with *args*.
        kind: ``extract``, ``summarize``, ``translate``, ``analyze``, or the user's own.
        tools: Tools the sub-agent may use.
        input: The goal's input, whole, where this sub-task has a share of it.
        items: Its share of a list input: first and last item, from 0, both included. None: all of it.
        dep: Its dependencies' results, in the plan's order.
        alone: It is its job's only sub-task, so that its result is the answer.
        grant: What this attempt may spend. None: any amount.
    """

    job: JobId
    task: TaskId
    attempt: int
    ordinal: int
    timeout_s: float
    goal: str
    kind: str
    tool: str | None = None
    args: Json = None
    model: str | None = None
    tools: tuple[str, ...] = ()
    input: Value | None = None
    items: tuple[int, int] | None = None
    dep: tuple[TaskResult, ...] = ()
    priority: int = 5
    alone: bool = False
    grant: Grant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeAnswer:
    """Join the results of all sub-tasks into one answer to the goal."""

    job: JobId
    task: TaskId
    attempt: int
    ordinal: int
    timeout_s: float
    text: Value
    model: str | None = None
    results: tuple[TaskResult, ...] = ()
    priority: int = 5
    grant: Grant | None = None


Command: TypeAlias = MakePlan | RunSubTask | MakeAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """A line of the answer: how one sub-task of the plan ended."""

    task: TaskId
    outcome: TaskOutcome
    attempts: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The one answer to a goal: a record of ``answers``.

    Attributes:
        id: The goal's own id, or the one derived from its place on the topic.
        outcome: ``partial`` where a sub-task has no result; it never reads as complete.
        rule: The rule that ended the job, one word: ``all_done``, ``deadline``, ``fail_fast``,
            ``budget``, ``planning``, ``synthesis``, ``rejected`` or ``broken``.
        reason: For a person, where the outcome is not ``succeeded``.
        answer: The answer itself, or None.
        subtasks: How each sub-task of the plan ended.
        usage: What the job spent.
        submitted_at: Broker time of the goal's acceptance, milliseconds since 1970.
        answered_at: Broker time of the event that ended the job.
        headers: The goal's headers; they are the record's headers, not part of its JSON.
    """

    job: JobId
    id: str
    tenant: str
    outcome: Outcome
    rule: str
    reason: str = ""
    answer: Value | None = None
    subtasks: tuple[TaskReport, ...] = ()
    usage: Usage = NO_USAGE
    submitted_at: int = 0
    answered_at: int = 0
    revision: int = 1
    source: Source | None = None
    headers: tuple[Header, ...] = ()

    @property
    def value(self) -> Json:
        """The answer's JSON, None where there is none. The client has all values inline.

        Raises:
            ValueError: it is a claim check, which only a reader of the log can resolve.
        """
        if isinstance(self.answer, Reference):
            raise ValueError(  # noqa: TRY004 - the type is allowed, only not here and now
                f"the answer to {self.job} is a claim check: resolve it first"
            )
        return None if self.answer is None else self.answer.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Bury:
    """Send the event just folded to ``dead-letters``: it cannot be handled."""

    reason: str
    source: Source | None = None


Effect: TypeAlias = Answer | Bury
