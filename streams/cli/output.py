"""What commands print: tables and lines for people, JSON lines for programs."""

import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from streams.core.commands import Answer

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What a terminal obeys instead of showing it; a new line and a tab may stay."""


def console(*, stderr: bool = False) -> "Console":
    """A console as wide as the terminal; lines for a pipe are not folded."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, emoji=False, soft_wrap=not stream.isatty())


def say(out: "Console", text: str, *, style: str = "") -> None:
    """Print a text that others wrote as it is, but for what would command the terminal."""
    out.print(
        _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text), markup=False, soft_wrap=True, style=style or None
    )


def print_json(value: object) -> None:
    """One JSON object on a line of its own."""
    import orjson

    line = orjson.dumps(value, default=_plain, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS)
    sys.stdout.write(line.decode())
    sys.stdout.flush()


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value)


def typed(value: object) -> dict[str, Any]:
    """The fields of a frozen value, its type first; for :func:`print_json`."""
    from dataclasses import fields

    names = [field.name for field in fields(value)]  # type: ignore[arg-type]  # whoever calls has one
    return {"type": type(value).__name__, **{name: getattr(value, name) for name in names}}


def answer_json(answer: "Answer") -> dict[str, Any]:
    """An answer as its topic has it, and its headers."""
    import orjson

    from streams.wire.answers import write_answer

    value, _ = write_answer(answer)
    return {**orjson.loads(value), "headers": answer.headers}


def print_answer(answer: "Answer", *, as_json: bool) -> None:
    """An answer to stdout: its text or JSON alone, so that it can go on to another program."""
    if as_json:
        print_json(answer_json(answer))
        return
    from streams.core.values import Reference

    out = console()
    colour = {"succeeded": "green", "partial": "yellow"}.get(answer.outcome, "red")
    notes = console(stderr=True)
    notes.print(f"[{colour}]{answer.outcome}[/{colour}] [bold]{answer.job}[/bold]", soft_wrap=True)
    if answer.reason:
        say(notes, answer.reason)
    for why in answer.refused:
        say(notes, f"refused: {why}")
    if isinstance(answer.answer, Reference):
        notes.print(f"its value of {answer.answer.size} bytes is past its retention")
    elif isinstance(answer.value, str):
        say(out, answer.value)
    elif answer.value is not None:
        import orjson

        say(out, orjson.dumps(answer.value, option=orjson.OPT_INDENT_2).decode())
