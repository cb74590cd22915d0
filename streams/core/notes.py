"""Shared notes: a job's blackboard, by topic, each topic with versions of its own.

A writer says which version it has seen (*base*). Where that is the newest one its value takes the place of
the old; where somebody else has written meanwhile nothing is overwritten: both stand side by side in the
order of the log, ``{"merged": [one, other]}``, each once, and whoever writes next has seen both. So the same
writes with the same bases come to the same set of values, whichever of them the log has first.

Only attempts that are under way write, and only where the plan grants it. The same call writes once. What
would go beyond the bounds is not taken, and the job's answer tells so.
"""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from streams.core.commands import NoteSeen
from streams.core.ending import Folded
from streams.core.events import NoteWritten
from streams.core.growing import proposer, refuse
from streams.core.states import Note, Open, Ready, Released, Running, Suspended
from streams.core.values import Inline, Json, Reference, TaskId, Value

MOST_TOPICS: Final = 64
"""Topics that a job's notes have."""

TOPIC_CHARACTERS: Final = 64

NOTE_BYTES: Final = 8_192
"""Bytes of JSON of one write."""

NOTES_BYTES: Final = 65_536
"""Bytes of JSON of all notes of a job: they travel inside each command, beside the results it needs."""

MERGED: Final = "merged"

NOTHING: Final = Note(topic="", version=0, value=Inline(value=None), size=len("null"))
"""What a topic says that nobody has written of."""


def granted(job: Open, task: TaskId) -> bool:
    """Whether a sub-task may read and write the notes."""
    node = job.nodes.get(proposer(job, task))
    return job.submitted.goal.notes and node is not None and node.task.notes


def seen(job: Open) -> tuple[tuple[NoteSeen, ...], int]:
    """The notes as a command shows them, by topic, and the offset of the last event that is in them."""
    notes = [job.notes[topic] for topic in sorted(job.notes)]
    shown = tuple(NoteSeen(topic=note.topic, version=note.version, value=note.value) for note in notes)
    return shown, max((note.offset for note in notes), default=-1)


def write(job: Open, event: NoteWritten) -> Folded:
    """Take in what a sub-agent wrote.

    Also a write that is refused makes a version, so that a writer which counts its own writes on from what
    it has seen names the newest one only where nobody else has written.
    """
    if not granted(job, event.task) or not _under_way(job, event.task, event.attempt):
        return job, ()
    note = job.notes.get(event.topic)
    call = f"{event.task}/{event.attempt}/{event.call}"
    if note is not None and call in note.writes:
        return job, ()
    before = NOTHING if note is None else note
    value, size = _value(before, event)
    if wrong := _fault(job, note, event, size):
        job = refuse(job, f"{event.task}: note {event.topic[:TOPIC_CHARACTERS]!r}: {wrong}")
        if (note is None and len(job.notes) >= MOST_TOPICS) or not _is_topic(event.topic):
            return job, ()
        value, size = before.value, before.size
    written = Note(
        topic=event.topic,
        version=before.version + 1,
        value=value,
        writes=(*_remembered(job, before), call),
        size=size,
        offset=event.offset,
    )
    return replace(job, notes=MappingProxyType({**job.notes, event.topic: written})), ()


def _fault(job: Open, note: Note | None, event: NoteWritten, size: int) -> str:
    """Why this is not taken; empty where it is.

    Args:
        size: What the note would have then.
    """
    if not _is_topic(event.topic):
        return f"a topic has 1 to {TOPIC_CHARACTERS} characters, and can be printed"
    if isinstance(event.value, Reference) or event.size > NOTE_BYTES:
        return f"it has {event.size} bytes, at most {NOTE_BYTES}"
    if note is None and len(job.notes) >= MOST_TOPICS:
        return f"there are {MOST_TOPICS} topics already"
    if sum(other.size for other in job.notes.values() if other is not note) + size > NOTES_BYTES:
        return f"all notes together have {NOTES_BYTES} bytes at most"
    return ""


def _is_topic(topic: str) -> bool:
    return 0 < len(topic) <= TOPIC_CHARACTERS and topic.isprintable() and not topic.isspace()


def _value(note: Note, event: NoteWritten) -> tuple[Value, int]:
    """What the note says with this write, and its bytes of JSON."""
    if note.version in {event.base, 0}:
        return event.value, event.size
    parts = _parts(note.value)
    new = event.value.value if isinstance(event.value, Inline) else None
    if any(repr(new) == repr(part) for part in parts):  # 1, 1.0 and true are the same to ==
        return note.value, note.size
    wrapping = 0 if len(parts) > 1 else len('{"merged":[]}')
    return Inline(value={MERGED: [*parts, new]}), note.size + event.size + len(",") + wrapping


def _parts(value: Value) -> Sequence[Json]:
    """What stands side by side in a note."""
    match value:
        case Inline(value={"merged": [_, _, *_] as parts, **rest}) if not rest:
            return parts
        case Inline(value=one):
            return (one,)
        case Reference():
            return ()


def _remembered(job: Open, note: Note) -> tuple[str, ...]:
    """The note's writes of attempts that are under way: no others can come again and count."""
    return tuple(write for write in note.writes if _may_come_again(job, write))


def _may_come_again(job: Open, write: str) -> bool:
    task, attempt, _ = write.split("/", 2)
    return _under_way(job, task, int(attempt))


def _under_way(job: Open, task: TaskId, attempt: int) -> bool:
    """Whether this attempt may still run, or runs. Ready and Released are the same to the fold."""
    state = job.states.get(task)
    return isinstance(state, Ready | Released | Running | Suspended) and state.attempt == attempt
