"""Flags that several commands have."""

import re
import time
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from streams.cli.exits import Exit, Stop

Brokers = Annotated[
    str | None,
    typer.Option(
        "--brokers",
        metavar="HOST:PORT,...",
        help="Kafka bootstrap servers. [dim]\\[ANABRANCH_BROKERS, or 127.0.0.1:9092][/dim]",
        show_default=False,
    ),
]
Prefix = Annotated[
    str | None,
    typer.Option(
        "--prefix",
        help="Prefix of the system's topics and groups. [dim]\\[ANABRANCH_PREFIX, or anabranch.][/dim]",
        show_default=False,
    ),
]
Lanes = Annotated[
    int | None,
    typer.Option(
        "--lanes",
        min=1,
        help="Partitions of the system, fixed for its life. [dim]\\[ANABRANCH_LANES, or 8][/dim]",
        show_default=False,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Endpoints, models, kinds and tools. [dim]\\[ANABRANCH_CONFIG, or ./anabranch.toml][/dim]",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
Home = Annotated[
    Path, typer.Option("--home", help="Where Kafka is installed and keeps its data.", show_default=True)
]
Since = Annotated[
    str,
    typer.Option(
        "--since",
        metavar="WHEN",
        help="Nothing before this: 90s, 30m, 12h, 7d ago, or a time such as 2026-11-30T16:00.",
        show_default="the beginning",
    ),
]

_AGO: Final = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def moment(text: str, option: str = "--since") -> int:
    """Milliseconds since 1970 of what ``--since``, or another option, says; 0 where it says nothing.

    Raises:
        Stop: it is no time.
    """
    if not text:
        return 0
    if ago := _AGO.fullmatch(text):
        return int((time.time() - float(ago[1]) * _SECONDS[ago[2]]) * 1_000)
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1_000)  # without a zone: the local one
    except ValueError:
        raise Stop(
            f"{option} {text!r} is no time: write 90s, 30m, 12h, 7d, or 2026-11-30T16:00", Exit.USAGE
        ) from None
