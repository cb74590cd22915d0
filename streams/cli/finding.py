"""What ``anabranch doctor`` finds."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["fine", "warning", "problem"]
"""A ``problem`` keeps the system from working, a ``warning`` may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing looked at.

    Attributes:
        about: ``access``, ``brokers``, ``topics``, ``lag``, ``configuration``, ``key``, ``endpoint``,
            ``model``, ``tools`` or ``sandbox``.
        to_do: What to do about it.
    """

    about: str
    level: Level
    what: str
    to_do: str = ""
