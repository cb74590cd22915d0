r"""Headers whose names are no UTF-8: Kafka takes them, and aiokafka's consumer never gets past them.

The protocol says that a name is text, brokers do not look, and C clients send whatever bytes they are
given. aiokafka raises `UnicodeDecodeError` for the whole batch, each time it is fetched: one such record
on ``goals`` would end every worker. Here its batch is read once more by aiokafka's own parser in Python,
the bytes of such names as escapes (``\xff``); every other batch goes the fast way.
"""

import struct
from collections.abc import Iterator
from typing import Any, Final

import structlog
from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords

_AT_LENGTH: Final = 8
_LENGTH: Final = struct.Struct(">i")
_BEFORE_BATCH: Final = 12
"""A batch begins with its first offset (8 bytes) and the length of what follows (4 bytes)."""


class Batch:
    """A batch as aiokafka's, but for the names of headers.

    Args:
        batch: aiokafka's own.
        data: The batch's bytes.
    """

    def __init__(self, batch: Any, data: memoryview) -> None:
        self._batch, self._data = batch, data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        try:
            return iter(list(self._batch))
        except UnicodeDecodeError as error:
            structlog.get_logger().warning(
                "header_name_no_text", offset=self._batch.base_offset, reason=str(error)
            )
        slow = _DefaultRecordBatchPy(self._data)
        slow._maybe_uncompress()  # noqa: SLF001 - else it would do so later, and undo the next line
        slow._buffer = _Names(slow._buffer)  # noqa: SLF001
        return iter(list(slow))


class _Names(bytearray):
    """Bytes whose slices are decoded without an error; of a record only the names of headers are."""

    def __getitem__(self, place: Any) -> Any:
        got = super().__getitem__(place)
        return _Names(got) if isinstance(place, slice) else got

    def decode(self, encoding: str = "utf-8", errors: str = "backslashreplace") -> str:
        return super().decode(encoding, "backslashreplace" if errors == "strict" else errors)


class Records:
    """As aiokafka's ``MemoryRecords``: the batches of one reply to a fetch."""

    def __init__(self, data: bytes) -> None:
        self._records, self._data, self._at = MemoryRecords(data), memoryview(data), 0

    def size_in_bytes(self) -> int:
        """Bytes of the reply."""
        size: int = self._records.size_in_bytes()
        return size

    def has_next(self) -> bool:
        """Whether there is another whole batch."""
        more: bool = self._records.has_next()
        return more

    def next_batch(self) -> Any:
        """The next batch."""
        batch = self._records.next_batch()
        if batch is None:
            return None
        start = self._at
        (length,) = _LENGTH.unpack_from(self._data, start + _AT_LENGTH)
        self._at = start + _BEFORE_BATCH + length
        return Batch(batch, self._data[start : self._at])


fetcher.MemoryRecords = Records
