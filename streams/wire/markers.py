"""Markers: finished jobs, as small in memory as they can be read from."""

import re
from dataclasses import fields
from typing import Final

import orjson

from streams.core.states import Finished

_ROW: Final = re.compile(
    rb'\{"v":1,"type":"Finished","row":\{"digest":("[ !#-\[\]-~]*"),'
    rb'"outcome":("succeeded"|"partial"|"failed"|"rejected"),'
    rb'"offset":(-?[0-9]{1,18}),"at":([0-9]{1,18}),"revision":([0-9]{1,18})\}\}'
)
"""A row as :func:`streams.wire.rows.write_row` writes it, field by field: to check it so takes a fifth of
the time that to read it takes."""

_NAMES: Final = tuple(field.name for field in fields(Finished))


def packed_row(value: bytes) -> bytes | None:
    """The row of a finished job, packed; None where it is another row, or looks out of the ordinary."""
    written = _ROW.fullmatch(value)
    return None if written is None else b"[%b,%b,%b,%b,%b]" % written.groups()


def pack(marker: Finished) -> bytes:
    """A finished job in about 100 bytes."""
    written = orjson.dumps([getattr(marker, name) for name in _NAMES])
    return b"%b" % written  # a copy: orjson's own bytes hold on to the 4 KB that they were written into


def unpack(packed: bytes) -> Finished:
    """The opposite of :func:`pack`."""
    return Finished(**dict(zip(_NAMES, orjson.loads(packed), strict=False)))  # an older one may have less
