"""What the arguments of a tool may be, for each kind of sub-task.

In the configuration, for each tool, for each of its arguments, rules that must all hold::

    [kinds.research.scopes."files.read_file"]
    path = { under = ["/srv/reports"] }

    [kinds.research.scopes."sql.execute_query"]
    query = { tables = ["orders"], dialect = "sqlite" }

======================  ===================================================================
``one_of = [...]``      one of these values
``matches = "..."``     text that this regular expression matches from end to end
``min``, ``max``        a number no less, no more
``under = [...]``       a path at or below one of these folders, as it is written
``hosts = [...]``       an http or https address on one of these hosts; ``.example.org`` means
                        ``example.org`` and all below it, ``example.org:8080`` that port only
``tables = [...]``      one SQL query that reads these tables only (see :mod:`agents.tools.sql`)
``optional = true``     it may be left out; else an argument with rules must be given
======================  ===================================================================

The rules hold for each item of a list. They are kept where the call is made, on what the arguments
say: a link below a folder, a redirect of a host or a view on a table is beyond their sight, so they
are a second fence around what the server itself was given, not the only one.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, TypeAlias, TypeGuard
from urllib.parse import urlsplit

from streams.core.values import Json

MAX_TEXT: Final = 10_000
"""Characters of an argument that rules are tried on; a longer one is refused."""

MAX_SHOWN: Final = 200

WILDCARDS: Final = frozenset("*?[]")


class BadScope(ValueError):
    """A scope of the configuration that says nothing that can be kept.

    Attributes:
        tool: Whose scope it is.
        argument: And of which argument; empty where it is about the tool.
    """

    def __init__(self, tool: str, argument: str, reason: str) -> None:
        super().__init__(f'scopes."{tool}"{f".{argument}" if argument else ""}: {reason}')
        self.tool, self.argument, self.reason = tool, argument, reason


Rule: TypeAlias = Callable[[Json], str | None]
"""What is wrong with a value, in words that go on "argument x ", or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentScope:
    """What one argument may be."""

    rules: tuple[Rule, ...] = field(repr=False)
    optional: bool = False

    def wrong(self, value: Json) -> str | None:
        """What is wrong with it, or None."""
        for item in value if isinstance(value, list) else (value,):
            for rule in self.rules:
                if (found := rule(item)) is not None:
                    return found
        return None


Scope: TypeAlias = Mapping[str, ArgumentScope]
"""Of one tool, by argument."""


def read_scopes(scopes: Mapping[str, Mapping[str, Json]]) -> dict[str, Scope]:
    """The scopes of one kind, by tool.

    Raises:
        BadScope: one of them cannot be kept.
    """
    found: dict[str, Scope] = {}
    for tool, arguments in scopes.items():
        refuse_wildcards((tool,), f'scopes."{tool}"')
        if not isinstance(arguments, Mapping):
            raise BadScope(tool, "", "it must be a table of arguments")
        found[tool] = {name: _argument(tool, name, rules) for name, rules in arguments.items()}
    return found


def refuse_wildcards(names: Sequence[str], where: str) -> None:
    """Names of tools must be names.

    Raises:
        ValueError: one is a pattern.
    """
    for name in names:
        if WILDCARDS.intersection(name):
            raise ValueError(
                f"{where}: {name!r} is a pattern; name the tools that are allowed, one by one, since a "
                "server may list new ones at any time"
            )


def refusal(scope: Scope, arguments: Mapping[str, Json]) -> str | None:
    """Why a call with these arguments is not allowed, for the model, or None."""
    for name, allowed in scope.items():
        if name not in arguments:
            if not allowed.optional:
                return f"argument {name} must be given, since what it may be is limited"
        elif (wrong := allowed.wrong(arguments[name])) is not None:
            return f"argument {name} {wrong}"
    return None


def _argument(tool: str, name: str, rules: Json) -> ArgumentScope:
    def bad(reason: str) -> BadScope:
        return BadScope(tool, name, reason)

    if not isinstance(rules, Mapping) or not rules:
        raise bad('rules are wanted, such as { under = ["/data"] }')
    known = {*_READERS, "optional", "dialect", "functions"}
    for rule in rules:
        if rule not in known:
            near = get_close_matches(rule, known, 1)
            raise bad(f"there is no rule {rule!r}{f'; is it {near[0]!r}?' if near else ''}")
    optional = rules.get("optional", False)
    if not isinstance(optional, bool):
        raise bad("optional is true or false")
    if "tables" not in rules and not {"dialect", "functions"}.isdisjoint(rules):
        raise bad("dialect and functions belong to tables")
    try:
        read = tuple(_READERS[rule](value, rules) for rule, value in rules.items() if rule in _READERS)
    except ValueError as broken:
        raise bad(str(broken)) from None
    if not read:
        raise bad("optional says nothing of what it may be")
    return ArgumentScope(rules=read, optional=optional)


def _one_of(value: Json, _: Mapping[str, Json]) -> Rule:
    if not isinstance(value, list) or not value:
        raise ValueError("one_of is a list of values")
    shown = ", ".join(repr(one) for one in value)[:MAX_SHOWN]

    def rule(given: Json) -> str | None:
        # True and 1 are equal in Python, not in JSON.
        if any(given == one and isinstance(given, bool) == isinstance(one, bool) for one in value):
            return None
        return f"must be one of {shown}"

    return rule


def _matches(value: Json, _: Mapping[str, Json]) -> Rule:
    if not isinstance(value, str):
        raise ValueError("matches is a regular expression")  # noqa: TRY004 - wrong configuration, not a wrong type
    try:
        pattern = re.compile(value)
    except re.error as broken:
        raise ValueError(f"matches is no regular expression: {broken}") from None

    def rule(given: Json) -> str | None:
        if isinstance(given, str) and len(given) <= MAX_TEXT and pattern.fullmatch(given):
            return None
        return f"must match {value[:MAX_SHOWN]!r}"

    return rule


def _number(value: Json, which: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{which} is a number")  # noqa: TRY004 - as above
    return value


def _min(value: Json, _: Mapping[str, Json]) -> Rule:
    least = _number(value, "min")

    def rule(given: Json) -> str | None:
        fits = _is_number(given) and given >= least
        return None if fits else f"must be a number from {least:g} on"

    return rule


def _max(value: Json, _: Mapping[str, Json]) -> Rule:
    most = _number(value, "max")

    def rule(given: Json) -> str | None:
        fits = _is_number(given) and given <= most
        return None if fits else f"must be a number up to {most:g}"

    return rule


def _is_number(given: Json) -> TypeGuard[int | float]:
    return isinstance(given, int | float) and not isinstance(given, bool)


def _texts(value: Json, which: str) -> tuple[str, ...]:
    texts = tuple(text for text in value if isinstance(text, str) and text) if isinstance(value, list) else ()
    if not isinstance(value, list) or not texts or len(texts) != len(value):
        raise ValueError(f"{which} is a list of texts")
    return texts


def _under(value: Json, _: Mapping[str, Json]) -> Rule:
    folders = _texts(value, "under")
    for folder in folders:
        if (wrong := _odd_path(folder)) is not None:
            raise ValueError(f"under has {folder!r}, which {wrong}")
    kept = [(folder.startswith("/"), _steps(folder)) for folder in folders]
    shown = ", ".join(folders)[:MAX_SHOWN]

    def rule(given: Json) -> str | None:
        if not isinstance(given, str) or len(given) > MAX_TEXT:
            return f"must be a path below {shown}"
        if (wrong := _odd_path(given)) is not None:
            return f"{wrong}; it must be a path below {shown}"
        steps = _steps(given)
        for absolute, folder in kept:
            if absolute == given.startswith("/") and steps[: len(folder)] == folder:
                return None
        return f"must be a path below {shown}"

    return rule


def _odd_path(path: str) -> str | None:
    """Why it cannot be told where a path leads, or None."""
    if ".." in re.split(r"[/\\]", path):
        return "goes up (..)"
    if "\\" in path or any(ord(sign) < ord(" ") for sign in path):
        return "has signs that no plain path has"
    if path.startswith(("~", "//")) or "$" in path or "%" in path:
        return "may mean another place than it says"
    return None


def _steps(path: str) -> tuple[str, ...]:
    return tuple(step for step in path.split("/") if step not in ("", "."))


def _hosts(value: Json, _: Mapping[str, Json]) -> Rule:
    hosts = tuple(host.lower() for host in _texts(value, "hosts"))
    for host in hosts:
        if WILDCARDS.intersection(host) or "/" in host or "@" in host:
            raise ValueError(f"hosts has {host!r}; write example.org, .example.org or example.org:8080")
    shown = ", ".join(hosts)[:MAX_SHOWN]

    def rule(given: Json) -> str | None:
        if not isinstance(given, str) or not _on_one_of(given, hosts):
            return f"must be an http or https address on {shown}"
        return None

    return rule


def _on_one_of(address: str, hosts: Sequence[str]) -> bool:
    # Signs that readers of addresses take differently; an address that has them is written otherwise.
    if len(address) > MAX_TEXT or not re.fullmatch(r"[!#-;=?-\[\]_a-z~]+", address, re.IGNORECASE):
        return False
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or "@" in parts.netloc or not parts.hostname:
        return False
    name = parts.hostname.rstrip(".")
    port = port or (443 if parts.scheme == "https" else 80)
    for host in hosts:
        allowed, _, only = host.partition(":")
        if only and only != str(port):
            continue
        if name == allowed.removeprefix(".") or (allowed.startswith(".") and name.endswith(allowed)):
            return True
    return False


def _tables(value: Json, rules: Mapping[str, Json]) -> Rule:
    from agents.tools import sql  # noqa: PLC0415 - its parser takes half a second, and few need it

    dialect, functions = rules.get("dialect", ""), rules.get("functions", [])
    if not isinstance(dialect, str):
        raise ValueError("dialect is a text, such as sqlite")  # noqa: TRY004 - as above
    names = _texts(functions, "functions") if functions else ()
    return sql.reads_only(_texts(value, "tables"), dialect=dialect, functions=names)


_READERS: Final[Mapping[str, Callable[[Json, Mapping[str, Json]], Rule]]] = {
    "one_of": _one_of,
    "matches": _matches,
    "min": _min,
    "max": _max,
    "under": _under,
    "hosts": _hosts,
    "tables": _tables,
}
