"""The journal of a job's attempts, in order."""

from dataclasses import dataclass

from streams.core.values import TaskId
from streams.following import readable
from streams.replay.recording import Recording
from streams.transcript import AttemptRecord, ValueChunk
from streams.wire.transcripts import read_transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptCalls:
    """What one attempt did, call by call.

    Attributes:
        entries: Its journal; after a crash those of several runs.
    """

    task: TaskId
    attempt: int
    entries: tuple[AttemptRecord, ...]


def calls(recording: Recording) -> tuple[AttemptCalls, ...]:
    """Every attempt that left something on the journal, first come, first told."""
    found: dict[tuple[TaskId, int], list[AttemptRecord]] = {}
    entries = [
        entry for record in recording.transcripts if (entry := readable(read_transcript, record)) is not None
    ]
    for entry in sorted(entries, key=lambda entry: entry.at):  # stable: an attempt is on one partition
        if not isinstance(entry, ValueChunk):
            found.setdefault((entry.task, entry.attempt), []).append(entry)
    return tuple(
        AttemptCalls(task=task, attempt=attempt, entries=tuple(entries))
        for (task, attempt), entries in found.items()
    )
