"""A batch that cannot be committed is narrowed down to the one event at fault."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streams.log import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """Events of which one could not be committed.

    Attributes:
        offset: Of the first of them.
        size: How many they are; 0 where what was staged before *offset* could not be committed.
        again: They failed before as they are: one alone is buried, more would be narrowed first.
    """

    offset: int
    size: int
    again: bool = False

    @property
    def end(self) -> int:
        """The offset after the last of them."""
        return self.offset + self.size

    @property
    def condemned(self) -> bool:
        """Whether it is one event, refused by itself, twice."""
        return self.size == 1 and self.again


def failed(offset: int, size: int, before: Suspect | None) -> Suspect:
    """What is suspected once the batch of *size* events at *offset* failed, *before* being suspected then."""
    again = before is not None and (before.offset, before.size) == (offset, size)
    return Suspect(offset=offset, size=size, again=again)


def parts(records: Sequence[Record], limit: int, suspect: Suspect | None) -> Iterator[Sequence[Record]]:
    """Records in the order and batches in which to fold them: at most *limit*, suspects in halves."""
    start = 0
    while start < len(records):
        size, first = limit, records[start].offset
        if suspect is not None and first < suspect.offset:
            size = min(limit, suspect.offset - first)
        elif suspect is not None and first < suspect.end:
            size = min((suspect.size + 1) // 2, suspect.end - first)
        yield records[start : start + size]
        start += size
