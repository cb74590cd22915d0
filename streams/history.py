"""One job's life, read from its events: when its sub-tasks were ready, started and ended, what they spent."""

from collections import Counter
from collections.abc import Iterable, Mapping

from streams.core.commands import Answer, TaskOutcome
from streams.core.events import Event, JobReopened, Planned, SubTaskFailed, SubTaskSucceeded
from streams.core.job import absorb
from streams.core.results import ended
from streams.core.states import Failed, Finished, Job, New, Node, Open, Ready, Released, Running, Succeeded
from streams.core.values import NO_USAGE, PLAN, TaskId, Usage


class History:
    """A job's events, folded by the core's own rules, so that what the fold absorbs does not count here.

    Of a job that was opened again, times and ends are those of the newest try of each sub-task.

    Attributes:
        job: The job as the last event left it.
        first_at: Broker time of its first event, milliseconds since 1970.
        last_at: Broker time of the last event that changed it.
        nodes: The sub-tasks of its plan, in the plan's order; empty where there is none.
        usage: What it spent.
        tokens: Tokens by sub-task, ``plan`` and ``answer`` among them.
        ready: When each sub-task could first run: its last dependency's end, or the plan's, or the
            arrival of a goal that brought its plan.
        started: When its first attempt first started.
        ended: When it succeeded, or failed for good.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self.job: Job = New()
        self.first_at = 0
        self.last_at = 0
        self.nodes: Mapping[TaskId, Node] = {}
        self.usage: Usage = NO_USAGE
        self.tokens: Counter[TaskId] = Counter()
        self.ready: dict[TaskId, int] = {}
        self.started: dict[TaskId, int] = {}
        self.ended: dict[TaskId, int] = {}
        self._answer: Answer | None = None
        for event in events:
            self._take(event)

    @property
    def ends(self) -> tuple[TaskOutcome, ...]:
        """How each sub-task of the plan ended, in the plan's order."""
        if self._answer:
            return tuple(line.outcome for line in self._answer.subtasks)
        return tuple(ended(self.job.states[t])[0] for t in self.nodes) if isinstance(self.job, Open) else ()

    def queued_ms(self, task: TaskId) -> int | None:
        """Milliseconds from ready to the first start; None where it never started."""
        return _between(self.ready.get(task), self.started.get(task))

    def ran_ms(self, task: TaskId) -> int | None:
        """Milliseconds from the first start to the end, retries and waits included; None without an end."""
        return _between(self.started.get(task), self.ended.get(task))

    def _take(self, event: Event) -> None:
        before = self.job
        self.job, effects = absorb(before, event)
        if self.job is before:
            return
        if isinstance(event, Planned | SubTaskSucceeded | SubTaskFailed) and event.task not in self.ended:
            # It may have ended at once; what a lost attempt tells after its sub-task's end is no start of it.
            self.started.setdefault(event.task, event.at - event.ran_ms)
        self.first_at = event.at if isinstance(before, New) else self.first_at
        self.last_at = event.at
        if isinstance(before, Finished):
            self._go_on(event)
        for effect in effects:
            self._answer = effect if isinstance(effect, Answer) else self._answer
        if isinstance(self.job, Open):
            self._note_times(before, self.job, event)
        elif isinstance(self.job, Finished) and (task := getattr(event, "task", None)):
            self.ended.setdefault(task, event.at)  # the end of this sub-task ended the job
        self._note_usage(event)

    def _go_on(self, event: Event) -> None:
        self._answer = None
        stay: set[TaskId] = set()
        if isinstance(event, JobReopened):
            stay = {each.task for each in event.kept} | ({PLAN} if event.plan else set())
        for times in (self.ready, self.started, self.ended):
            for task in times.keys() - stay:
                del times[task]

    def _note_times(self, before: Job, after: Open, event: Event) -> None:
        known = before.states if isinstance(before, Open) else {}
        for task, state in after.states.items():
            if state is known.get(task):
                continue
            match state:
                case Ready() | Released():  # a redriven command is out at once
                    self.ready.setdefault(task, event.at)
                case Running():
                    self.started.setdefault(task, event.at)
                case Succeeded() | Failed():
                    self.ended.setdefault(task, event.at)
                case _:
                    pass
        if after.nodes is not self.nodes:  # a plan may grow
            first, self.nodes = not self.nodes, after.nodes
            if first and PLAN in known:  # a goal may bring its plan
                self.ended[PLAN] = event.at

    def _note_usage(self, event: Event) -> None:
        spent = self._answer.usage if self._answer else self.usage
        spent = self.job.usage if isinstance(self.job, Open) else spent
        if spent != self.usage and isinstance(event, Planned | SubTaskSucceeded | SubTaskFailed):
            self.tokens[event.task] += event.usage.tokens
        self.usage = spent


def _between(earlier: int | None, later: int | None) -> int | None:
    return None if earlier is None or later is None else later - earlier
