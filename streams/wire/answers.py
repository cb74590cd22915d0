"""Answers: the records of ``answers``, made for people and other programs to read."""

from dataclasses import replace
from typing import Final

from streams.core.commands import Answer
from streams.core.values import Inline
from streams.log import Headers, Record
from streams.wire.bounds import NAMES
from streams.wire.envelope import Kinds, Unreadable, Unwritable, dump, flat
from streams.wire.headers import read_headers, size_of, write_headers

REASON_CHARS: Final = 10_000
SHORT_CHARS: Final = 100
"""Characters of a reason of an answer that does not fit, and of those of its sub-tasks."""

ANSWERS: Kinds[Answer] = Kinds([Answer], depth=120, placed=False, bounds=NAMES)


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


def write_fitting(answer: Answer, most: int) -> tuple[bytes, Headers]:
    """As :func:`write_answer`, of *most* bytes where that can be: a goal is always answered.

    What nobody needs to know how it went is left out first: the goal's headers, then why its
    sub-tasks failed, then how each of them ended. The reason says what was left out.

    Raises:
        Unwritable: its value has no JSON.
    """
    why = ""
    slimmers = (_whole, _without_headers, _without_reasons, _without_subtasks)
    value: bytes = b""
    headers: Headers = ()
    for slimmer in slimmers:
        try:
            value, headers = write_answer(slimmer(answer, why))
        except Unwritable as error:
            if slimmer is slimmers[-1]:
                raise
            why = str(error)
            continue
        size = len(value) + size_of(headers)
        if size <= most:
            break
        why = f"the answer has {size} bytes with them, at most {most}"
    return value, headers


def _whole(answer: Answer, _: str) -> Answer:
    return answer


def _without_headers(answer: Answer, error: str) -> Answer:
    reason = f"the goal's headers are left out: {error}" + (f"; {answer.reason}" if answer.reason else "")
    return replace(answer, headers=(), reason=reason[:REASON_CHARS])


def _without_reasons(answer: Answer, error: str) -> Answer:
    subtasks = tuple(replace(line, reason=line.reason[:SHORT_CHARS]) for line in answer.subtasks)
    return replace(_without_headers(answer, error), subtasks=subtasks)


def _without_subtasks(answer: Answer, error: str) -> Answer:
    return replace(_without_headers(answer, error), subtasks=())


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
    if record.key != answer.job.encode():  # by which readers look for it
        raise Unreadable(f"key: should be the job, {answer.job}")
    return replace(answer, headers=read_headers(record.headers)) if record.headers else answer
