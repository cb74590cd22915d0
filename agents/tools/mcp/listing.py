"""What a tool server says of its tools, each looked at by itself.

The mcp package reads a listing as a whole, so that one tool with a broken schema would take all others
with it. Broken ones are taken out of the message before it reads it: see :class:`Broken`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships without types
from jsonschema.exceptions import (  # type: ignore[import-untyped]  # likewise
    SchemaError,
    best_match,
)
from jsonschema.protocols import Validator  # type: ignore[import-untyped]  # likewise
from jsonschema.validators import validator_for  # type: ignore[import-untyped]  # likewise
from mcp import Client
from mcp.types import Tool
from pydantic import ValidationError
from referencing import Registry

from agents.configuration.values import ToolServer
from agents.plain_json import words_of
from agents.ports import ToolSpec
from agents.schema_checks import quick
from agents.tools.local import MAX_ERROR, describe
from streams.core.values import Json

MAX_PAGES: Final = 100
"""Pages of a listing; a server whose listing never ends has no more."""

MAX_DESCRIPTION: Final = 4_000
"""Characters of a tool's description that a model is told."""

MAX_NAME: Final = 128
"""Characters of a tool's name, as of the specification of 2025-11-25 (SEP-986)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A tool that a server lists and nobody can call.

    Attributes:
        tool: Its name, or its place in the listing where it has none.
        reason: What is wrong with it.
    """

    tool: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTool:
    """A tool of a server.

    Attributes:
        name: Without the server's name, as the server knows it.
        spec: As a model sees it, by its full name ``server.tool``.
        validator: Checks arguments against the schema. It fetches nothing: a reference that leads
            out of the schema fails.
    """

    name: str
    spec: ToolSpec
    validator: Validator = field(repr=False)

    def wrong(self, arguments: Mapping[str, Json]) -> str | None:
        """What is wrong with the arguments, with the place, or None."""
        try:
            found = best_match(self.validator.iter_errors(dict(arguments)))
        except Exception as broken:  # noqa: BLE001 - references in circles, or to what is no schema: any kind
            return f"the tool's own schema is broken: {_said(broken)}"
        return None if found is None else describe(found)


def why_broken(entry: object) -> str | None:
    """What is wrong with an entry of a listing, or None."""
    try:
        tool = Tool.model_validate(entry, by_name=False)
    except ValidationError as broken:
        first = broken.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    if not tool.name or len(tool.name) > MAX_NAME:
        return f"its name has {len(tool.name)} characters; 1 to {MAX_NAME} are allowed"
    if tool.input_schema.get("type") != "object":
        return 'its inputSchema has no "type": "object"'
    for part, schema in (("inputSchema", tool.input_schema), ("outputSchema", tool.output_schema)):
        try:
            _validator_of(schema or {}).check_schema(schema or {})
        except SchemaError as broken:
            return f"{part} is no JSON Schema: {describe(broken)}"
        except Exception as broken:  # noqa: BLE001 - the checker was not made for strangers
            return f"{part} is no JSON Schema: {_said(broken)}"
    return None


def without_broken(result: dict[str, Any]) -> list[Broken]:
    """Take the broken tools out of a listing as it came, in place; says which they were."""
    entries = result["tools"]
    broken = [
        Broken(tool=_called(entry, place), reason=reason)
        for place, entry in enumerate(entries)
        if (reason := why_broken(entry)) is not None
    ]
    if broken:
        result["tools"] = [entry for entry in entries if why_broken(entry) is None]
    return broken


def _called(entry: object, place: int) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return name[:MAX_NAME] if isinstance(name, str) and name else f"number {place + 1} of the listing"


async def list_tools(client: Client, server: ToolServer) -> dict[str, ServerTool]:
    """All tools that the server lists and the configuration offers, by their own names.

    Raises:
        MCPError, ValidationError: the server does not answer, or with something that is no listing.
    """
    found: dict[str, ServerTool] = {}
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        for tool in page.tools:
            if server.tools is None or tool.name in server.tools:
                found[tool.name] = server_tool(tool, server)
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def server_tool(tool: Tool, server: ToolServer) -> ServerTool:
    """A listed tool, with what the configuration says of it.

    A tool that the configuration marks as ``once`` is never shared, whatever the server says.
    """
    once = tool.name in server.once
    hinted = tool.annotations is not None and tool.annotations.read_only_hint is True
    return ServerTool(
        name=tool.name,
        spec=ToolSpec(
            name=f"{server.name}.{tool.name}",
            description=(tool.description or tool.title or tool.name)[:MAX_DESCRIPTION],
            parameters=tool.input_schema,
            once=once,
            read_only=not once and (hinted or tool.name in server.read_only),
        ),
        validator=quick(_validator_of(tool.input_schema))(tool.input_schema, registry=Registry()),
    )


def _said(broken: Exception) -> str:
    """What jsonschema stumbled over, in words."""
    return f"{type(broken).__name__}: {words_of(broken)}"[:MAX_ERROR]


def _validator_of(schema: Mapping[str, Any]) -> type[Validator]:
    """Of the draft that the schema names in ``$schema``, else of 2020-12, as the protocol has it."""
    return validator_for(schema, default=Draft202012Validator)  # type: ignore[no-any-return]  # it has no types
