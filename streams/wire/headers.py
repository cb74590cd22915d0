"""Kafka headers that travel inside of an event, and come back byte for byte."""

from base64 import b64decode, b64encode
from typing import Final

from streams.core.goal import Header
from streams.log import Headers
from streams.wire.envelope import Unwritable

SIGNATURE: Final = "anabranch-signature"
"""The header that says who sent a record; it is for intake, and comes back on no answer."""

CARRIED_BYTES: Final = 262_144
CARRIED: Final = 4_096
"""All headers of a goal together, at most: they stand in the event and on the answer."""


def too_many(headers: Headers) -> str:
    """Why these headers cannot be carried from a goal to its answer; empty where they can."""
    if len(headers) > CARRIED:
        return f"{len(headers)} headers, at most {CARRIED} are carried"
    if (size := size_of(headers)) > CARRIED_BYTES:
        return f"the headers have {size} bytes, at most {CARRIED_BYTES} are carried"
    return ""


def read_headers(headers: Headers) -> tuple[Header, ...]:
    """The headers of a record as values but its signature; what is no UTF-8 in base64."""
    return tuple(_header(name, value) for name, value in headers if name.lower() != SIGNATURE)


def _header(name: str, value: bytes | None) -> Header:
    if value is None:
        return Header(name=name, value=None)
    try:
        return Header(name=name, value=value.decode())
    except UnicodeDecodeError:
        return Header(name=name, value=b64encode(value).decode(), base64=True)


def write_headers(headers: tuple[Header, ...]) -> Headers:
    """The headers for a record, the opposite of :func:`read_headers`.

    Raises:
        Unwritable: a value said to be base64 is not.
    """
    return tuple((header.name, _bytes(header)) for header in headers)


def _bytes(header: Header) -> bytes | None:
    if header.value is None:
        return None
    try:
        return b64decode(header.value, validate=True) if header.base64 else header.value.encode()
    except ValueError as error:
        raise Unwritable(f"header {header.name[:64]!r}: {error}") from None


def size_of(headers: Headers) -> int:
    """Bytes of all names and values together."""
    return sum(len(name.encode(errors="replace")) + len(value or b"") for name, value in headers)
