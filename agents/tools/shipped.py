"""The tools of this process: those that ship with the project, and those that users bring."""

import structlog

from agents.configuration.values import LocalToolSettings
from agents.tools.distributions import distribution_metadata, licence_files, list_distributions
from agents.tools.local import LocalTool, LocalTools, local_tool
from agents.tools.noop import noop
from agents.tools.registered import registered_tools
from agents.tools.sandbox import sandbox_problem, sandbox_tools

log = structlog.get_logger()

NO_MORE = LocalToolSettings()


def shipped() -> tuple[LocalTool, ...]:
    """What ships, but for the sandbox."""
    return tuple(
        local_tool(function) for function in (list_distributions, distribution_metadata, licence_files, noop)
    )


def shipped_tools() -> LocalTools:
    """What ships, and nothing else."""
    return LocalTools(shipped())


def local_tools(settings: LocalToolSettings = NO_MORE) -> LocalTools:
    """All of them. Imports what users bring and tries the sandbox: to be called in a thread.

    A sandbox that this machine cannot have is not offered, which is logged.

    Raises:
        agents.tools.registered.BadTools: some that users bring cannot be used; it names all of these.
    """
    tools = list(shipped())
    if settings.sandbox:
        if problem := sandbox_problem():
            log.warning("sandbox_not_offered", reason=problem)
        else:
            tools += sandbox_tools(settings)
    brought = registered_tools(settings.modules, taken=[tool.spec.name for tool in tools])
    return LocalTools((*tools, *brought))
