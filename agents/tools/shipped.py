"""The tools that ship with the project."""

from agents.tools.distributions import distribution_metadata, licence_files, list_distributions
from agents.tools.local import LocalTools, local_tool
from agents.tools.noop import noop


def shipped_tools() -> LocalTools:
    """All of them."""
    return LocalTools(
        local_tool(function) for function in (list_distributions, distribution_metadata, licence_files, noop)
    )
