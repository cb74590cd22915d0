"""Events, states and commands in a line for people."""

from datetime import UTC, datetime
from typing import assert_never

from streams.core.commands import Command, Judge, MakeAnswer, MakePlan, RunSubTask
from streams.core.events import (
    ApprovalGiven,
    ApprovalRefused,
    AttemptOverdue,
    ChildAnswered,
    DeadlinePassed,
    Event,
    ForAnAccount,
    FromAnAccount,
    FromOutside,
    GoalRejected,
    HedgeDue,
    JobBroken,
    JobCancelled,
    JobReopened,
    JobSubmitted,
    MoneyAsked,
    MoneyGiven,
    NoteWritten,
    PlaceAsked,
    PlaceGiven,
    PlaceReturned,
    Planned,
    RetryDue,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
    SubTaskSuspended,
    Told,
)
from streams.core.states import (
    Backoff,
    Failed,
    Hedged,
    Ready,
    Released,
    Running,
    Skipped,
    Stopped,
    SubTaskState,
    Succeeded,
    Suspended,
    Waiting,
)
from streams.core.values import NO_USAGE, Grant, Inline, Json, Usage, Value

CHARACTERS = 100
"""Characters of a value that a line shows."""


def clock(ms: int) -> str:
    """A time of the log, in UTC."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}.{ms % 1000:03d}Z"


def said(event: Event) -> str:
    """What an event says, without its type."""
    match event:
        case JobSubmitted(goal=goal, plan=plan):
            given = "" if goal.input is None else f", input {shown(goal.input)}"
            brought = f", with its plan of {len(plan)} sub-tasks" if plan else ""
            return f"{shown(goal.text)}{given}{brought}"
        case GoalRejected(reason=reason):
            return cut(reason)
        case SubTaskStarted(run=run):
            return f"{attempt(event)} in run {run}"
        case Planned(plan=plan, usage=usage):
            return f"{attempt(event)}: {len(plan)} sub-tasks{spent(usage)}"
        case SubTaskSucceeded(result=result, usage=usage, proposed=proposed):
            more = f", proposes {len(proposed)} sub-tasks" if proposed else ""
            return f"{attempt(event)}: {shown(result)}{more}{spent(usage)}"
        case SubTaskFailed(kind=kind, reason=reason, final=final, retry_in=retry_in, usage=usage):
            then = "for good" if final else f"next attempt in {retry_in:.2f} s"
            return f"{attempt(event)}: {kind}, {cut(reason)} ({then}){spent(usage)}"
        case AttemptOverdue() | RetryDue():
            return attempt(event)
        case DeadlinePassed():
            return "the job's time is over"
        case JobBroken(reason=reason):
            return cut(reason)
        case JobReopened(revision=number, kept=kept, redriven=redriven, by=by):
            again = f", {', '.join(redriven)} redriven" if redriven else ""
            return f"revision {number}, {len(kept)} of {len(event.plan)} results kept{again} (by {by})"
        case _:
            return told(event)


def told(event: Told | FromOutside | ForAnAccount | FromAnAccount) -> str:
    """What an event says that is none of an attempt's beginning or end."""
    match event:
        case HedgeDue(task=task, attempt=number, after_ms=after):
            return f"{task}/{number} runs longer than {after} ms"
        case SubTaskSuspended(task=task, attempt=number, on=on, tool=tool, child=child):
            return f"{task}/{number} waits for {child if on == 'child' else f'approval of {tool}'}"
        case ChildAnswered(task=task, attempt=number, child=child, outcome=outcome):
            return f"{child} {outcome}, for {task}/{number}"
        case NoteWritten(task=task, attempt=number, topic=topic, value=value):
            return f"{task}/{number} on {topic}: {shown(value)}"
        case ApprovalGiven() | ApprovalRefused():
            return f"{event.what or 'all'} (by {event.by or 'nobody named'}) {cut(event.reason)}".rstrip()
        case JobCancelled(by=by, reason=reason):
            return f"(by {by or 'nobody named'}) {cut(reason)}".rstrip()
        case PlaceAsked(of=of) | MoneyAsked(of=of) | PlaceReturned(of=of):
            return of
        case PlaceGiven(lease=lease):
            return f"it may begin{granted(lease)}"
        case MoneyGiven(more=more, reason=reason):
            return f"{granted(more).strip()} {cut(reason)}".strip()


def attempt(
    named: SubTaskStarted | Planned | SubTaskSucceeded | SubTaskFailed | AttemptOverdue | RetryDue | Command,
) -> str:
    """``task/attempt``."""
    return f"{named.task}/{named.attempt}"


def state(what: SubTaskState | None) -> str:
    """A state with what tells it from others of its kind."""
    match what:
        case None:
            return "-"
        case Waiting(missing=missing):
            return f"Waiting for {missing}"
        case Ready(attempt=number) | Released(attempt=number) | Running(attempt=number):
            return f"{type(what).__name__} {number}"
        case Suspended(attempt=number, on=on):
            return f"Suspended {number}, for {'a child job' if on == 'child' else 'approval'}"
        case Hedged(attempt=number):
            return f"Hedged, after attempt {number}"
        case Backoff(attempt=number, until=until):
            return f"Backoff before {number}, until {clock(until)[11:]}"
        case Succeeded(size=size):
            return f"Succeeded, {size} bytes"
        case Failed(kind=kind):
            return f"Failed: {kind}"
        case Skipped(reason=reason):
            return f"Skipped: {cut(reason)}"
        case Stopped(reason=reason):
            return f"Stopped: {cut(reason)}"


def order(command: Command) -> str:
    """A command: its type, its attempt, what it asks."""
    match command:
        case MakePlan(text=text):
            asks = shown(text)
        case RunSubTask(goal=goal, tool=tool):
            asks = cut(goal) or f"tool {tool}"
        case MakeAnswer(results=results):
            asks = f"{'sum up' if command.reduce else 'join'} {len(results)} results"
        case Judge(asks=what, results=results):
            asks = f"{what} of {len(results)} results" if results else what
        case _:
            assert_never(command)
    return f"{type(command).__name__} {attempt(command)}{granted(command.grant)}: {asks}"


def granted(grant: Grant | None) -> str:
    """What an attempt may spend, in brackets; nothing where that is any amount."""
    if grant is None:
        return ""
    parts = [
        *([f"{grant.calls} calls"] if grant.calls is not None else []),
        *([f"{grant.tokens} tokens"] if grant.tokens is not None else []),
        *([f"${grant.usd:.6f}"] if grant.usd is not None else []),
    ]
    return f" (granted {', '.join(parts)})"


def shown(value: Value) -> str:
    """A value's beginning, or where it stands."""
    if isinstance(value, Inline):
        return json_cut(value.value)
    return (
        f"{value.size} bytes at {value.topic}[{value.partition}]@{value.offsets[0] if value.offsets else '-'}"
    )


def json_cut(value: Json) -> str:
    """Text as it is, any other JSON as JSON; cut."""
    if isinstance(value, str):
        return cut(value)
    import orjson

    return cut(orjson.dumps(value).decode())


def cut(text: str, characters: int = CHARACTERS) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= characters else f"{line[: characters - 1]}…"


def spent(usage: Usage) -> str:
    """What a call cost, where it cost anything."""
    if usage == NO_USAGE:
        return ""
    money = f", ${usage.usd:.4f}" if usage.usd else ""
    return f" ({usage.calls} calls, {usage.tool_calls} tools, {usage.tokens} tokens{money})"
