"""The run report: what some jobs took and cost, folded from their events by the core's own rules."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from graphlib import TopologicalSorter
from typing import Any

from streams.core.events import Event
from streams.core.states import Finished, New, Node
from streams.core.values import ANSWER, NO_USAGE, PLAN, JobId, TaskId, Usage
from streams.history import History


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """How jobs ended; ``unfinished`` ones have no answer yet."""

    total: int
    succeeded: int
    partial: int
    failed: int
    rejected: int
    cancelled: int
    unfinished: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubTasks:
    """How the plans' sub-tasks ended. Planning and synthesis are not among them.

    Attributes:
        rate: Share of all that succeeded, 0 to 1.
    """

    total: int
    succeeded: int
    failed: int
    skipped: int
    unfinished: int
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Milliseconds that something took, over *count* times; all 0 where it never happened.

    The percentiles are by nearest rank: real measurements, never a value between two of them.
    """

    count: int
    mean: float
    p50: int
    p99: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A sub-task on the critical path, and the milliseconds from its first start to its end."""

    task: TaskId
    ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticalPath:
    """The chain of sub-tasks, each waiting for the one before, that ran longest.

    No number of workers would have made its job faster. It begins with ``plan`` where a planner was
    asked, and ends with ``answer`` where there was a synthesis.

    Attributes:
        job: The job it belongs to; the longest of all jobs' paths is told.
        ms: Milliseconds of all steps together.
    """

    job: JobId
    steps: tuple[Step, ...]
    ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run took and cost. All times are broker time.

    Attributes:
        wall_ms: Milliseconds from the first goal to the last answer, or to the last event where
            a job has no answer yet.
        queue: From ready (its last dependency's end, or the plan's, or the goal's arrival where it
            brought its plan) to the first start.
        run: From the first start to the end, retries and the waits between them included.
        usage: Calls, tokens and money of all attempts that the jobs counted.
        planner_share: Share of all tokens that planning took, 0 to 1.
        synthesis_share: Share of all tokens that the syntheses took, 0 to 1.
        usd_per_subtask: US dollars of everything, over the plans' sub-tasks.
        simulated: The money was not spent: a simulated model answered.
        throughput: Sub-tasks that succeeded or failed a second of wall time.
        critical_path: None where nothing ran.
    """

    jobs: Jobs
    subtasks: SubTasks
    wall_ms: int
    queue: Latency
    run: Latency
    usage: Usage
    planner_share: float
    synthesis_share: float
    usd_per_subtask: float
    simulated: bool
    throughput: float
    critical_path: CriticalPath | None


def report(events_by_job: Mapping[JobId, Iterable[Event]], *, simulated: bool = False) -> Report:
    """Compute the report of these jobs.

    Args:
        events_by_job: Every event of each job, in the order of its partition. A redelivered event
            changes nothing, and neither does the order of the jobs.
        simulated: Whether a simulated model answered; the events do not say.
    """
    by_job = {job: History(events_by_job[job]) for job in sorted(events_by_job)}
    by_job = {job: history for job, history in by_job.items() if not isinstance(history.job, New)}
    histories = tuple(by_job.values())
    subtasks = _subtasks(histories)
    usage = sum((history.usage for history in histories), NO_USAGE)
    planning = sum(history.tokens[PLAN] for history in histories)
    synthesis = sum(history.tokens[ANSWER] for history in histories)
    began = min((history.first_at for history in histories), default=0)
    wall_ms = max((history.last_at for history in histories), default=0) - began
    paths = [path for job, history in by_job.items() if (path := critical_path(job, history)).steps]
    return Report(
        jobs=_jobs(histories),
        subtasks=subtasks,
        wall_ms=wall_ms,
        queue=latency([h.queued_ms(task) for h in histories for task in h.nodes]),
        run=latency([h.ran_ms(task) for h in histories for task in h.nodes]),
        usage=usage,
        planner_share=_ratio(planning, usage.tokens),
        synthesis_share=_ratio(synthesis, usage.tokens),
        usd_per_subtask=_ratio(usage.usd, subtasks.total),
        simulated=simulated,
        throughput=_ratio((subtasks.succeeded + subtasks.failed) * 1000, wall_ms),
        critical_path=max(paths, key=lambda path: path.ms, default=None),
    )


def latency(measured: Iterable[int | None]) -> Latency:
    """Summarise milliseconds; None stands for what never happened and is not counted."""
    ordered = sorted(ms for ms in measured if ms is not None)
    if not ordered:
        return Latency(count=0, mean=0.0, p50=0, p99=0)
    count = len(ordered)
    # The rank is q * count, rounded up; in whole numbers, since 0.99 * count is not exact.
    p50, p99 = (ordered[-(-percent * count // 100) - 1] for percent in (50, 99))
    return Latency(count=count, mean=sum(ordered) / count, p50=p50, p99=p99)


def critical_path(job: JobId, history: History) -> CriticalPath:
    """The longest chain of *history* by run time. In the plan's order one pass finds it."""
    ran = {task: history.ran_ms(task) or 0 for task in history.started}
    length = {PLAN: ran.get(PLAN, 0)}
    before: dict[TaskId, TaskId] = {}
    for task in _in_order(history.nodes):
        spec = history.nodes[task].task
        needed = (*spec.dep, spec.parent) if spec.parent else spec.dep
        before[task] = max(needed, key=lambda name: length[name], default=PLAN)
        length[task] = length[before[task]] + ran.get(task, 0)
    before[ANSWER] = max(length, key=lambda task: length[task])
    chain = [ANSWER]
    while chain[-1] in before:
        chain.append(before[chain[-1]])
    both = ran.keys() & history.ended
    steps = tuple(Step(task=task, ms=ran[task]) for task in reversed(chain) if task in both)
    return CriticalPath(job=job, steps=steps, ms=sum(step.ms for step in steps))


def _in_order(nodes: Mapping[TaskId, Node]) -> Iterable[TaskId]:
    """Every sub-task after those it waited for: in a plan that grew they may stand behind it."""
    if not any(node.task.parent for node in nodes.values()):
        return nodes
    needed = {
        name: (*node.task.dep, *((node.task.parent,) if node.task.parent else ()))
        for name, node in nodes.items()
    }
    return TopologicalSorter(needed).static_order()


def to_dict(value: Report) -> dict[str, Any]:
    """The report as plain values, for ``--json``."""
    return asdict(value)


def _subtasks(histories: Sequence[History]) -> SubTasks:
    ends = Counter(end for history in histories for end in history.ends)
    return SubTasks(
        total=ends.total(),
        succeeded=ends["succeeded"],
        failed=ends["failed"],
        skipped=ends["skipped"],
        unfinished=ends["unfinished"],
        rate=_ratio(ends["succeeded"], ends.total()),
    )


def _jobs(histories: Sequence[History]) -> Jobs:
    outcomes = Counter(h.job.outcome if isinstance(h.job, Finished) else "unfinished" for h in histories)
    return Jobs(
        total=outcomes.total(),
        succeeded=outcomes["succeeded"],
        partial=outcomes["partial"],
        failed=outcomes["failed"],
        rejected=outcomes["rejected"],
        cancelled=outcomes["cancelled"],
        unfinished=outcomes["unfinished"],
    )


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
