"""One lane while this process owns it: what was delivered, and its acknowledgement in order."""

import asyncio
from collections import deque

from streams.attempts import is_done
from streams.log import Delivery
from streams.takeover import TakeOver


class Lane:
    """One partition of ``subtasks``.

    Attributes:
        takeover: What was done on it before.
        delivered: What was delivered in this generation of the group and is not acknowledged yet.
        held: The tasks of all that was delivered and is not acknowledged, in whichever generation.
    """

    def __init__(self, partition: int, takeover: TakeOver) -> None:
        self.partition, self.takeover = partition, takeover
        self.delivered: deque[tuple[Delivery, asyncio.Task[bool]]] = deque()
        self.held: set[asyncio.Task[bool]] = set()

    def add(self, delivery: Delivery, task: "asyncio.Task[bool]") -> None:
        """A command was delivered; *task* runs it, and says whether it is done."""
        if self.delivered and delivery.record.offset <= self.delivered[-1][0].record.offset:
            # A rebalance: all that is not committed comes again, in order. The acknowledgements of
            # what came before have no effect any more, and must not be waited for.
            self.delivered.clear()
        self.delivered.append((delivery, task))
        self.held.add(task)
        task.add_done_callback(self._acknowledge)

    def lost(self) -> None:
        """It is another's; should it come back, what is not done by then is delivered again."""
        self.delivered.clear()

    def _acknowledge(self, _: object) -> None:
        while self.delivered and (task := self.delivered[0][1]).done():
            if not is_done(task):
                return  # not done: it, and all behind it, is delivered again
            self.held.discard(task)
            self.delivered.popleft()[0].ack()

    def where(self) -> str:
        """The oldest command that is not acknowledged, for a person."""
        record = self.delivered[0][0].record
        return f"subtasks[{record.partition}]@{record.offset} {(record.key or b'').decode(errors='replace')}"
