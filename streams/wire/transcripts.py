"""The journal's records on ``transcripts``: see ``streams.transcript`` for what they mean."""

from hashlib import sha256
from typing import get_args

from agents.ports import ModelRequest
from streams.core.values import Inline
from streams.log import Record
from streams.transcript import Asked, AttemptEnded, TranscriptRecord
from streams.wire.envelope import Kinds, dump, flat

DEPTH = 120

TRANSCRIPTS: Kinds[TranscriptRecord] = Kinds(get_args(TranscriptRecord), depth=DEPTH, placed=True)


def read_transcript(record: Record) -> TranscriptRecord:
    """The journal entry or chunk of a record, with the time and place at which it stands.

    Raises:
        Unreadable: the record is none that this version knows.
    """
    return TRANSCRIPTS.read(record)


def write_transcript(entry: TranscriptRecord) -> bytes:
    """The JSON of a journal entry or chunk, without its time and place.

    Raises:
        Unwritable: a part of it has no JSON.
    """
    if isinstance(entry, AttemptEnded):
        return dump(flat(entry) | {"event": flat(entry.event)}, depth=DEPTH)
    return TRANSCRIPTS.write(entry)


def asked(request: ModelRequest, seen: int) -> Asked:
    """What a request has beyond its first *seen* messages."""
    return Asked(
        seen=seen,
        messages=Inline(value=list(request.messages[seen:])),
        tools=tuple(tool.name for tool in request.tools),
        max_tokens=request.max_tokens,
        json_object=request.json_object,
        model=request.model,
    )


def request_hash(request: ModelRequest) -> str:
    """SHA-256 of a whole request, in hexadecimal: the same for the same call, run again.

    Raises:
        Unwritable: a part of it has no JSON.
    """
    return sha256(dump(request, depth=DEPTH)).hexdigest()
