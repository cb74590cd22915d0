"""A call of a model that has to wait, and for what."""

from typing import TypeAlias

from agents.models.targets import ModelTarget

Chain: TypeAlias = tuple[ModelTarget, ...]

_OF_TENANT = "\0tenant "  # no model's name begins so


class NotNow(Exception):
    """There is no turn for a call at the moment; it may be waited for.

    Attributes:
        chain: The models whose turn it waits for; none where it waits for its tenant's.
        tokens: What it needs.
        tenant: Whose requests a second are used up; empty where it waits for models.
    """

    def __init__(self, chain: Chain, tokens: float, tenant: str = "") -> None:
        super().__init__("no turn now")
        self.chain, self.tokens, self.tenant = chain, tokens, tenant

    @property
    def line(self) -> tuple[str, ...]:
        """The line that it stands in."""
        return (_OF_TENANT + self.tenant,) if self.tenant else tuple(target.name for target in self.chain)

    @property
    def where(self) -> str:
        """For a person."""
        if self.tenant:
            return f"of tenant {self.tenant}, whose model requests a second are limited,"
        return f"at {', '.join(target.name for target in self.chain)}"
