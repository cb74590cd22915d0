"""A replay on the screen, and as JSON."""

from collections.abc import Iterator, Sequence

from rich.console import Console

from streams.cli.output import answer_json, console, print_answer, say, typed
from streams.cli.words import clock, cut, json_cut, order, said, shown, state
from streams.core.commands import Answer, Bury, Effect, StopAttempt, Tell
from streams.core.states import Open
from streams.replay.calls import AttemptCalls
from streams.replay.folding import Replay, Step, Verdict
from streams.topics import JOB_EVENTS
from streams.transcript import (
    AttemptEnded,
    AttemptRecord,
    HandedOver,
    ModelCalled,
    ModelFailed,
    ToolCalled,
    ToolStarted,
)


def show(
    told: Replay,
    answer: Answer | None,
    attempts: Sequence[AttemptCalls],
    *,
    kcat: tuple[str, str] | None = None,
) -> None:
    """Print a replay.

    Args:
        answer: The folded answer, its value resolved where the recording has it.
        kcat: Brokers and prefix for kcat lines, or None for none.
    """
    out = console()
    began = told.steps[0].at if told.steps else 0
    out.print(f"[bold]{told.job}[/bold]: {len(told.steps)} events from {clock(began)} on")
    for step in told.steps:
        _step(out, step, began)
        if kcat is not None:
            brokers, prefix = kcat
            place = f"-t {prefix}{JOB_EVENTS} -p {step.partition} -o {step.offset}"
            say(out, f"           kcat -C -b {brokers} {place} -c 1 -e", style="dim")
    for each in attempts:
        out.print(f"\n[bold]calls of {each.task}/{each.attempt}[/bold]")
        for entry in each.entries:
            say(out, f"{_since(entry.at, began)}  {_entry(entry)}")
    out.print()
    _verdict(out, told, answer)


def lines(
    told: Replay, answer: Answer | None, attempts: Sequence[AttemptCalls]
) -> Iterator[dict[str, object]]:
    """A replay as JSON objects: its steps, its calls, and the verdict as the last one."""
    for step in told.steps:
        yield {
            **typed(step),
            "event": None if step.event is None else typed(step.event),
            "changes": [
                {"task": each.task, "before": _state(each.before), "after": _state(each.after)}
                for each in step.changes
            ],
            "orders": [{"lane": each.lane, **typed(each.command)} for each in step.orders],
            "effects": [typed(each) for each in step.effects],
            "absorbed": step.absorbed,
        }
    for attempt in attempts:
        for entry in attempt.entries:
            yield typed(entry)
    yield {
        "type": "Verdict",
        "job": told.job,
        "agrees": told.agrees,
        "answer": None if answer is None else answer_json(answer),
        "published": told.published is not None,
        "differences": [typed(each) for each in told.differences],
        "earlier": [
            {
                "revision": each.revision,
                "agrees": each.agrees,
                "answer": None if each.answer is None else answer_json(each.answer),
                "published": each.published is not None,
                "differences": [typed(difference) for difference in each.differences],
            }
            for each in told.verdicts[:-1]
        ],
    }


def _state(what: object) -> dict[str, object] | None:
    return None if what is None else typed(what)


def _step(out: Console, step: Step, began: int) -> None:
    head = f"{_since(step.at, began)}  @{step.offset:<6} "
    if step.event is None:
        say(out, f"{head}unreadable: {step.unreadable}")
        return
    out.print(f"{head}[bold]{type(step.event).__name__}[/bold]", end=" ")
    say(out, said(step.event))
    if step.absorbed:
        out.print("           absorbed: it changes nothing", style="dim")
    if step.before != step.after:
        out.print(f"           job: {step.before} -> [cyan]{step.after}[/cyan]")
    for change in step.changes:
        say(out, f"           {change.task}: {state(change.before)} -> {state(change.after)}")
    for each in step.orders:
        say(out, f"           => lane {each.lane}: {order(each.command)}")
    for effect in step.effects:
        say(out, f"           => {_effect(effect)}")


def _effect(effect: Effect) -> str:
    match effect:
        case Answer(outcome=outcome, rule=rule):
            return f"answer{_number(effect)}: {outcome} by {rule}"
        case Bury(reason=reason):
            return f"dead letter: {reason}"
        case StopAttempt(task=task, attempt=number, reason=reason):
            return f"stop {task}/{number}: {reason}"
        case Tell(event=event):
            return f"tell {event.job}: {type(event).__name__} {said(event)}"


def _entry(entry: AttemptRecord) -> str:
    match entry:
        case ModelCalled(n=n, request=request, reply=reply):
            asked, text = (
                shown(request.messages),
                cut(reply.text) or json_cut(reply.message.get("tool_calls")),
            )
            label = " (simulated)" if reply.simulated else ""
            return f"model {n}, {reply.model}{label}, {reply.latency_ms:.0f} ms: {asked}\n{'':>11}-> {text}"
        case ModelFailed(n=n, tried=tried, kind=kind, reason=reason, decision=decision):
            whom = f"{entry.model} at {entry.endpoint}, " if entry.model and entry.endpoint else ""
            return f"model {n}, try {tried}: {whom}{kind}, {cut(reason)} ({decision})"
        case ToolStarted(call=call):
            return f"tool {call.name} begins: {cut(call.arguments)}"
        case ToolCalled(call=call, output=output, error=error, latency_ms=ms, shared=shared):
            wrong = f" ({error})" if error else ""
            how = "shared with an equal call" if shared else f"{ms:.0f} ms"
            return f"tool {call.name}{wrong}, {how}: {cut(call.arguments)}\n{'':>11}-> {shown(output)}"
        case HandedOver(model_calls=models, tool_calls=tools):
            return f"handed over with {len(models) + len(tools)} calls under way"
        case AttemptEnded(event=event):
            return f"ended: {type(event).__name__} {said(event)}"


def _verdict(out: Console, told: Replay, answer: Answer | None) -> None:
    for each in told.verdicts[:-1]:
        if each.answer is not None:
            say(out, f"revision {each.revision}: {each.answer.outcome} by {each.answer.rule}")
        _compared(out, each)
    if answer is not None:
        print_answer(answer, as_json=False)
    if told.verdicts:
        _compared(out, told.verdicts[-1])
    if isinstance(told.job_after, Open) and told.job_after.revision.number > 1:
        out.print(f"revision {told.job_after.revision.number}: no answer yet")
    elif not told.verdicts:
        out.print("no answer yet")


def _compared(out: Console, verdict: Verdict) -> None:
    if verdict.answer is None:
        out.print("[red]an answer was published that no event leads to[/red]")
    elif verdict.published is None:
        out.print("[red]this answer was not published[/red]")
    elif verdict.agrees:
        out.print("[green]the same answer was published[/green]")
    else:
        out.print("[red]another answer was published[/red]")
        for each in verdict.differences:
            ours, theirs = cut(repr(each.folded)), cut(repr(each.published))
            say(out, f"  {each.field}: folded {ours}, published {theirs}")


def _number(answer: Answer) -> str:
    return f" (revision {answer.revision})" if answer.revision > 1 else ""


def _since(at: int, began: int) -> str:
    return f"{(at - began) / 1000:+9.3f}"
