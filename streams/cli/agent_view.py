"""A sub-agent's steps in lines for people, or as JSON lines for programs."""

from typing import Final, Protocol

import orjson

from agents.plain_json import dumps_text
from agents.ports import Done, GaveUp, ModelReply
from streams.cli.agent_steps import (
    ModelAnswered,
    ModelAsked,
    ModelFailed,
    Step,
    ToolCalled,
    ToolEnded,
    Waited,
)
from streams.cli.output import console, print_json, say, typed
from streams.cli.words import cut
from streams.core.values import Json, Usage

WORDS: Final = 300
"""Characters of a model's words, of arguments and of results that a line shows."""


class Steps(Protocol):
    """Shows what happens."""

    def show(self, step: Step) -> None:
        """The next step."""

    def end(self, ended: Done | GaveUp, *, simulated: bool) -> None:
        """How it ended."""


class JsonSteps:
    """One object a line, whole."""

    def show(self, step: Step) -> None:
        """The next step."""
        print_json(typed(step))

    def end(self, ended: Done | GaveUp, *, simulated: bool) -> None:
        """How it ended."""
        print_json({**typed(ended), "simulated": simulated})


class LineSteps:
    """Steps on stderr, so that the result goes alone to stdout."""

    def __init__(self) -> None:
        self._notes = console(stderr=True)

    def show(self, step: Step) -> None:
        """The next step."""
        text, style = told(step)
        say(self._notes, text, style=style)

    def end(self, ended: Done | GaveUp, *, simulated: bool) -> None:
        """How it ended."""
        cost = spent(ended.usage, simulated=simulated)
        match ended:
            case Done(result=result):
                say(self._notes, f"done: {cost}", style="green")
                say(console(), _whole(result))
            case GaveUp(kind=kind, reason=reason, final=final):
                again = "no further attempt can help" if final else "another attempt may do better"
                say(self._notes, f"no result: {kind}: {reason} ({again}); {cost}", style="red")


def told(step: Step) -> tuple[str, str]:
    """A step in a line or two, and its style."""
    match step:
        case ModelAsked(n=n, tried=tried, messages=messages, tools=tools, max_tokens=most):
            again = f", try {tried}" if tried > 1 else ""
            offered = f", tools {', '.join(tools)}" if tools else ", no tools"
            return f"call {n}{again}: {messages} messages{offered}, at most {most} tokens", "dim"
        case ModelAnswered(n=n, reply=reply):
            return "\n".join([f"call {n}: {_answered(reply)}", *_said(reply)]), ""
        case ModelFailed(n=n, tried=tried, kind=kind, reason=reason, decision=decision):
            where = " at ".join(filter(None, (step.model, step.endpoint)))
            return (
                f"call {n}, try {tried}: {kind} ({where or 'no endpoint'}): {reason} -> {decision}",
                "yellow",
            )
        case Waited(seconds=None):
            return "waits for its turn", "yellow"
        case Waited(seconds=seconds):
            return f"waits {seconds:.1f} s", "yellow"
        case ToolCalled(call=call):
            return f"  {call.name} {cut(call.arguments, WORDS)}", "cyan"
        case ToolEnded(call=call, reply=reply):
            output = cut(_plain(reply.output), WORDS)
            shared = ", shared" if reply.shared else ""
            if reply.error is None:
                return f"  {call.name}: {output} ({reply.latency_ms:,.0f} ms{shared})", ""
            return f"  {call.name}: {reply.error}: {output} ({reply.latency_ms:,.0f} ms)", "yellow"


def _answered(reply: ModelReply) -> str:
    usage = reply.usage
    first = "" if reply.first_token_ms is None else f", first token after {reply.first_token_ms:,.0f} ms"
    where = " at ".join(filter(None, (reply.model, reply.endpoint)))
    about = "about " if usage.estimated else ""
    return (
        f"{where}, {about}{usage.tokens_in:,} tokens in ({usage.tokens_cached:,} cached), "
        f"{usage.tokens_out:,} out, {_money(usage, simulated=reply.simulated)}, "
        f"{reply.latency_ms:,.0f} ms{first}, {reply.finish_reason}"
    )


def _said(reply: ModelReply) -> list[str]:
    thought = reply.message.get("reasoning_content")
    lines = [f"  thinks: {cut(thought, WORDS)}"] if isinstance(thought, str) and thought.strip() else []
    return lines + ([f"  says: {cut(reply.text, WORDS)}"] if reply.text.strip() else [])


def spent(usage: Usage, *, simulated: bool) -> str:
    """What all of it cost."""
    return (
        f"{usage.calls} calls, {usage.tool_calls} tool calls, {usage.tokens_in:,} tokens in, "
        f"{usage.tokens_out:,} out, {_money(usage, simulated=simulated)}"
    )


def _money(usage: Usage, *, simulated: bool) -> str:
    return "simulated" if simulated else f"${usage.usd:.4f}"


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else dumps_text(value)


def _whole(result: Json) -> str:
    return result if isinstance(result, str) else orjson.dumps(result, option=orjson.OPT_INDENT_2).decode()
