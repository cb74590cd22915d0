"""Suspended attempts on the lanes: what such an attempt waits for, and its journal when it goes on."""

import asyncio
from collections.abc import AsyncGenerator, Collection
from typing import Final, Literal

import structlog

from agents.ports import ToolCall
from streams.claims import ValueLost
from streams.core.commands import Command, Resume, RunSubTask
from streams.core.values import JobId, Json
from streams.log import LogUnavailable, Reader, Record
from streams.past import Past
from streams.topics import TRANSCRIPTS

AGAIN_S: Final = 1.0

GAP: Final = 1_000
"""Records that are read and thrown away rather than begin another read."""


class AttemptSuspended(Exception):
    """The attempt makes no further call until somebody outside has answered one of its tool calls.

    Attributes:
        on, call, arguments, child: As of :class:`streams.core.events.SubTaskSuspended`.
    """

    def __init__(
        self, call: ToolCall, *, on: Literal["approval", "child"], args: Json, child: JobId | None
    ) -> None:
        super().__init__(f"waits for {child or f'approval of {call.name}'}")
        self.call, self.on, self.arguments, self.child = call, on, args, child


def resume_of(command: Command) -> Resume | None:
    """How this attempt goes on, where it was suspended before."""
    return command.resume if isinstance(command, RunSubTask) else None


def run_key(command: Command, key: bytes) -> bytes:
    """Names this stretch of an attempt: the same attempt has another command each time it goes on.

    Args:
        key: The attempt's.
    """
    resume = resume_of(command)
    return key if resume is None else stretch(key, resume.number)


def stretch(key: bytes, number: int) -> bytes:
    """Names what an attempt does after it was suspended so often: no attempt's own key has such a mark."""
    return b"%b#%d" % (key, number)


async def with_journal(log: Reader, past: Past, resume: Resume, partition: int) -> None:
    """Take what the attempt journaled before it was suspended into its *past*, as soon as the log gives it.

    Raises:
        ValueLost: some of it is past its retention.
    """
    while True:
        try:
            for record in await recorded(log, partition, resume.journal):
                past.add(record)
        except LogUnavailable as error:
            told = structlog.get_logger().bind(part="lanes", lane=partition)
            told.warning("journal_not_read", reason=str(error), again_in_s=AGAIN_S)
            await asyncio.sleep(AGAIN_S)
        else:
            return


async def recorded(log: Reader, partition: int, offsets: Collection[int]) -> list[Record]:
    """The records at these offsets of a partition of ``transcripts``: what lies between them is jumped over.

    Raises:
        ValueLost: one of them is gone.
        LogUnavailable: the log did not give them in time.
    """
    wanted, found = sorted(set(offsets)), dict[int, Record]()
    left = wanted
    while left:
        before = left
        reading = log.read(TRANSCRIPTS, partition, offset=left[0])
        try:
            async for batch in reading:
                found.update({each.offset: each for each in batch if each.offset in left})
                left = [offset for offset in left if offset > batch[-1].offset]
                if not left or left[0] > batch[-1].offset + GAP:
                    break
        finally:
            if isinstance(reading, AsyncGenerator):
                await reading.aclose()
        if left == before:
            break
    if lost := [offset for offset in wanted if offset not in found]:
        raise ValueLost(f"the journal of this attempt at transcripts[{partition}]@{lost[0]} is gone")
    return [found[offset] for offset in wanted]
