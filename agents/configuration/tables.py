"""The tables of ``anabranch.toml``: which keys each may have, of what type and in which bounds.

Defaults are those of :mod:`agents.configuration.values`; None here means that a key is left out.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from httpx2 import URL, InvalidURL
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from agents.configuration.patterns import BadPattern, pattern
from agents.configuration.problems import is_secret, shown
from agents.configuration.tenants import ALL
from agents.configuration.values import JsonMode, Reasoning, Thinking, TokensParameter

MOST: Final = 1_000_000_000
"""No count is larger: more requests, tokens or bytes a minute or a call have no meaning."""

DAY_S: Final = 86_400.0


def own(what: str, to_do: str) -> PydanticCustomError:
    """A fault in words of ours."""
    return PydanticCustomError("own", "{what}; {to_do}", {"what": what, "to_do": to_do})


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        well = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        URL(text)  # what the clients take for an address
    except (ValueError, InvalidURL):
        well, parts = False, urlsplit("")
    if not well or re.search(r"[\s\x00-\x1f\x7f]", text):
        raise own(f"is {shown(text)}, which is no address", "write http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise own("has a user or a password in it", "give a key by key_variables, or a header by ${VARIABLE}")
    return text


def _base_url(text: str) -> str:
    parts = urlsplit(_address(text))
    if parts.query or parts.fragment:
        raise own(f"is {shown(text)}", "leave out what begins with ? or #")
    return text


def _matching(shape: str, what: str, to_do: str) -> AfterValidator:
    pattern = re.compile(shape)

    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise own(f"is {shown(text)}, which is no {what}", to_do)
        return text

    return AfterValidator(check)


def _variable(text: str) -> str:
    if is_secret(text):
        raise own("holds a key itself", "put the key into an environment variable, and that one's name here")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise own(
            "is no name of an environment variable", 'write the name of the one that holds the key, "NAME"'
        )
    return text


def _tool(text: str) -> str:
    if not re.fullmatch(r"[^\s\x00-\x1f\x7f]{1,128}", text):
        raise own(f"is {shown(text)}, which is no name of a tool", "write 1 to 128 characters without blanks")
    return text


def _pattern(text: str) -> str:
    try:
        pattern(text)
    except BadPattern as bad:
        raise own(f"is {shown(text)}, which is no pattern: {bad}", "see docs.rs/regex/#syntax") from None
    return text


def _tenant(text: str) -> str:
    if text != ALL and not re.fullmatch(_TENANT, text):
        raise own(f"is {shown(text)}, which is no tenant", f'{_TENANTS_OWN}, or "{ALL}" for all')
    return text


def _distinct(names: list[str]) -> list[str]:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise own(f"names {shown(twice[0])} twice", "name it once")
    return names


_TENANT: Final = r"[A-Za-z0-9._~-]{1,128}"
_TENANTS_OWN: Final = "write 1 to 128 letters, digits, . _ ~ or -"
_HEADER: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # RFC 9110, section 5.6.2

Name = Annotated[
    str,
    _matching(
        r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", "name", "write 1 to 64 of the letters A-Z and a-z, digits, - and _"
    ),
]
Word = Annotated[
    str,
    _matching(r"[^\s\x00-\x1f\x7f]{1,200}", "name", "write 1 to 200 characters without blanks"),
]
Variable = Annotated[str, AfterValidator(_variable)]
Tool = Annotated[str, AfterValidator(_tool)]
Tools = Annotated[list[Tool], AfterValidator(_distinct)]
Text = Annotated[str, _matching(r"[^\x00]*", "text", "leave out the zero character")]
FilledText = Annotated[str, _matching(r"[^\x00]*[^\x00\s][^\x00]*", "text", "write at least one letter")]
Count = Annotated[int, Field(ge=1, le=MOST)]
Seconds = Annotated[float, Field(gt=0, le=DAY_S)]
Dollars = Annotated[float, Field(ge=0, le=1_000_000)]
Tenants = Annotated[
    list[Annotated[str, AfterValidator(_tenant)]], Field(min_length=1), AfterValidator(_distinct)
]
Module = Annotated[
    str,
    _matching(
        r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*",
        "place of a tool",
        'write "package.module:name"',
    ),
]


class Table(BaseModel):
    """A table: no other keys, and no value that has to be guessed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class EndpointTable(Table):
    """``[endpoints.NAME]``."""

    base_url: Annotated[str, AfterValidator(_base_url)] | None = None
    key_variables: Annotated[list[Variable], Field(min_length=1), AfterValidator(_distinct)] | None = None
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    concurrency: Count | None = None
    thinking: Thinking | None = None
    reasoning: Reasoning | None = None
    tokens_parameter: TokensParameter | None = None
    sampling: bool | None = None
    json_mode: JsonMode | None = None
    streaming: bool | None = None
    first_token_s: Seconds | None = None
    stall_s: Seconds | None = None


class PricesTable(Table):
    """``[models.NAME.prices]``."""

    tokens_in: Dollars
    tokens_out: Dollars
    tokens_cached: Dollars | None = None


class ModelTable(Table):
    """``[models.NAME]``."""

    endpoint: str | None = None
    id: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    context_tokens: Count | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    prices: PricesTable | None = None


class CallTable(Table):
    """``[kinds.planner]``, ``[kinds.synthesis]`` and ``[kinds.judge]``: calls that are no sub-agent's."""

    models: Annotated[list[str], Field(min_length=1), AfterValidator(_distinct)] | None = None
    thinking: bool | None = None
    timeout_s: Seconds | None = None


class KindTable(CallTable):
    """``[kinds.NAME]``."""

    tools: Tools | None = None
    scopes: dict[Tool, dict[str, Any]] | None = None
    # `schema` is a method of pydantic's models.
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    rounds: Annotated[int, Field(ge=0, le=1_000)] | None = None
    turn_tokens: Count | None = None
    task_tokens: Count | None = None
    calls: Annotated[int, Field(ge=1, le=1_000)] | None = None
    side_by_side: Annotated[int, Field(ge=1, le=1_000)] | None = None
    tool_s: Seconds | None = None


class ServerTable(Table):
    """``[servers.NAME]``."""

    command: Annotated[list[FilledText], Field(min_length=1)] | None = None
    url: Annotated[str, AfterValidator(_address)] | None = None
    environment: (
        dict[Annotated[str, _matching(r"[^\s=\x00]+", "variable", "write its name alone")], Text] | None
    ) = None
    headers: (
        dict[
            Annotated[str, _matching(_HEADER, "name of a header", "see RFC 9110")],
            Annotated[str, _matching(r"[^\x00\r\n]*", "value of a header", "leave out the ends of lines")],
        ]
        | None
    ) = None
    tools: Tools | None = None
    once: Tools | None = None
    read_only: Tools | None = None
    requests_per_minute: Count | None = None
    concurrency: Annotated[int, Field(ge=1, le=10_000)] | None = None
    start_s: Seconds | None = None
    call_s: Seconds | None = None


class ToolsTable(Table):
    """``[tools]``."""

    modules: Annotated[list[Module], AfterValidator(_distinct)] | None = None
    sandbox: bool | None = None
    sandbox_s: Seconds | None = None
    sandbox_bytes: Annotated[int, Field(ge=16_777_216, le=1_099_511_627_776)] | None = None
    sandbox_output: Annotated[int, Field(ge=1_024, le=16_777_216)] | None = None


class DayTable(Table):
    """``[tenants.NAME.day]``."""

    tokens: Annotated[int, Field(ge=1, le=10**15)] | None = None
    calls: Annotated[int, Field(ge=1, le=10**15)] | None = None
    usd: Annotated[float, Field(gt=0, le=10**15)] | None = None


class UnwantedTable(Table):
    """One of ``refuse`` in ``[tenants.NAME.gate]``."""

    pattern: Annotated[str, AfterValidator(_pattern)]
    reason: FilledText


class GateTable(Table):
    """``[tenants.NAME.gate]``."""

    refuse: Annotated[list[UnwantedTable], Field(max_length=100)] | None = None
    longest: Count | None = None
    model: bool | None = None


class OthersTable(Table):
    """``[tenant]``: all tenants, where their own tables say nothing."""

    weight: Annotated[int, Field(ge=1, le=1_000)] | None = None
    jobs: Count | None = None
    in_flight: Count | None = None
    requests_per_second: Annotated[float, Field(ge=0.02, le=1_000_000)] | None = None
    day: DayTable | None = None
    gate: GateTable | None = None


class TenantTable(OthersTable):
    """``[tenants.NAME]``."""

    defaults: dict[str, Any] | None = None


class EntryKeyTable(Table):
    """``[entry.keys.NAME]``."""

    variable: Variable
    tenants: Tenants


class EntryTable(Table):
    """``[entry]``."""

    header: Annotated[str, _matching(_HEADER, "name of a header", "see RFC 9110")] | None = None
    principals: dict[FilledText, Tenants] | None = None
    keys: dict[Name, EntryKeyTable] | None = None
    worker: str | None = None


SECTIONS: Final[Mapping[str, type[Table]]] = {
    "endpoints": EndpointTable,
    "models": ModelTable,
    "kinds": KindTable,
    "servers": ServerTable,
    "tenants": TenantTable,
}
"""Tables that hold named ones."""

NAMES: Final[Mapping[str, Any]] = {
    "endpoints": Name,
    "models": Word,
    "kinds": Word,
    "servers": Name,
    "tenants": Annotated[str, _matching(_TENANT, "tenant", _TENANTS_OWN)],
}
"""What their names may be."""

ALONE: Final[Mapping[str, type[Table]]] = {"tools": ToolsTable, "tenant": OthersTable, "entry": EntryTable}
"""Tables that hold no named ones."""

DEFAULTS: Final = "defaults"
"""The table with fields of goals."""

WITHIN: Final[Mapping[str, type[Table]]] = {
    "prices": PricesTable,
    "day": DayTable,
    "gate": GateTable,
    "refuse": UnwantedTable,
    "keys": EntryKeyTable,
}
"""Tables within others, by their keys."""


def keys(table: type[Table]) -> tuple[str, ...]:
    """The keys of a table as they stand in the file."""
    return tuple(each.alias or name for name, each in table.model_fields.items())
