"""Settings from flags, the environment and defaults, in this order. Nothing else reads the environment."""

import math
import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from streams.cli.exits import Exit, Stop
from streams.settings import Settings

VARIABLES: Final = {
    "brokers": "ANABRANCH_BROKERS",
    "prefix": "ANABRANCH_PREFIX",
    "lanes": "ANABRANCH_LANES",
    "concurrency": "ANABRANCH_CONCURRENCY",
    "worker_name": "ANABRANCH_WORKER_NAME",
    "window": "ANABRANCH_WINDOW",
    "session_timeout_s": "ANABRANCH_SESSION_TIMEOUT_S",
    "heartbeat_s": "ANABRANCH_HEARTBEAT_S",
    "drain_s": "ANABRANCH_DRAIN_S",
    "stall_s": "ANABRANCH_STALL_S",
    "model": "ANABRANCH_MODEL",
    "base_url": "OPENAI_BASE_URL",
    "api_key": "OPENAI_API_KEY",
}
"""The environment variable of each setting that has one."""

_NUMBERS: Final = {field.name: field.type for field in fields(Settings) if field.type in {int, float}}


def settings(environment: Mapping[str, str] | None = None, **flags: Any) -> Settings:
    """The settings of this process; a flag that is None was not given, an empty variable is none.

    Raises:
        Stop: a number is none, or makes no sense.
    """
    environment = os.environ if environment is None else environment
    given: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    for name, variable in VARIABLES.items():
        if name not in given and (text := environment.get(variable, "").strip(_BLANKS.get(name, " \t\r\n"))):
            match _NUMBERS.get(name):
                case None:
                    given[name] = text
                case kind:
                    given[name] = _seconds(variable, text) if kind is float else _number(variable, text)
    for name in ("lanes", "concurrency", "window"):
        if given.get(name, 1) < 1:
            raise Stop(f"{name} is {given[name]}; it must be 1 or more", Exit.USAGE)
    return Settings(**given)


# A key with a blank at its end stays as it is: `anabranch doctor` is to tell of it.
_BLANKS: Final = {"api_key": ""}


def _number(variable: str, text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise Stop(f"{variable} is {text!r}, which is no whole number", Exit.USAGE)
    return int(text)


def _seconds(variable: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise Stop(f"{variable} is {text!r}, which is no number of seconds above 0", Exit.USAGE)
    return seconds
