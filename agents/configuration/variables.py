"""What environment variables say beside the file: keys, secrets of tool servers, what differs by host."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

BASE_URL, API_KEY, MODEL = "OPENAI_BASE_URL", "OPENAI_API_KEY", "ANABRANCH_MODEL"
"""What fills what the file leaves out."""

OVERRIDABLE: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "endpoints": (
        "ANABRANCH_ENDPOINT",
        ("base_url", "requests_per_minute", "tokens_per_minute", "concurrency"),
    ),
    "servers": ("ANABRANCH_SERVER", ("url", "requests_per_minute", "concurrency")),
}
"""By table: what its variables begin with, and which keys they may set."""

NOT_SECRET: Final = frozenset(
    {
        *("HOME", "HOSTNAME", "LANG", "LC_ALL", "LOGNAME", "PATH", "PWD", "SHELL", "TERM", "TMPDIR", "TZ"),
        *("USER", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
        *("APPDATA", "LOCALAPPDATA", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE"),
    }
)
"""Variables whose values are known to everybody on the machine. What others hold is never shown."""

LEAST_SECRET: Final = 4
"""Characters; what is shorter (a level, a flag) would be hidden in every second word."""

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def variable(section: str, name: str, key: str) -> str:
    """The variable that sets a key of a table: ``ANABRANCH_ENDPOINT_KIMI_BASE_URL``."""
    start, _ = OVERRIDABLE[section]
    return f"{start}_{re.sub('[^A-Z0-9]', '_', name.upper())}_{key.upper()}"


def overrides(section: str, name: str, environment: Mapping[str, str]) -> Iterator[tuple[str, str, Any]]:
    """Keys of a table that variables set: the key, its variable, its value; an empty variable is none.

    Where a number is wanted and none is there the value stays the text, which the table then refuses.
    """
    if section not in OVERRIDABLE:
        return
    for key in OVERRIDABLE[section][1]:
        where = variable(section, name, key)
        if text := environment.get(where, "").strip():
            is_number = not key.endswith("url") and text.isascii() and text.isdigit() and len(text) < 20  # noqa: PLR2004 - more digits than any bound
            yield key, where, int(text) if is_number else text


def stray(names: Mapping[str, tuple[str, ...]], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Variables that look as if they set a key of a table, and set none.

    Args:
        names: By table, the names in it.
        environment: All variables.
    """
    known = {
        variable(section, name, key)
        for section, (_, keys) in OVERRIDABLE.items()
        for name in names.get(section, ())
        for key in keys
    }
    starts = tuple(f"{start}_" for start, _ in OVERRIDABLE.values())
    return tuple(sorted(name for name in environment if name.startswith(starts) and name not in known))


def references(text: str) -> tuple[str, ...]:
    """The variables that a text refers to by ``${NAME}``."""
    return tuple(_REFERENCE.findall(text))


def filled(text: str, environment: Mapping[str, str]) -> str:
    """The text with the values of the variables it refers to; one that is not set is empty."""
    return _REFERENCE.sub(lambda found: environment.get(found[1], ""), text)


def secrets(texts: Mapping[str, str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables in these texts that must never be shown."""
    found = (
        environment.get(name, "")
        for text in texts.values()
        for name in references(text)
        if name not in NOT_SECRET
    )
    return tuple(dict.fromkeys(value for value in found if len(value.strip()) >= LEAST_SECRET))
