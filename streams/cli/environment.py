"""Settings from flags, ``anabranch.toml``, the environment and defaults, in this order.

Nothing else reads the environment.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from streams import access
from streams.access import SASL_SSL, SSL, Access, BadAccess
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
    "entry_key": "ANABRANCH_ENTRY_KEY",
}
"""The environment variable of each setting that has one."""

CONFIG: Final = "ANABRANCH_CONFIG"
"""The variable that names the file of the agents' side."""

FILE: Final = Path("anabranch.toml")
"""The file where neither flag nor variable names one, if it is there."""

_NUMBERS: Final = {field.name: field.type for field in fields(Settings) if field.type in {int, float}}


def settings(environment: Mapping[str, str] | None = None, **flags: Any) -> Settings:
    """The settings of this process; a flag that is None was not given, an empty variable is none.

    Raises:
        Stop: a number is none, or makes no sense; an address is none; what is said of Kafka's security
            does not fit together.
    """
    environment = os.environ if environment is None else environment
    given: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    given.setdefault("access", kafka_access(environment))
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
    if address := given.get("base_url"):
        _check_address(address)
    if key := given.get("entry_key"):
        _check_entry_key(key)
    return Settings(**given)


def _check_entry_key(key: str) -> None:
    """It can be signed with.

    Raises:
        Stop: it cannot; its text is not repeated.
    """
    from streams.entry import signing_key

    try:
        signing_key(key)
    except ValueError as error:
        raise Stop(f"{VARIABLES['entry_key']} is none: {error}", Exit.USAGE) from None


def _check_address(address: str) -> None:
    """The endpoint's address can be asked, and holds nothing that its errors must not show.

    Raises:
        Stop: it is none, or holds a user or a password.
    """
    import httpx2

    variable = VARIABLES["base_url"]
    try:
        url = httpx2.URL(address)
    except httpx2.InvalidURL as error:
        raise Stop(f"{variable} is {address[:200]!r}, which is no address: {error}", Exit.USAGE) from None
    if url.userinfo:
        raise Stop(
            f"{variable} holds a user or a password; the key goes into {VARIABLES['api_key']}", Exit.USAGE
        )


def configured(
    ours: Settings,
    *,
    config: Path | None = None,
    base_url: str | None = None,
    model: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """The settings with what the file of the agents' side says, where there is one.

    Args:
        ours: The settings without it.
        config: The flag that names the file; it goes before the variable, and that before :data:`FILE`.
        base_url: A flag that names the one endpoint there is to be, so that no file is read.
        model: A flag that names the model where goal, plan and kind name none.
        environment: All variables; None: those of this process.

    Raises:
        Stop: the file cannot be read, or the flags do not fit together.
        BadConfiguration: the file says what cannot be; its problems have their lines.
    """
    environment = os.environ if environment is None else environment
    if base_url is not None:
        if config is not None:
            raise Stop(
                "--base-url is for one endpoint, --config for a file of them: leave one out", Exit.USAGE
            )
        return ours
    named = config or (Path(text) if (text := environment.get(CONFIG, "").strip()) else None)
    if named is None and not FILE.is_file():
        return ours
    from agents.configuration.building import with_model
    from agents.configuration.problems import nearest
    from agents.configuration.reading import decoded, read_configuration
    from streams.wire.tenant_rules import default_faults

    file = named or FILE
    try:
        text = decoded(file.read_bytes(), path=str(file))
    except OSError as error:
        reason = error.strerror or error
        raise Stop(
            f"{file} cannot be read ({reason}): --config and {CONFIG} name the file", Exit.USAGE
        ) from None
    found = read_configuration(text, path=str(file), environment=environment, goal_faults=default_faults)
    if model is not None:
        if not found.open_models and model not in found.models:
            raise Stop(
                f"--model {model}: no model of {file} has that name; {nearest(model, list(found.models))}",
                Exit.USAGE,
            )
        found = with_model(found, model)
    return replace(ours, configured=found)


def stray_variables(ours: Settings, environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Variables that look as if they set something of an endpoint or a tool server, and set nothing."""
    from agents.configuration.variables import stray

    names = {"endpoints": tuple(ours.configuration.endpoints), "servers": tuple(ours.configuration.servers)}
    return stray(names, os.environ if environment is None else environment)


def kafka_access(environment: Mapping[str, str]) -> Access:
    """How to connect to Kafka: as Kafka's own clients are told, and without secrets among the flags.

    Without a protocol it is SASL_SSL where a mechanism is set, and SSL where certificates are.

    Raises:
        Stop: it does not fit together, or a file with a secret cannot be read.
    """
    given = {
        name: text for name, variable in access.VARIABLES.items() if (text := environment.get(variable, ""))
    }
    for name in access.IN_FILES:
        variable = f"{access.VARIABLES[name]}_FILE"
        if path := environment.get(variable):
            if name in given:
                raise Stop(
                    f"{access.VARIABLES[name]} and {variable} are both set: which of them?", Exit.USAGE
                )
            try:
                given[name] = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
            except (OSError, UnicodeDecodeError) as error:
                raise Stop(f"{variable} {path} cannot be read: {error}", Exit.USAGE) from None
    for name in ("protocol", "mechanism"):
        if name in given:
            given[name] = given[name].strip().upper()
    if not given.get("protocol"):
        with_tls = "ca_file" in given or "certificate_file" in given
        given["protocol"] = SASL_SSL if given.get("mechanism") else SSL if with_tls else access.PLAINTEXT
    try:
        return Access(**given)
    except BadAccess as error:
        raise Stop(str(error), Exit.USAGE) from None


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
