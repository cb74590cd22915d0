"""The finished jobs of one partition: for each a marker, so that none is ever answered twice.

A marker costs about 260 bytes of memory, its name included, and as many on the topic. So that they do not
grow for ever, the oldest go once there are more than :data:`KEPT` of a partition and they are older than
:data:`KEPT_MS`, three times the longest that any other topic keeps a record of the job.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from streams.core.states import Finished
from streams.core.values import JobId
from streams.wire.markers import pack, unpack

KEPT: Final = 1_000_000
"""Markers of a partition that stay, however old they are: 260 MB."""

KEPT_MS: Final = 90 * 86_400_000
"""Milliseconds that every marker stays."""

AT_ONCE: Final = 1_000
"""Markers that go with one commit, at most."""


class Markers:
    """The finished jobs of one partition, the first to finish first.

    Args:
        kept: As :data:`KEPT`.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._packed: dict[JobId, bytes] = {}

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[JobId]:
        return iter(self._packed)

    def get(self, job: JobId) -> Finished | None:
        """The marker of a job; None where it has not finished."""
        packed = self._packed.get(job)
        return None if packed is None else unpack(packed)

    def put(self, job: JobId, marker: Finished) -> None:
        """The job has finished, after all that are here."""
        self.put_packed(job, pack(marker))

    def put_packed(self, job: JobId, packed: bytes) -> None:
        """As :meth:`put`, with what :mod:`streams.wire.markers` has packed."""
        self._packed.pop(job, None)
        self._packed[job] = packed

    def discard(self, job: JobId) -> None:
        """The job is open again, or nobody can ask for it any more."""
        self._packed.pop(job, None)

    def outlived(self, at: int) -> Iterator[JobId]:
        """The oldest jobs, where there are too many and nothing else knows of them any more.

        Args:
            at: Broker time, milliseconds since 1970.
        """
        for job in islice(self._packed, min(AT_ONCE, max(0, len(self) - self._kept))):
            if unpack(self._packed[job]).at >= at - KEPT_MS:
                return
            yield job
