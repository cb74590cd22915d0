"""Faults by name."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Literal, TypeAlias

from streams.chaos.scene import Scene

Strike: TypeAlias = Callable[[Scene, Random], Awaitable[None]]

Need: TypeAlias = Literal["brokers", "three", "proxy"]
"""What a fault cannot do without: ``brokers`` of our own, ``three`` of them, a ``proxy`` before them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One way of breaking something.

    Attributes:
        strike: Breaks it, lets it last, and mends it; ends once it is mended. All it chooses it draws
            from the chance it is given.
        needs: Where one of these is not there, the fault cannot be.
    """

    name: str
    strike: Strike
    needs: frozenset[Need]

    @property
    def says(self) -> str:
        """What it does, in a sentence."""
        return " ".join((self.strike.__doc__ or "").split("\n\n")[0].split())


class UnknownFault(ValueError):
    """There is no fault of this name; the text names those that are."""


FAULTS: Final[dict[str, Fault]] = {}
"""All there are, by name."""


def fault(*needs: Need) -> Callable[[Strike], Strike]:
    """Make a function a fault by its own name."""

    def register(strike: Strike) -> Strike:
        name = strike.__name__
        FAULTS[name] = Fault(name=name, strike=strike, needs=frozenset(needs))
        return strike

    return register


def known(names: Sequence[str], there: Collection[Need]) -> tuple[Fault, ...]:
    """The faults of these names, or of none given all that can be with what is *there*.

    Raises:
        UnknownFault: one is none, or cannot be.
    """
    for name in names:
        if name not in FAULTS:
            raise UnknownFault(f"there is no fault {name!r}; there are: {', '.join(sorted(FAULTS))}")
        if lacking := FAULTS[name].needs - set(there):
            raise UnknownFault(f"the fault {name} needs {', '.join(sorted(lacking))}, which this run has not")
    chosen = names or [name for name, each in FAULTS.items() if each.needs <= set(there)]
    return tuple(FAULTS[name] for name in sorted(chosen))
