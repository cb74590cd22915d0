"""Logging of commands that are not the worker: warnings only, on stderr."""

from streams.cli.environment import settings


def quiet() -> None:
    """Show warnings and errors; the Kafka client's own go unseen, since errors say what they mean."""
    from streams.logging import configure

    configure(level="WARNING", secrets=settings().secrets)
