"""What the orchestrator asks for: commands to the lanes, and the answer to the world."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from streams.core.events import Event
from streams.core.goal import AS_USUAL, Header, JoinRule, Source
from streams.core.values import NO_USAGE, Grant, JobId, Json, Reference, TaskId, Usage, Value

Outcome: TypeAlias = Literal["succeeded", "partial", "failed", "cancelled", "rejected"]
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
class Part:
    """What a step works on: a sub-task's result, or one of several parts of a long one.

    Attributes:
        part: Which, from 1.
        parts: How many.
    """

    task: TaskId
    part: int = 1
    parts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Results that cannot all be true.

    Attributes:
        about: What they contradict each other about, in words.
    """

    tasks: tuple[TaskId, ...]
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteSeen:
    """One of the job's shared notes as a sub-agent sees it."""

    topic: str
    version: int
    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """What a tool call that waited has come to: permission for it, or a child job's answer.

    Attributes:
        call: The tool call's id.
        outcome: ``approved``, or the outcome of the child's answer.
    """

    call: str
    outcome: str
    child: JobId | None = None
    answer: Value | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """How an attempt goes on that was suspended.

    Attributes:
        number: How often it was, from 1.
        journal: Offsets of its records on its partition of ``transcripts``.
        ended: What the calls that waited have come to, all of the attempt's so far.
    """

    number: int
    journal: tuple[int, ...] = ()
    ended: tuple[CallEnded, ...] = ()


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
        weight: The tenant's share of turns.
        failure: Why the plan so far did not come to its end, where another one is asked for.
        known: How the sub-tasks of the plan so far ended.
        notes: The plan may let sub-tasks share notes.
        fallback: As of :class:`RunSubTask`.
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
    weight: int = 1
    failure: str = ""
    known: tuple[TaskResult, ...] = ()
    notes: bool = False
    fallback: int = 0


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
        weight: The tenant's share of turns.
        fallback: Attempts that came before this one: the chain of models begins with a later one.
        hedge_of: The sub-task whose attempt still runs while this one begins beside it.
        fingerprint: Its success is to bring a fingerprint.
        schema: JSON Schema that its result must keep to, since it may be the answer. None: that of its kind.
        text: The goal of its job, where it is to work on that itself; *goal* only names it then.
        growth: How many further sub-tasks it may propose.
        notes: The job's shared notes up to *notes_at*, where it may read and write them; else None.
        notes_at: Offset of the last event that is in them.
        ask: Calls of tools that change things wait for a person.
        may_submit: It may submit child goals, and wait for their answers.
        depth: How many parents stand above its job.
        resume: How it goes on, where it was suspended.
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
    weight: int = 1
    fallback: int = 0
    hedge_of: TaskId | None = None
    fingerprint: bool = False
    schema: Json = None
    text: Value | None = None
    growth: int = 0
    notes: tuple[NoteSeen, ...] | None = None
    notes_at: int = -1
    ask: bool = False
    may_submit: bool = False
    depth: int = 0
    resume: Resume | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeAnswer:
    """Join the results of all sub-tasks into one answer to the goal, or some of them into one result.

    Attributes:
        join: How.
        schema: JSON Schema that the answer must keep to. None: any text or JSON.
        parts: Which part of each of *results* is meant, in their order; empty: all of each.
        reduce: It is a node of the tree: a summary of its results and not yet the answer.
        contradictions: What was found among the results.
        weight: The tenant's share of turns.
        fallback: As of :class:`RunSubTask`.
    """

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
    join: JoinRule = AS_USUAL
    schema: Json = None
    parts: tuple[Part, ...] = ()
    reduce: bool = False
    contradictions: tuple[Contradiction, ...] = ()
    weight: int = 1
    fallback: int = 0


Verdict: TypeAlias = Literal["gate", "check", "equal", "rank"]
"""What a judge is asked: whether a goal may be planned (``{"allow": true, "reason": "..."}``); which results
contradict each other (``{"contradictions": [{"tasks": [...], "about": "..."}]}``); which votes are the same
(``{"groups": [[...], ...]}``); in which order the candidates are best (``{"order": [...]}``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Let a model judge a goal or results; its result is the JSON that :data:`Verdict` says.

    Attributes:
        weight: The tenant's share of turns.
        fallback: As of :class:`RunSubTask`.
    """

    job: JobId
    task: TaskId
    attempt: int
    ordinal: int
    timeout_s: float
    asks: Verdict
    text: Value
    model: str | None = None
    results: tuple[TaskResult, ...] = ()
    priority: int = 5
    grant: Grant | None = None
    weight: int = 1
    fallback: int = 0


Command: TypeAlias = MakePlan | RunSubTask | MakeAnswer | Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """A line of the answer: how one sub-task of the plan ended.

    Attributes:
        parent: The sub-task that proposed it, where one did.
        hedged: A second attempt began beside a slow one.
    """

    task: TaskId
    outcome: TaskOutcome
    attempts: int
    reason: str = ""
    parent: TaskId | None = None
    hedged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """A result that was left out, since it is the same as another one."""

    task: TaskId
    of: TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class Votes:
    """What sub-agents said alike.

    Attributes:
        weight: What their votes count together.
    """

    tasks: tuple[TaskId, ...]
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The one answer to a goal: a record of ``answers``.

    Attributes:
        id: The goal's own id, or the one derived from its place on the topic.
        outcome: ``partial`` where a sub-task has no result; it never reads as complete.
        rule: The rule that ended the job, one word: ``all_done``, ``deadline``, ``fail_fast``,
            ``budget``, ``tenant_budget``, ``planning``, ``synthesis``, ``first``, ``quorum``, ``vote``,
            ``tie``, ``no_quorum``, ``gate``, ``not_approved``, ``cancelled``, ``rejected`` or ``broken``.
        reason: For a person, where the outcome is not ``succeeded``.
        answer: The answer itself, or None.
        subtasks: How each sub-task of the plan ended.
        usage: What the job spent.
        submitted_at: Broker time of the goal's acceptance, milliseconds since 1970.
        answered_at: Broker time of the event that ended the job.
        headers: The goal's headers; they are the record's headers, not part of its JSON.
        used: Sub-tasks whose results the answer was made of.
        cites: Those that it names as its sources.
        duplicates: Results that were left out.
        contradictions: Results that contradict each other.
        votes: How sub-agents voted, most votes first.
        refused: Further sub-tasks that were proposed, and notes that were written, but not taken, and why.
        replans: How often a planner was asked again.
        parent: The job that this one worked for.
        by: Who ended it or let it go on, where a person did.
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
    used: tuple[TaskId, ...] = ()
    cites: tuple[TaskId, ...] = ()
    duplicates: tuple[Duplicate, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    votes: tuple[Votes, ...] = ()
    refused: tuple[str, ...] = ()
    replans: int = 0
    parent: JobId | None = None
    by: str = ""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAttempt:
    """Nobody needs an attempt any more: its lane cancels its calls, or never begins it.

    Attributes:
        reason: Why, for a person.
    """

    job: JobId
    task: TaskId
    attempt: int
    ordinal: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """Put an event on the log of another job, or of an account, before this one's rows land.

    It is there at least once, and folding it a second time changes nothing.
    """

    event: Event


Effect: TypeAlias = Answer | Bury | StopAttempt | Tell
