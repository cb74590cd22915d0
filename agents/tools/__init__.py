"""Tools that sub-agents may use. :func:`tool` marks a Python function as one."""

from agents.tools.marks import tool

__all__ = ["tool"]
