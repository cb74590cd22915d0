"""Two things about aiokafka's connections that have to be other; docs/facts.md tells what was seen.

1. A refused bearer token is an error, and not a success (:class:`Bearer`).
2. A TLS connection that is closed is closed at once (:class:`Connection`).
"""

import asyncio
from typing import Any

from aiokafka import conn


class Bearer(conn.OAuthAuthenticator):  # type: ignore[misc]  # aiokafka has no types
    """Hears that its token is refused.

    A server says so in a challenge, which the client has to answer before it learns the failure
    (RFC 7628, section 3.2.3). aiokafka takes the challenge for the end of the matter, and goes on as
    if it were let in, to a cluster without brokers.
    """

    async def step(self, payload: bytes | None) -> tuple[bytes, bool] | None:
        """The next message to the server; None when there is none."""
        if payload:
            return b"\x01", True
        step: tuple[bytes, bool] | None = await super().step(payload)
        return step


class Connection(conn.AIOKafkaConnection):  # type: ignore[misc]  # aiokafka has no types
    """Does not wait for the broker's goodbye.

    On uvloop a close takes the 30 s of its shutdown timeout where a request was sent just before, as
    by a consumer that asks for more the moment it has something. What was asked is given up with the
    connection either way.
    """

    def close(self, reason: Any = None, exc: BaseException | None = None) -> "asyncio.Future[None] | None":
        """Close it; the future is done once it is closed."""
        writer = self._writer
        closed: asyncio.Future[None] | None = super().close(reason, exc)
        if writer is not None and self._ssl_context is not None:
            writer.transport.abort()
        return closed


conn.OAuthAuthenticator = Bearer
conn.AIOKafkaConnection = Connection
