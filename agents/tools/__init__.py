"""Tools that sub-agents may use."""
