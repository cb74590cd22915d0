"""Logging of commands that are not the worker: warnings only, on stderr."""

from streams.cli.environment import settings
from streams.settings import Settings


def quiet(ours: Settings | None = None) -> None:
    """Show warnings and errors; the Kafka client's own go unseen, since errors say what they mean.

    Args:
        ours: Whose secrets are hidden; None: those of the environment.
    """
    from streams.logging import configure

    configure(level="WARNING", secrets=(ours or settings()).secrets)
