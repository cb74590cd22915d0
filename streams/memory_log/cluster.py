"""The broker: topics, transactions and groups, and who is connected."""

import asyncio
from collections.abc import Mapping, Sequence
from random import Random

from streams.log import Record, RecordRefused
from streams.memory_log.connection import Limits, MemoryLog
from streams.memory_log.faults import NO_FAULTS, Faults
from streams.memory_log.group import Group
from streams.memory_log.partition import Partition
from streams.memory_log.transactions import Coordinator
from streams.memory_log.wire import Wire

EPOCH_MS = 1_767_225_600_000  # 2026-01-01; append times count from here, in the loop's time


class MemoryCluster:
    """A broker in memory, to be made inside the running loop that everything on it shares.

    Args:
        topics: Number of partitions by topic.
        seed: Decides every delay, fault and order that is left to chance.
        faults: What goes wrong.
        limits: Sizes and timeouts.
    """

    def __init__(
        self,
        topics: Mapping[str, int],
        *,
        seed: int = 0,
        faults: Faults = NO_FAULTS,
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.faults = faults
        self.chance = Random(seed)  # noqa: S311 - chance that must be repeatable, no secret
        self.coordinator = Coordinator(self.chance, faults.delay_s, self.limits.transaction_timeout_s)
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._partitions = {
            topic: [Partition(topic, n) for n in range(count)] for topic, count in topics.items()
        }
        self._groups: dict[tuple[str, str], Group] = {}
        self._connections = 0

    def connect(self, name: str, *, static: bool = False) -> MemoryLog:
        """A process's connection.

        Args:
            name: The process's name, for ids and errors.
            static: *name* is a stable member name: the process keeps its partitions when it is
                back within the session timeout, and does not give them up when it closes.
        """
        self._connections += 1
        return MemoryLog(self, name if static else f"{name}-{self._connections}", static=static)

    def wire(self) -> Wire:
        """A new way to this broker."""
        return Wire(self.faults, self.chance, self._began, self.limits.request_timeout_s)

    def now_ms(self) -> int:
        """The broker's clock, milliseconds since 1970."""
        return EPOCH_MS + round(self._loop.time() * 1000)

    def partition(self, topic: str, number: int) -> Partition:
        """One partition.

        Raises:
            RecordRefused: there is no such topic or partition.
        """
        partitions = self._partitions.get(topic, [])
        if not 0 <= number < len(partitions):
            raise RecordRefused(f"{topic} has no partition {number}: it has {len(partitions)}")
        return partitions[number]

    def width(self, topic: str) -> int:
        """How many partitions *topic* has; 0 where there is none."""
        return len(self._partitions.get(topic, ()))

    def wipe(self, topic: str) -> None:
        """Delete a topic with all that is on it, and make it anew. Nobody may be connected who uses it."""
        self._partitions[topic] = [Partition(topic, n) for n in range(self.width(topic))]

    def group(self, name: str, topic: str, *, sticky: bool) -> Group:
        """The consumer group *name* on *topic*, made when it is first asked for."""
        key = (name, topic)
        if key not in self._groups:
            self._groups[key] = Group(
                len(self._partitions[topic]),
                sticky=sticky,
                rebalance_timeout_s=self.limits.rebalance_timeout_s,
            )
        return self._groups[key]

    def records(self, topic: str, partition: int | None = None) -> Sequence[Record]:
        """What a reader sees by now, in order, of one partition or of all one after another."""
        chosen = self._partitions[topic] if partition is None else [self.partition(topic, partition)]
        return [record for each in chosen for record in each.visible(0, each.end)[0]]

    def groups(self) -> Mapping[tuple[str, str], Group]:
        """Every group that was ever asked for, by its name and topic."""
        return self._groups

    def committed(self, group: str, topic: str) -> Mapping[int, int]:
        """The group's next offsets by partition."""
        found = self._groups.get((group, topic))
        return dict(found.committed) if found else {}
