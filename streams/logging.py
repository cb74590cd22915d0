"""Logging: structlog events as JSON lines, or readable on a terminal; secrets never get out.

Only programs call :func:`configure`; the library logs by ``structlog.get_logger()`` and leaves it
to them where that goes.
"""

import logging
import re
import sys
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, Final, TextIO

import orjson
import structlog

HIDDEN: Final = "<secret>"

QUIET: Final = ("faust", "mode", "aiohttp", "asyncio", "httpx2", "openai")
"""Libraries of which only warnings are of interest. They build their records before any handler
could drop them, a tenth of the CPU of a busy worker, so their loggers are told."""

_SHAPES: Final = re.compile(
    r"\b(?:sk|pk|gsk|xai)[-_][A-Za-z0-9_-]{12,}"  # what providers' keys look like
    r"|(?<=Bearer )[^\s\"'\\]+"
    r"|(?<=://)[^/\s:@\"]+:[^/\s@\"]+(?=@)"  # user:password of an address
)

_Processor = Callable[[Any, str, MutableMapping[str, Any]], Any]


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
    hide = hiding(secrets)
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
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
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


def hiding(secrets: Iterable[str]) -> Callable[[str], str]:
    """A function that takes these secrets, and whatever looks like one, out of a text."""
    known = [form for secret in secrets if secret.strip() for form in (secret, _json(secret)[1:-1])]
    exact = re.compile("|".join(map(re.escape, sorted(set(known), key=len, reverse=True)))) if known else None

    def hide(text: str) -> str:
        if exact is not None:
            text = exact.sub(HIDDEN, text)
        return _SHAPES.sub(HIDDEN, text)

    return hide


def _json(value: object, **_: object) -> str:
    return orjson.dumps(value, default=repr).decode()
