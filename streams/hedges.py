"""When slow attempts are hedged: how long those of their kind run, learned, and the timers of that.

An attempt is hedged once it runs longer than all but one in twenty of the sub-tasks of its kind that this
process has seen succeed lately, and never before :data:`LEAST` of them have. Direct calls of tools have a
time of their own, by the goal. A hedge takes nobody's place: it is due while a place of its job is free and
nothing of the job waits for one.

What is learned stays with the process; after a start it is learned anew.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from math import ceil
from typing import Final, TypeAlias

from agents.ports import Tools
from streams.core.events import Event, HedgeDue, SubTaskSucceeded
from streams.core.hedging import floor_ms, is_direct, may_hedge, room
from streams.core.seconds import kind_of
from streams.core.states import Job, Node, Open, Running
from streams.core.values import JobId, TaskId

LEAST: Final = 10
"""Successes of a kind before any of it is hedged: with fewer the slowest of them is anything."""

WINDOW: Final = 200
"""Successes of a kind that are remembered, the newest: one that becomes slower is slow after ten of them."""

KINDS: Final = 1_000
"""Kinds that are remembered; users make up words of their own."""

SLOW: Final = 0.95
"""Share of successes that an attempt has to be slower than."""

AGAIN_MS: Final = 1_000
"""Milliseconds after which an attempt that could not be hedged is looked at again."""

AT_ONCE: Final = 100
"""Hedges that are told between two batches."""

Entry: TypeAlias = tuple[int, int, JobId, TaskId, Running]
"""When to look, number, job, sub-task and its state."""

MayRepeat: TypeAlias = Callable[[Sequence[str]], bool]
"""Whether an agent that has these tools may run twice at once."""


def repeatable(tools: Tools) -> MayRepeat:
    """What may run twice at once: no tool that must not be called twice, nor one that is not known."""

    def may_repeat(names: Sequence[str]) -> bool:
        specs = tools.specs(names) if names else ()
        return {spec.name for spec in specs} == set(names) and not any(spec.once for spec in specs)

    return may_repeat


def without_tools(names: Sequence[str]) -> bool:
    """Nothing is known of any tool."""
    return not names


class RunTimes:
    """How long the attempts of each kind ran that succeeded lately, in milliseconds."""

    def __init__(self) -> None:
        self._kinds: OrderedDict[str, deque[int]] = OrderedDict()

    def learn(self, job: Job, event: Event) -> None:
        """Take in an event, of a job as it was before it. Direct calls of tools say nothing of models."""
        if not isinstance(event, SubTaskSucceeded) or not isinstance(job, Open) or not event.ran_ms:
            return
        step, node = job.steps.get(event.task), job.nodes.get(event.task)
        hedge = step is not None and step.role == "hedge"
        if hedge or (node is not None and not is_direct(node)):
            self.note(kind_of(job, event.task), event.ran_ms)

    def note(self, kind: str, ran_ms: int) -> None:
        """An attempt of this kind succeeded after so long."""
        times = self._kinds.get(kind)
        if times is None:
            times = self._kinds[kind] = deque(maxlen=WINDOW)
            if len(self._kinds) > KINDS:
                self._kinds.popitem(last=False)
        self._kinds.move_to_end(kind)
        times.append(ran_ms)

    def slow_ms(self, kind: str) -> int | None:
        """Milliseconds that :data:`SLOW` of them took at most; None where too few are known."""
        times = self._kinds.get(kind, ())
        return sorted(times)[ceil(SLOW * len(times)) - 1] if len(times) >= LEAST else None


class HedgeTimers:
    """Which attempts of one partition are due to be hedged. Times are broker's, milliseconds since 1970."""

    def __init__(self, times: RunTimes, may_repeat: MayRepeat) -> None:
        self._times, self._may_repeat = times, may_repeat
        self._heap: list[Entry] = []
        self._order = count()

    def arm(self, before: Job, after: Job) -> None:
        """Look after the attempts that began with the change from *before* to *after*."""
        if not isinstance(after, Open) or after.submitted.goal.hedge.share <= 0:
            return
        old = before.states if isinstance(before, Open) else {}
        for task, state in after.states.items():
            if not isinstance(state, Running) or old.get(task) is state or task in after.decided.hedged:
                continue
            if (node := after.nodes.get(task)) is not None and self._may_repeat(_tools(after, node)):
                self._push(state.since + floor_ms(after, node), after.submitted.job, task, state)

    def wait(self, now: int) -> float | None:
        """Seconds until one is to be looked at; None without any."""
        return max(0.0, (self._heap[0][0] - now) / 1000) if self._heap else None

    def due(self, job_of: Callable[[JobId], Job], now: int) -> Iterator[HedgeDue]:
        """What is to be hedged now, by the jobs as they are; it comes again in a second until it is moot."""
        told: Counter[JobId] = Counter()
        while self._heap and self._heap[0][0] <= now and told.total() < AT_ONCE:
            _, _, name, task, state = heappop(self._heap)
            job = job_of(name)
            if not isinstance(job, Open) or job.states.get(task) is not state or task in job.decided.hedged:
                continue
            after_ms = self._after_ms(job, task)
            due = after_ms is not None and may_hedge(job, task) and told[name] < min(room(job), _places(job))
            if after_ms is None or not due:
                self._push(now + AGAIN_MS, name, task, state)
            elif now < state.since + after_ms:
                self._push(state.since + after_ms, name, task, state)
            else:
                self._push(now + AGAIN_MS, name, task, state)
                told[name] += 1
                yield HedgeDue(job=name, task=task, attempt=state.attempt, after_ms=after_ms)

    def _after_ms(self, job: Open, task: TaskId) -> int | None:
        node = job.nodes[task]
        least = floor_ms(job, node)
        if is_direct(node):
            return least
        slow = self._times.slow_ms(kind_of(job, task))
        return None if slow is None else max(least, slow)

    def _push(self, at: int, job: JobId, task: TaskId, state: Running) -> None:
        heappush(self._heap, (at, next(self._order), job, task, state))


def _tools(job: Open, node: Node) -> tuple[str, ...]:
    """What the sub-task may call: one that has words beside its tool is an agent with all of them."""
    tool = node.task.tool
    return (tool,) if tool is not None and is_direct(node) else job.submitted.goal.tools


def _places(job: Open) -> int:
    return 0 if job.ready else job.submitted.goal.limits.concurrency - job.outstanding
