"""A sandbox for programs that a model wrote: no network, no files of the host, bounds on all it uses."""

from agents.tools.sandbox.tools import sandbox_problem, sandbox_tools

__all__ = ["sandbox_problem", "sandbox_tools"]
