"""Tool servers that speak the Model Context Protocol, shared by all sub-agents of a process."""
