"""The answers of all jobs: those that are there, and those that come.

A job that was opened again is answered once more, under the next revision. The topic is keyed by job
and a job's answers stand in order, so whoever wants the newest takes the highest revision of a key.
"""

from collections import OrderedDict
from collections.abc import AsyncGenerator
from typing import Final

from streams.claims import Resolver
from streams.core.commands import Answer
from streams.core.values import JobId
from streams.following import Following, readable
from streams.log import Reader
from streams.resolved import resolved
from streams.topics import ANSWERS
from streams.wire.answers import read_answer

REMEMBERED: Final = 100_000
"""Jobs whose revision :func:`coming` remembers, to drop what it has given already."""


async def coming(
    following: Following, resolver: Resolver, *, lanes: int, since: int | None
) -> AsyncGenerator[Answer, None]:
    """Every answer as it comes, each job's and revision's once; without an end.

    Raises:
        LogUnavailable: the log cannot be read.
    """
    given: OrderedDict[JobId, int] = OrderedDict()
    records = following.records(ANSWERS, range(lanes), since)
    try:
        async for record in records:
            if (answer := readable(read_answer, record)) is None or given.get(
                answer.job, 0
            ) >= answer.revision:
                continue
            given[answer.job] = answer.revision
            given.move_to_end(answer.job)
            if len(given) > REMEMBERED:
                given.popitem(last=False)
            yield await resolved(resolver, answer)
    finally:
        await records.aclose()


async def newest(log: Reader, resolver: Resolver, *, lanes: int, since: int) -> tuple[Answer, ...]:
    """The answers that are there, newest revision of each job, oldest first.

    Raises:
        LogUnavailable: the log cannot be read.
    """
    found: dict[JobId, Answer] = {}
    for partition in range(lanes):
        async for records in log.read(ANSWERS, partition, since=since):
            for record in records:
                answer = readable(read_answer, record)
                if answer and answer.revision >= found.get(answer.job, answer).revision:
                    found[answer.job] = answer
    ordered = sorted(found.values(), key=lambda answer: (answer.answered_at, answer.job))
    return tuple([await resolved(resolver, answer) for answer in ordered])
