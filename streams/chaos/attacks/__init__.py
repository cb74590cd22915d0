"""The faults of a round, each with a name. A fault strikes, lasts, and heals what it broke."""

from streams.chaos.attacks import on_brokers, on_the_endpoint, on_the_input, on_tools, on_workers
from streams.chaos.attacks.registry import FAULTS, Fault, Need, UnknownFault, known

__all__ = [
    "FAULTS",
    "Fault",
    "Need",
    "UnknownFault",
    "known",
    "on_brokers",
    "on_the_endpoint",
    "on_the_input",
    "on_tools",
    "on_workers",
]
