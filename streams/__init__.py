"""Anabranch on Kafka: goals in, one answer each out."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streams.client import NotAnswered, Swarm

__all__ = ["NotAnswered", "Swarm"]


def __getattr__(name: str) -> Any:
    # On demand: every module of this package imports it, and the core imports nothing but the
    # standard library.
    if name in __all__:
        return getattr(import_module("streams.client"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
