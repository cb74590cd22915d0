"""Logging: structlog events as JSON lines, or readable on a terminal; secrets never get out.

Only programs call :func:`configure`; the library logs by ``structlog.get_logger()`` and leaves it
to them where that goes.
"""

import io
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, Final, TextIO

import orjson
import structlog

from streams.redaction import redactor

QUIET: Final = ("faust", "mode", "aiohttp", "asyncio", "httpx2", "openai", "mcp", "client")
"""Libraries of which only warnings are of interest. They build their records before any handler
could drop them, a tenth of the CPU of a busy worker, so their loggers are told."""

_Processor = Callable[[Any, str, MutableMapping[str, Any]], Any]

_hidden = [redactor(())]  # what the process's logging hides, as its logging one for all


def configure(
    *,
    secrets: Iterable[str] = (),
    level: str = "INFO",
    stream: TextIO | None = None,
    json: bool | None = None,
) -> None:
    """Send all logging of this process, the libraries' too, to *stream*.

    Args:
        secrets: Texts that never appear, wherever they stand.
        level: The least level shown.
        stream: By default stderr, which leaves stdout to what the program has to say.
        json: JSON lines; by default unless *stream* is a terminal.
    """
    stream = stream or sys.stderr
    as_json = not stream.isatty() if json is None else json
    lines = Lines(stream)
    _hidden[:] = [redactor(tuple(secrets))]
    shared: list[_Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    render: _Processor = (
        structlog.processors.JSONRenderer(serializer=_json)
        if as_json
        else structlog.dev.ConsoleRenderer(colors=True)
    )

    def last(logger: Any, name: str, event: MutableMapping[str, Any]) -> str:
        return hide(str(render(logger, name, event)))

    structlog.configure(
        processors=[*shared, last],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level)),
        logger_factory=structlog.PrintLoggerFactory(lines),  # type: ignore[arg-type]  # any text stream does
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(lines)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    # Its warnings come by the thousand while brokers are away; ``streams.kafka.outage`` listens to
    # it and speaks for it once a log is open.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    # A traceback for each line that a tool server prints where messages are wanted, and for each answer
    # that breaks off; ours are ``tool_server_noise`` and the call's own reply.
    for name in ("mcp.client.stdio", "mcp.client.streamable_http"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


class Lines(io.TextIOBase):
    """What is logged, on its way to a stream. No work fails because its log cannot be written.

    On a full disk, or where nobody reads any more, lines are lost; the next that can be written says so.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._cut: OSError | None = None

    def write(self, text: str) -> int:
        """Write it if that is possible."""
        try:
            if self._cut is not None:
                told = _json({"event": "log_cut", "level": "warning", "reason": str(self._cut)})
                self._stream.write(f"\n{told}\n")
                self._stream.flush()
                self._cut = None
            self._stream.write(text)
        except OSError as error:
            self._cut = error
        return len(text)

    def flush(self) -> None:
        """Let it out if that is possible."""
        try:
            self._stream.flush()
        except OSError as error:
            self._cut = error


def hide(text: str) -> str:
    """*text* as it may be shown: without the secrets that :func:`configure` was given, and the like."""
    return _hidden[0].text(text)


def hide_in_threads() -> None:
    """For programs: what ends a thread, Python itself writes, past all handlers."""

    def tell(told: threading.ExceptHookArgs) -> None:
        if not issubclass(told.exc_type, SystemExit):
            lines = traceback.format_exception(told.exc_type, told.exc_value, told.exc_traceback)
            sys.stderr.write(
                hide(f"Exception in thread {told.thread and told.thread.name}:\n{''.join(lines)}")
            )

    threading.excepthook = tell


def _json(value: object, **_: object) -> str:
    return orjson.dumps(value, default=repr).decode()
