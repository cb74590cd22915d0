"""Answers: the records of ``answers``, made for people and other programs to read."""

from dataclasses import replace

from streams.core.commands import Answer
from streams.core.values import Inline
from streams.log import Headers, Record
from streams.wire.bounds import UNBOUNDED
from streams.wire.envelope import Kinds, dump, flat
from streams.wire.headers import read_headers, write_headers

ANSWERS: Kinds[Answer] = Kinds([Answer], depth=120, placed=False, bounds=UNBOUNDED)


def write_answer(answer: Answer) -> tuple[bytes, Headers]:
    """The JSON of an answer, and the headers of its goal for the record.

    The answer itself stands as plain JSON under ``answer``, or as a claim check under
    ``answer_ref``; where there is none, both are missing.

    Raises:
        Unwritable: a part of it has no JSON.
    """
    written = flat(answer)
    del written["headers"], written["answer"]
    match answer.answer:
        case None:
            pass
        case Inline(value=value):
            written["answer"] = value
        case reference:
            written["answer_ref"] = reference
    return dump(written, depth=120), write_headers(answer.headers)


def read_answer(record: Record) -> Answer:
    """The answer of a record, with the record's headers as the goal's.

    Raises:
        Unreadable: the record is no answer that this version knows.
    """
    written = ANSWERS.parse(record)
    if "answer" in written:
        written["answer"] = {"value": written["answer"]}
    elif "answer_ref" in written:
        written["answer"] = written["answer_ref"]
    written["headers"] = ()
    answer = ANSWERS.validate(written, record)
    return replace(answer, headers=read_headers(record.headers)) if record.headers else answer
