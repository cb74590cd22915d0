"""Shared notes of a job: by topic, each with versions of its own."""

from streams.core.ending import Folded
from streams.core.events import NoteWritten
from streams.core.states import Open


def write(job: Open, event: NoteWritten) -> Folded:
    """Take in what a sub-agent wrote."""
    del event
    return job, ()
