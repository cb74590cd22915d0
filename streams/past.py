"""What an attempt did before: the replies that the journal holds from earlier owners of its lane.

The agents' code runs again from its beginning with the same command. Each call whose reply is here
is recalled instead of made, by its order (models) or its id (tools), so that it goes on from the
last reply without paying for any of them again.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from agents.ports import ModelReply
from streams.core.events import SubTaskSuspended
from streams.core.values import Usage
from streams.log import Record
from streams.transcript import (
    AttemptEnded,
    AttemptEvent,
    HandedOver,
    ModelCalled,
    ModelFailed,
    ToolCalled,
    ToolStarted,
    TranscriptRecord,
    ValueChunk,
)
from streams.wire.envelope import NewerVersion, Unreadable
from streams.wire.transcripts import read_transcript

Try: TypeAlias = tuple[str, int, int]
"""The life of a worker that made it, which call of its attempt it was, and which try of that."""


class Past:
    """The journal of one attempt from before its present run, which may still grow.

    Attributes:
        replies: Of models, by ``n``.
        tools: Ended tool calls, by id.
        started: Ids of tool calls that must not be repeated and have begun.
        tries: Failed tries of model calls, by ``n``.
        costs: What failed tries may have cost all the same, by the life that made them, ``n`` and number.
        ended: What its job was to be told of its end, where that was journaled.
        suspended: What its job was to be told when it was suspended, by how often it was.
        offsets: Where its calls stand on the journal.
        newer: A program of a later version wrote some of it: nobody here knows all that has begun.
    """

    def __init__(self) -> None:
        self.ended: AttemptEvent | None = None
        self.newer = False
        self.suspended: dict[int, SubTaskSuspended] = {}
        self.offsets: dict[int, None] = {}
        self.replies: dict[int, ModelReply] = {}
        self.tools: dict[str, ToolCalled] = {}
        self.started: set[str] = set()
        self.tries: dict[int, int] = {}
        self.costs: dict[Try, Usage] = {}
        self._elsewhere: HandedOver | None = None
        self._aloft: set[int | str] = set()
        self._settled = False
        self._heard_at = 0.0
        self._changed: asyncio.Future[None] | None = None

    def add(self, record: Record) -> None:
        """Take in a record of the journal. One that cannot be read is no reply of ours."""
        try:
            entry = read_transcript(record)
        except NewerVersion:
            self.newer = True
            return
        except Unreadable:
            return
        self._take_in(entry)
        if self._elsewhere is not None and entry.run == self._elsewhere.run:
            self._heard_at = asyncio.get_running_loop().time()
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    def _take_in(self, entry: TranscriptRecord) -> None:
        if isinstance(entry, ModelCalled | ModelFailed | ToolStarted | ToolCalled):
            self.offsets[entry.offset] = None
        match entry:
            case ModelCalled(n=n, reply=reply, run=run):
                self.replies.setdefault(n, reply)
                self._landed(n, run)
            case ModelFailed(n=n, tried=tried, run=run, usage=usage):
                self.tries[n] = max(self.tries.get(n, 0), tried)
                self.costs[run, n, tried] = usage
                self._landed(n, run)
            case ToolStarted(call=call):
                self.started.add(call.id)
            case ToolCalled(call=call, run=run):
                self.tools.setdefault(call.id, entry)
                self._landed(call.id, run)
            case HandedOver() if not self._settled:
                self._elsewhere = entry
                self._aloft = {*entry.model_calls, *entry.tool_calls}
            case AttemptEnded(event=event, run=run):
                if isinstance(event, SubTaskSuspended):
                    self.suspended.setdefault(event.number, event)
                else:
                    self.ended = self.ended or event
                for each in tuple(self._aloft):
                    self._landed(each, run)
            case HandedOver() | ValueChunk():
                pass

    def over(self, number: int) -> AttemptEvent | None:
        """What its job was to be told at the end of a stretch of it, where that was journaled.

        Args:
            number: How often it was suspended before that stretch.
        """
        return self.ended or self.suspended.get(number + 1)

    @property
    def usage(self) -> Usage:
        """What was spent on it, or may have been."""
        spent = sum((reply.usage for reply in self.replies.values()), Usage(tool_calls=len(self.tools)))
        return sum(self.costs.values(), spent)

    def _landed(self, call: int | str, run: str) -> None:
        if self._elsewhere is not None and run == self._elsewhere.run:
            self._aloft.discard(call)

    @property
    def elsewhere(self) -> bool:
        """Calls of this attempt are under way at the lane's last owner."""
        left = self._elsewhere
        if left is None or not self._aloft:
            return False
        # Or their owner has fallen silent: their replies never come.
        return asyncio.get_running_loop().time() < self._heard_at + left.within_s

    async def settle(self) -> None:
        """Wait for the replies that still come from the lane's last owner, and are not known yet.

        It says again and again that they do; once it falls silent they never will.
        """
        while self._elsewhere is not None and self.elsewhere and not self._known():
            self._changed = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout_at(self._heard_at + self._elsewhere.within_s):
                    await self._changed
            except TimeoutError:
                break
            finally:
                self._changed = None
        self._settled = True  # who hands over from now on has lost the lane long ago, unknowingly

    def _known(self) -> bool:
        """Whether what is under way elsewhere matters no more: someone made the same calls before."""
        if self.ended is not None:
            return True
        return all(call in self.replies or call in self.tools for call in self._aloft)


NO_PAST = Past()
"""That of an attempt which begins for the first time; nothing is ever added to it."""


class Pasts:
    """The journal of a lane, by attempt, from before this process owned it.

    Records are kept as they stand until their attempt begins; those of attempts that are not
    *wanted* are not kept at all.
    """

    def __init__(self, wanted: Callable[[bytes], bool]) -> None:
        self._wanted = wanted
        self._records: dict[bytes, list[Record]] = {}
        self._live: dict[bytes, Past] = {}
        self._handed_over: dict[bytes, Past] = {}
        self._waits: dict[bytes, Past] = {}
        self._runs: Counter[bytes] = Counter()
        self._seen = -1

    def add(self, record: Record) -> None:
        """Take in a record of the lane's journal, each once."""
        if record.offset <= self._seen or record.key is None:
            return
        self._seen = record.offset
        start = (record.value or b"")[:40]
        if b'"ValueChunk"' in start:
            return  # read by whoever follows a claim check
        past = self._live.get(record.key) or self._handed_over.get(record.key) or self._waits.get(record.key)
        if past is not None:
            past.add(record)
        elif not self._wanted(record.key):
            return
        else:
            self._records.setdefault(record.key, []).append(record)
        if b'"HandedOver"' in start and record.key not in self._handed_over:
            self._handed_over[record.key] = past or self._taken_out(record.key)

    def begin(self, key: bytes) -> Past:
        """The past of an attempt that begins again; it grows until :meth:`end`.

        One that was suspended has several commands, which may all be delivered again: they share it.
        """
        past = self._live.get(key) or self._waits.pop(key, None) or self._handed_over.get(key)
        past = self._live[key] = past or self._taken_out(key)
        self._runs[key] += 1
        return past

    def _taken_out(self, key: bytes) -> Past:
        past = Past()
        for record in self._records.pop(key, ()):
            past.add(record)
        return past

    async def settle(self, key: bytes, past: Past) -> None:
        """As :meth:`Past.settle`."""
        await past.settle()
        self._put_away(key)

    def end(self, key: bytes) -> None:
        """The attempt is over, or waits."""
        self._runs[key] -= 1
        if self._runs[key] > 0:
            return
        del self._runs[key]
        past = self._live.pop(key, None)
        if past is not None and past.suspended:
            self._waits[key] = past
        self._put_away(key)

    def _put_away(self, key: bytes) -> None:
        """Where calls are under way elsewhere they count until they land, or their owner falls silent."""
        if key in self._handed_over and not self._handed_over[key].elsewhere:
            del self._handed_over[key]

    def forget(self) -> None:
        """Whatever was delivered again has begun: keep nothing for others."""
        self._records.clear()
        self._waits.clear()
        for key in list(self._handed_over):
            self._put_away(key)

    @property
    def elsewhere(self) -> int:
        """How many attempts have calls under way at the lane's last owner.

        Among them are some whose command is not delivered again, since their end is known already.
        """
        return sum(past.elsewhere for past in self._handed_over.values())

    def elsewhere_of(self, tenant: str) -> int:
        """Likewise, of one tenant."""
        begins = f"{tenant}/".encode()
        return sum(past.elsewhere for key, past in self._handed_over.items() if key.startswith(begins))

    @property
    def live(self) -> int:
        """How many attempts still look back."""
        return len(self._live)

    @property
    def attempts(self) -> int:
        """How many attempts have a past here."""
        return len(self._live) + len(self._records)
