"""Tells a job's story as text: events with their time, and under each what it led to."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any

from streams.core.commands import (
    Answer,
    Bury,
    Command,
    Effect,
    Judge,
    MakeAnswer,
    MakePlan,
    RunSubTask,
    StopAttempt,
    TaskResult,
    Tell,
)
from streams.core.events import (
    UNREADABLE,
    AttemptOverdue,
    DeadlinePassed,
    Event,
    JobReopened,
    JobSubmitted,
    Kept,
    Planned,
    RetryDue,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
    Tried,
)
from streams.core.goal import Goal, Source
from streams.core.job import absorb
from streams.core.pacing import Pacing
from streams.core.plan import SubTask
from streams.core.release import lane_of
from streams.core.reopening import reopening
from streams.core.states import Finished, Job, New
from streams.core.values import ANSWER, PLAN, Inline, Json, Reference, TaskId, Usage, Value

JOB = "acme/boats"
START = 1_767_225_600_000
LANES = 8


class Story:
    """One job from its first event on, with pacing as the orchestrator does it."""

    def __init__(self, title: str) -> None:
        self._lines = [f"# {title}", ""]
        self._job: Job = New()
        self._seen: list[Event] = []
        self._pacing = Pacing(256)
        self._at, self._offset = START, 0

    @property
    def text(self) -> str:
        """All that was told."""
        return "\n".join(self._lines) + "\n"

    def see(self, event: Event, *, after_s: float = 1.0) -> None:
        """The next event, so many seconds after the one before."""
        self._at += int(after_s * 1000)
        self._offset += 1
        event = replace(event, at=self._at, offset=self._offset)
        self._seen.append(event)
        before = self._job
        self._job, effects = absorb(before, event)
        self._pacing.touch(before, self._job)
        released = self._pacing.release(lambda _: self._job, self._at)
        commands = [command for _, given in released for command in given]
        for job, _ in released:
            self._job = job
        self._lines.append(f"{(self._at - START) / 1000:7.1f} s  {of_event(event)}")
        led_to = [*map(of_command, commands), *(line for effect in effects for line in of_effect(effect))]
        if self._job is before and not led_to:
            led_to = ["(nothing)"]
        self._lines += [f"           {line}" for line in led_to]

    def submitted(self, goal: Goal, *plan: SubTask) -> None:
        """The goal arrives, with its plan where it brings one."""
        source = Source(topic="goals", partition=0, offset=41)
        self.see(JobSubmitted(job=JOB, goal=goal, source=source, lanes=LANES, plan=plan), after_s=0)

    def planned(self, *plan: SubTask, usage: Usage = Usage(calls=1, tokens_in=900, tokens_out=100)) -> None:  # noqa: B008 - frozen
        """The planner answers."""
        self.started(PLAN)
        self.see(Planned(job=JOB, task=PLAN, attempt=1, plan=plan, usage=usage))

    def started(self, *tasks: TaskId, attempt: int = 1) -> None:
        """Lanes begin attempts."""
        for task in tasks:
            self.see(SubTaskStarted(job=JOB, task=task, attempt=attempt, run="run-1"), after_s=0.1)

    def succeeded(
        self,
        task: TaskId,
        result: Json,
        *,
        attempt: int = 1,
        size: int | None = None,
        usage: Usage = Usage(),  # noqa: B008
    ) -> None:
        """A sub-agent has its result."""
        size = len(json.dumps(result)) if size is None else size
        value = Inline(value=result)
        self.see(SubTaskSucceeded(job=JOB, task=task, attempt=attempt, result=value, size=size, usage=usage))

    def claimed(self, task: TaskId, *, size: int) -> None:
        """A sub-agent has its result, which is too large for the record."""
        check = Reference(topic="transcripts", partition=3, offsets=(17, 18), size=size, digest="ab" * 32)
        self.see(SubTaskSucceeded(job=JOB, task=task, attempt=1, result=check, size=size))

    def failed(
        self,
        task: TaskId,
        kind: str,
        reason: str,
        *,
        attempt: int = 1,
        retry_in: float = 0.0,
        final: bool = False,
        usage: Usage = Usage(),  # noqa: B008
    ) -> None:
        """A sub-agent gives up on one attempt."""
        self.see(
            SubTaskFailed(
                job=JOB,
                task=task,
                attempt=attempt,
                kind=kind,
                reason=reason,
                retry_in=retry_in,
                final=final,
                usage=usage,
            )
        )

    def retry_due(self, task: TaskId, attempt: int, *, after_s: float) -> None:
        """The orchestrator's timer for the next attempt."""
        self.see(RetryDue(job=JOB, task=task, attempt=attempt), after_s=after_s)

    def overdue(self, task: TaskId, attempt: int, *, after_s: float, retry_in: float = 0.0) -> None:
        """The orchestrator's timer for a late attempt."""
        self.see(AttemptOverdue(job=JOB, task=task, attempt=attempt, retry_in=retry_in), after_s=after_s)

    def deadline(self, *, after_s: float) -> None:
        """The orchestrator's timer for the whole job."""
        self.see(DeadlinePassed(job=JOB), after_s=after_s)

    def answered(self, text: str, *, attempt: int = 1) -> None:
        """The synthesis succeeds."""
        self.started(ANSWER, attempt=attempt)
        self.succeeded(ANSWER, text, attempt=attempt)

    def unreadable(self, task: TaskId, attempt: int) -> None:
        """No lane can read the command of an attempt: it is a dead letter."""
        self.failed(task, UNREADABLE, "v: version 2 is newer than 1", attempt=attempt)

    def reopened(self, *redriven: tuple[TaskId, int]) -> JobReopened:
        """An operator redrives dead letters of the job, a day later."""
        assert isinstance(self._job, Finished)
        event = reopening(self._seen, self._job, redriven=redriven, by="operator")
        assert event is not None
        self.see(event, after_s=86_400)
        return event


def of_event(event: Event) -> str:
    """An event in a line."""
    name = type(event).__name__
    if (task := getattr(event, "task", "")) != "":
        name += f" {task}/{getattr(event, 'attempt', 0)}"
    return f"{name} {told(event, leave=('job', 'task', 'attempt', 'at', 'offset', 'lanes', 'run'))}".rstrip()


def of_command(command: Command) -> str:
    """A command in a line."""
    lane = lane_of(command.job, command.ordinal, command.attempt, LANES)
    head = f"-> {type(command).__name__} {command.task}/{command.attempt} on lane {lane}"
    if command.grant is not None:
        head += f", granted {told(command.grant)}"
    match command:
        case MakePlan():
            again = f", after {command.failure}; with {results(command.known)}" if command.failure else ""
            return f"{head}: {told_value(command.text)}{again}"
        case RunSubTask(dep=dep):
            if command.growth:
                head += f", may propose {command.growth}"
            if command.notes is not None:
                notes = ", ".join(f"{n.topic}@{n.version}={told_value(n.value)}" for n in command.notes)
                head += f", notes up to {command.notes_at}: {notes or 'none'}"
            head += f" beside {command.hedge_of}, fallback {command.fallback}" if command.hedge_of else ""
            return f"{head}: {command.goal or command.tool}" + (f"; with {results(dep)}" if dep else "")
        case MakeAnswer(results=all_):
            return f"{head}: with {results(all_)}"
        case Judge(asks=asks, results=all_):
            return f"{head}: {asks}" + (f" of {results(all_)}" if all_ else "")


def of_effect(effect: Effect) -> Iterable[str]:
    """An effect in lines."""
    match effect:
        case Bury(reason=reason):
            yield f"=> dead letter: {reason}"
        case StopAttempt(task=task, attempt=attempt, reason=reason):
            yield f"=> stop {task}/{attempt}: {reason}"
        case Tell(event=event):
            yield f"=> tell {event.job}: {of_event(event)}"
        case Answer():
            again = f" (revision {effect.revision})" if effect.revision > 1 else ""
            yield f"=> Answer{again}: {effect.outcome} by {effect.rule}" + (
                f", {effect.reason}" * bool(effect.reason)
            )
            if effect.answer is not None:
                yield f"     {told_value(effect.answer)}"
            for report in effect.subtasks:
                attempts = f"{report.attempts} attempt{'s' * (report.attempts != 1)}"
                attempts += ", hedged" * report.hedged
                attempts += f", proposed by {report.parent}" if report.parent else ""
                yield f"     {report.task}: {report.outcome}, {attempts}" + f", {report.reason}" * bool(
                    report.reason
                )
            yield from of_join(effect)
            if effect.usage != Usage():
                yield f"     spent {told(effect.usage)}"


def of_join(answer: Answer) -> Iterable[str]:
    """What an answer was made of, where that is not simply all that succeeded."""
    done = tuple(report.task for report in answer.subtasks if report.outcome == "succeeded")
    if answer.used not in ((), done):
        yield f"     made of {', '.join(answer.used)}"
    for each in answer.duplicates:
        yield f"     {each.task} is the same as {each.of}"
    for found in answer.contradictions:
        yield f"     {', '.join(found.tasks)} contradict each other: {found.about}"
    for votes in answer.votes:
        yield f"     {votes.weight:g} votes: {', '.join(votes.tasks)}"
    if answer.replans:
        yield f"     planned again: {answer.replans}"
    for why in answer.refused:
        yield f"     refused: {why}"
    if answer.cites:
        yield f"     cites {', '.join(answer.cites)}"


def results(items: Iterable[TaskResult]) -> str:
    """Results of dependencies."""
    return ", ".join(
        f"{item.task}={told_value(item.result)}"
        if item.result
        else f"{item.task} {item.outcome} ({item.reason})"
        for item in items
    )


def told_value(value: Value) -> str:
    """A value, cut where it is long."""
    match value:
        case Inline(value=inner):
            text = json.dumps(inner)
            return text if len(text) <= 300 else f"{text[:40]}... ({len(text)} bytes)"
        case Reference():
            offsets = ", ".join(map(str, value.offsets))
            return f"[{value.topic}/{value.partition} at {offsets}: {value.size} bytes]"


def told(value: object, *, leave: tuple[str, ...] = ()) -> str:
    """The fields that are not at their default."""
    parts = []
    for field in fields(value):  # type: ignore[arg-type]
        inner: Any = getattr(value, field.name)
        if field.name in leave or (field.default is not MISSING and inner == field.default):
            continue
        parts.append(f"{field.name}={inside(inner)}")
    return " ".join(parts)


def inside(value: Any) -> str:
    """A field's value."""
    if isinstance(value, Inline | Reference):
        return told_value(value)
    if isinstance(value, Source):
        return f"{value.topic}[{value.partition}]@{value.offset}"
    if isinstance(value, JobSubmitted):
        return f"(the goal at {inside(value.source)})"
    if isinstance(value, tuple) and value and isinstance(value[0], Kept | Tried):
        return f"[{short([f'{each.task}/{each.attempt}' for each in value])}]"
    if isinstance(value, tuple) and value and isinstance(value[0], SubTask):
        shown = [task.id + (f"({short(task.dep)})" if task.dep else "") for task in value]
        return f"[{short(shown)}]"
    if is_dataclass(value):
        return f"({told(value)})"
    return json.dumps(value) if isinstance(value, str) else str(value)


def short(words: Sequence[str]) -> str:
    """Words in a row, the middle left out where there are many."""
    return " ".join(words if len(words) <= 12 else [*words[:3], "...", *words[-2:]])
