"""Configurations for tests of tools: one endpoint that nobody asks, and what they say of tools."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agents.configuration.values import DEFAULT, Configuration, Kind, ToolServer, one_endpoint


def configured(
    *,
    servers: Sequence[ToolServer] = (),
    kinds: Sequence[Kind] = (),
    tools: Sequence[str] | None = None,
    scopes: Mapping[str, Mapping[str, object]] | None = None,
) -> Configuration:
    """With these servers and kinds; *tools* and *scopes* are those of the kind ``default``."""
    default = Kind(
        name=DEFAULT,
        tools=None if tools is None else tuple(tools),
        scopes=scopes or {},  # type: ignore[arg-type]  # object here, JSON there
    )
    plain = one_endpoint(base_url="http://nobody.invalid/v1", api_key="", model="none")
    return replace(
        plain,
        servers={server.name: server for server in servers},
        kinds={kind.name: kind for kind in (default, *kinds)},
    )
