"""What the tables say of one another: every model, endpoint, server and tool that is named is there."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agents.configuration.problems import Path, dotted, nearest, shown
from agents.configuration.schemas import json_faults, schema_faults
from agents.configuration.tables import (
    CallTable,
    EndpointTable,
    EntryTable,
    KindTable,
    ModelTable,
    OthersTable,
    ServerTable,
    Table,
    TenantTable,
    ToolsTable,
)
from agents.configuration.values import DEFAULT, Bounds
from agents.configuration.variables import references
from agents.tools.scopes import BadScope, read_scopes

Fault = tuple[Path, str, str]
"""Where it is, what is wrong, and what to do."""


LEAST_KEY: Final = 16
"""Characters of a key that goals are signed with."""

WILD: Final = frozenset("*?[]")
"""What wildcards are made of."""


@dataclass(slots=True)
class Tables:
    """The tables that could be read, each without the keys that could not.

    Attributes:
        names: By section, all names in the file, those of tables that could not be read too.
        unread: Keys that are there and could not be read.
    """

    endpoints: dict[str, EndpointTable] = field(default_factory=dict)
    models: dict[str, ModelTable] = field(default_factory=dict)
    kinds: dict[str, CallTable] = field(default_factory=dict)
    servers: dict[str, ServerTable] = field(default_factory=dict)
    tenants: dict[str, TenantTable] = field(default_factory=dict)
    tools: ToolsTable = field(default_factory=ToolsTable)
    tenant: OthersTable = field(default_factory=OthersTable)
    entry: EntryTable | None = None
    defaults: dict[str, Any] = field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unread: set[Path] = field(default_factory=set)

    def lacks(self, table: Table, *path: str) -> bool:
        """The key of *path* does not stand in its table."""
        return getattr(table, path[-1]) is None and path not in self.unread

    def named(self, section: str) -> tuple[str, ...]:
        """The names in a section."""
        return self.names.get(section, ())


def faults(tables: Tables, *, model: str, environment: Mapping[str, str]) -> Iterator[Fault]:
    """All that does not fit together.

    Args:
        model: The model that the environment names for what the file leaves open; empty: none.
        environment: All variables.
    """
    yield from _endpoints(tables)
    yield from _models(tables)
    yield from _default(tables, model)
    for name, kind in tables.kinds.items():
        yield from _kind(tables, ("kinds", name), kind)
    for name, server in tables.servers.items():
        yield from _server(tables, ("servers", name), server, environment)
    if tables.entry is not None and not any(at[:1] == ("entry",) for at in tables.unread):
        yield from _entry(tables.entry, environment)


def _entry(entry: EntryTable, environment: Mapping[str, str]) -> Iterator[Fault]:
    keys = entry.keys or {}
    if bool(entry.header) != bool(entry.principals):
        has, lacks = ("header", "principals") if entry.header else ("principals", "header")
        told = f"entry has {has} and no {lacks}"
        yield ("entry", has), told, "a header says who sent a goal, principals whose goals that one may send"
    elif not entry.principals and not keys:
        yield ("entry",), "entry lets nobody in", "write header and principals, or tables [entry.keys.NAME]"
    if keys and entry.worker is not None and entry.worker not in keys:
        told = f"entry.worker is {shown(entry.worker)}, and no key has that name"
        yield ("entry", "worker"), told, nearest(entry.worker, tuple(keys))
    for name, key in keys.items():
        here: Path = ("entry", "keys", name, "variable")
        held = environment.get(key.variable, "").strip()
        if not held:
            told = f"{dotted(here)} wants the variable {key.variable}, which is not set"
            yield here, told, f"set {key.variable}, to the same at every worker"
        elif len(held) < LEAST_KEY:
            told = f"the variable {key.variable} holds {len(held)} characters, too few for a key"
            yield here, told, f"make one of at least {LEAST_KEY}, by `openssl rand -hex 32`"


def _endpoints(tables: Tables) -> Iterator[Fault]:
    for name, endpoint in tables.endpoints.items():
        at = ("endpoints", name)
        if tables.lacks(endpoint, *at, "base_url") and len(tables.named("endpoints")) > 1:
            yield (
                at,
                f"{dotted(at)} has no base_url, and there are several endpoints",
                'write it; OpenAI\'s own is "https://api.openai.com/v1"',
            )


def _models(tables: Tables) -> Iterator[Fault]:
    endpoints = tables.named("endpoints") or (DEFAULT,)
    if len(endpoints) > 1 and not tables.named("models"):
        yield (
            ("endpoints",),
            "there are several endpoints, and no model says which of them it is at",
            "add tables [models.NAME], each with its endpoint",
        )
    for name, each in tables.models.items():
        at = ("models", name)
        if each.endpoint is None:
            if len(endpoints) > 1 and tables.lacks(each, *at, "endpoint"):
                told = f"{dotted(at)} has no endpoint, and there are several"
                yield at, told, f"write endpoint = ...; {nearest('', endpoints)}"
        elif each.endpoint not in endpoints:
            told = f"{dotted(at)}.endpoint is {shown(each.endpoint)}, and no endpoint has that name"
            yield (*at, "endpoint"), told, nearest(each.endpoint, endpoints)


def _default(tables: Tables, model: str) -> Iterator[Fault]:
    """A model for whatever names none."""
    models, default = tables.named("models"), tables.kinds.get(DEFAULT)
    if not models or (default is not None and default.models):
        return
    at: Path = ("kinds", DEFAULT) if default is not None else ("models",)
    if model and model not in models:
        told = f"ANABRANCH_MODEL is {shown(model)}, which is no model of this file"
        yield at, told, nearest(model, models)
    elif not model and len(models) > 1:
        told = "nothing says which model is used where goal, plan and kind name none"
        yield at, told, f'write models = ["{models[0]}"] in [kinds.default], or set ANABRANCH_MODEL'


def _kind(tables: Tables, at: Path, kind: CallTable) -> Iterator[Fault]:
    models = tables.named("models")
    if models or len(tables.named("endpoints")) > 1:
        for index, name in enumerate(kind.models or ()):
            if name not in models:
                told = f"{dotted((*at, 'models'))} names {shown(name)}, and no model has that name"
                yield (*at, "models", index), told, nearest(name, models)
    if not isinstance(kind, KindTable):
        return
    for index, tool in enumerate(kind.tools or ()):
        yield from _tool(tables, (*at, "tools", index), tool)
    for tool, scope in (kind.scopes or {}).items():
        here = (*at, "scopes", tool)
        if tool in tables.named("servers"):
            to_do = f'write the whole name in quotes: [{dotted(here[:-1])}."{tool}.TOOL"]'
            yield here, f"{dotted(here)} is the scope of a server, not of a tool", to_do
            continue
        yield from _tool(tables, here, tool)
        if kind.tools is not None and tool not in kind.tools:
            told = f"{dotted(here)} is the scope of a tool that the kind may not use"
            yield here, told, "add it to tools, or leave the scope out"
        if not WILD & set(tool):
            yield from list(json_faults(here, scope)) or _scope(here, tool, scope)
    if kind.schema_ is not None:
        yield from schema_faults((*at, "schema"), kind.schema_)
    others = tables.kinds.get(DEFAULT)
    default = others if isinstance(others, KindTable) else KindTable()
    turn = kind.turn_tokens or default.turn_tokens or Bounds().turn_tokens
    task = kind.task_tokens or default.task_tokens or Bounds().task_tokens
    if turn > task and (kind.turn_tokens or kind.task_tokens):
        told = f"{dotted(at)} allows {turn:,} tokens a turn and {task:,} a task"
        key = "turn_tokens" if kind.turn_tokens is not None else "task_tokens"
        yield (*at, key), told, "make task_tokens the larger one"


def _scope(at: Path, tool: str, scope: Mapping[str, Any]) -> Iterator[Fault]:
    """What of a scope cannot be kept, one argument after the other."""
    for argument, rules in scope.items():
        try:
            read_scopes({tool: {argument: rules}})
        except BadScope as bad:
            here = (*at, argument)
            yield here, f"{dotted(here)}: {bad.reason}", "docs/tools.md has all rules"
        except (ValueError, OverflowError, RecursionError) as bad:  # patterns that no machine can keep
            here = (*at, argument)
            yield here, f"{dotted(here)} cannot be kept: {bad}", "docs/tools.md has all rules"


def _tool(tables: Tables, at: Path, tool: str) -> Iterator[Fault]:
    """A tool with a dot is one of a server; which others there are, only the process that has them knows."""
    server, dot, name = tool.partition(".")
    if WILD & set(tool):
        yield from _wildcard(at, tool)
        return
    if not dot:
        return
    if server not in tables.named("servers"):
        told = f"{dotted(at)} is {shown(tool)}, and no tool server has the name {shown(server)}"
        yield at, told, nearest(server, tables.named("servers"))
        return
    read = tables.servers.get(server)
    if read is not None and read.tools is not None and name not in read.tools:
        told = f"{dotted(at)} is {shown(tool)}, which servers.{server}.tools does not name"
        yield at, told, nearest(name, read.tools)


def _wildcard(at: Path, tool: str) -> Iterator[Fault]:
    """Whoever writes one allows what a server may offer tomorrow."""
    if WILD & set(tool):
        yield at, f"{dotted(at)} is {shown(tool)}, a wildcard", "name the tools, each by its own name"


def _server(
    tables: Tables, at: tuple[str, str], server: ServerTable, environment: Mapping[str, str]
) -> Iterator[Fault]:
    name = dotted(at)
    if tables.lacks(server, *at, "url") and tables.lacks(server, *at, "command"):
        yield at, f"{name} has neither command nor url", 'write command = ["program", "argument"], or url'
    if server.url is not None and server.command is not None:
        yield (*at, "url"), f"{name} has a command and a url", "leave one of them out"
    if server.environment is not None and server.command is None and server.url is not None:
        told = f"{name}.environment is for a server that is started by command"
        yield (*at, "environment"), told, "leave it out; what a url wants stands in headers"
    if server.headers is not None and server.url is None and server.command is not None:
        yield (*at, "headers"), f"{name}.headers is for a server with a url", "leave it out"
    for key, values in (("environment", server.environment), ("headers", server.headers)):
        yield from _variables((*at, key), values or {}, environment)
    for key, tools in (("tools", server.tools), ("once", server.once), ("read_only", server.read_only)):
        for index, tool in enumerate(tools or ()):
            yield from _wildcard((*at, key, index), tool)
    both = set(server.once or ()) & set(server.read_only or ())
    for index, tool in enumerate(server.read_only or ()):
        if tool in both:
            told = f"{name} has {shown(tool)} among once and read_only"
            yield (
                (*at, "read_only", index),
                told,
                "name it in one: what changes the world is no read-only tool",
            )
    for key, tools in (("once", server.once), ("read_only", server.read_only)):
        for index, tool in enumerate(tools or ()):
            if server.tools is not None and tool not in server.tools and not WILD & set(tool):
                told = f"{name}.{key} names {shown(tool)}, which {name}.tools does not"
                yield (*at, key, index), told, nearest(tool, server.tools)


def _variables(at: Path, values: Mapping[str, str], environment: Mapping[str, str]) -> Iterator[Fault]:
    for key, text in values.items():
        here = (*at, key)
        bare = text
        for name in references(text):
            bare = bare.replace("${" + name + "}", "")
            held = environment.get(name)
            if not held:
                yield here, f"{dotted(here)} wants the variable {name}, which is not set", f"set {name}"
            elif at[-1] == "headers" and ("\n" in held or "\r" in held):
                yield here, f"the variable {name} has an end of line in it", "no header can hold that"
        if "${" in bare:
            to_do = "write ${NAME}: letters, digits and _"
            yield here, f"{dotted(here)} refers to a variable that has no name", to_do
        elif text and bare == text and _is_secret(at[-1], key, text):
            example = "Bearer ${NAME}" if key.lower() == "authorization" else "${NAME}"
            yield here, f"{dotted(here)} holds its secret itself", f'write "{example}", and set NAME'


def _is_secret(table: str | int, key: str, text: str) -> bool:
    """By its name a header or variable holds a secret, and no path to one."""
    if table == "headers":
        return key.lower() in SECRET_HEADERS
    return SECRET_VARIABLES.search(key) is not None and not text.startswith(("/", "./", "../", "~"))


SECRET_HEADERS: Final = frozenset(
    {"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-goog-api-key"}
)
"""Headers that hold nothing but secrets."""

SECRET_VARIABLES: Final = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE
)
"""Variables that do."""
