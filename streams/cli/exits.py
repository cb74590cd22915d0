"""How commands end: exit codes that scripts can use, and errors in a line."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from enum import IntEnum
from typing import Any, NoReturn, TypeVar

import typer

T = TypeVar("T")


class Exit(IntEnum):
    """Exit codes of every command."""

    FINE = 0
    POOR = 1
    """An answer that is not ``succeeded``, or a check that found problems."""
    USAGE = 2
    UNREACHABLE = 3
    """Kafka cannot be reached, or has none of our topics."""
    LATE = 4
    FAILED = 5
    """A part of the worker or the embedded broker failed."""
    INTERRUPTED = 130


CODES = (
    "0 fine, 1 an answer failed, partial or rejected, or problems found, 2 usage, 3 Kafka or its topics not "
    "there, 4 not in time, 5 a part of the worker or the broker failed, 130 interrupted."
)


class Stop(Exception):
    """A command cannot go on, for this reason and with this exit code."""

    def __init__(self, reason: str, code: Exit) -> None:
        super().__init__(reason)
        self.code = code


def run(command: Coroutine[Any, Any, T], *, uvloop: bool = False) -> T:
    """Run a command's coroutine; its known errors end the program with a line and a code."""
    factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    if uvloop and sys.platform != "win32":
        from uvloop import new_event_loop

        factory = new_event_loop
    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(command)
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None
    except BrokenPipeError:  # whoever reads us has seen enough
        sys.stderr.close()
        raise typer.Exit(Exit.FINE) from None
    except Exception as error:
        code = code_of(error)
        if code is None:
            raise
        fail(str(error), code)


def fail(reason: str, code: Exit) -> NoReturn:
    """End with a reason on stderr."""
    from streams.logging import hide

    typer.secho(f"anabranch: {hide(reason)}", fg=typer.colors.RED, err=True)
    raise typer.Exit(code)


def code_of(error: Exception) -> Exit | None:
    """The exit code that an error stands for, None where the program is broken."""
    if isinstance(error, Stop):
        return error.code
    for code, names in _ERRORS.items():
        if any(f"{kind.__module__}.{kind.__qualname__}" in names for kind in type(error).__mro__):
            return code
    return None


# By name: importing them all would cost each command what only one of them needs.
_ERRORS = {
    Exit.LATE: {"builtins.TimeoutError"},
    Exit.UNREACHABLE: {"streams.log.LogUnavailable"},
    Exit.USAGE: {
        "agents.configuration.problems.BadConfiguration",
        "agents.tools.registered.BadTools",
        "streams.access.BadAccess",
        "streams.wire.goal_fields.BadFields",
        "streams.wire.envelope.Unwritable",
        "streams.replay.files.NotAnExport",
        "agents.simulator.behaviour.BadBehaviour",
    },
    Exit.POOR: {
        "streams.replay.recording.JobUnknown",
        "streams.log.RecordRefused",
        "streams.kafka.admin.TopicRefused",
        "streams.claims.ValueLost",
        "agents.ports.ModelError",
    },
    Exit.FAILED: {"streams.broker.failures.BrokerFailed", "streams.app.WorkerFailed"},
}
