"""A tool call that the simulated model makes."""

from dataclasses import dataclass

_CALL_TOKENS = 12  # what a tool call costs besides its name and arguments


@dataclass(frozen=True, slots=True)
class Wanted:
    """A tool call to make."""

    name: str
    arguments: str

    @property
    def tokens(self) -> int:
        """Output tokens it costs."""
        return (len(self.name) + len(self.arguments.encode())) // 4 + _CALL_TOKENS
