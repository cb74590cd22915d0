"""Stands between clients and a Kafka node, and cuts or holds up a connection at an exact moment.

It knows of Kafka's protocol what it takes to tell requests and replies apart: each is a length (4
bytes), then, of a request, the number of the API (2), its version (2) and the correlation id (4), of
a reply the correlation id (https://kafka.apache.org/protocol#protocol_common). Nothing is changed on
its way; what is not trapped goes through as it comes.

Clients stay on the proxy only where the node tells them its address: see ``streams.broker.Door``.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, Literal, Self, TypeAlias

CONNECT_S: Final = 5.0
"""Seconds that the node may take to accept a connection."""

Moment: TypeAlias = Literal["before", "after"]
"""``before``: a request has not reached the node, and where the connection is cut it never will.
``after``: the node has carried it out and answered, and the answer has not passed."""

_CHUNK_BYTES: Final = 65_536


class Api(IntEnum):
    """The requests that can be trapped, by Kafka's own numbers."""

    PRODUCE = 0
    OFFSET_COMMIT = 8
    HEARTBEAT = 12
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    END_TXN = 26
    """The commit of a transaction, or its abort."""
    TXN_OFFSET_COMMIT = 28


@dataclass(slots=True, kw_only=True, eq=False)
class Trap:
    """What is to happen to which requests.

    Attributes:
        api: Which kind of request.
        moment: When.
        hold_s: Seconds to hold up the connection, with all that comes behind; None cuts it.
        skip: So many requests of this kind pass first.
        times: So many are trapped, one after another.
        sprung: So many were trapped so far.
        once: Set when the first one was.
    """

    api: Api
    moment: Moment
    hold_s: float | None = None
    skip: int = 0
    times: int = 1
    sprung: int = 0
    once: asyncio.Event = field(default_factory=asyncio.Event)

    def takes(self, api: int) -> bool:
        """Whether the next request, of this kind, is to be trapped; counts it."""
        if api != self.api or self.sprung >= self.times:
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.sprung += 1
        return True


class Proxy:
    """One node's proxy.

    Args:
        port: Where clients find it.
        node: The node's port behind it.
    """

    def __init__(self, host: str, port: int, node: int) -> None:
        self._host, self._port, self._node = host, port, node
        self._traps: list[Trap] = []
        self._server: asyncio.Server | None = None
        self._ways: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, self._host, self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()
        if self._ways:
            await asyncio.wait(self._ways)

    @property
    def servers(self) -> str:
        """Bootstrap servers for clients that are to come by here, ``host:port``."""
        return f"{self._host}:{self._port}"

    def set(self, trap: Trap) -> Trap:
        """Trap requests from now on; of several traps the first that takes a request has it."""
        self._traps.append(trap)
        return trap

    def lift(self, trap: Trap) -> None:
        """Trap no more."""
        self._traps.remove(trap)

    def cut(self) -> None:
        """Cut all connections at once; clients may connect again."""
        for way in self._ways:
            way.cancel()

    def _trap(self, api: int) -> Trap | None:
        return next((trap for trap in self._traps if trap.takes(api)), None)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        way = asyncio.create_task(self._carry(reader, writer))
        self._ways.add(way)
        way.add_done_callback(self._ways.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side ends it or it is cut."""
        sides, pumps = [writer], set[asyncio.Task[None]]()
        try:
            async with asyncio.timeout(CONNECT_S):
                from_node, to_node = await asyncio.open_connection(self._host, self._node)
            sides.append(to_node)
            awaited: dict[bytes, Trap] = {}
            pumps.add(asyncio.create_task(self._requests(reader, to_node, awaited)))
            pumps.add(asyncio.create_task(self._replies(from_node, writer, awaited)))
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        except (OSError, TimeoutError):
            pass  # the node is away, and so are we
        finally:
            for pump in pumps:
                pump.cancel()
            for side in sides:
                side.transport.abort()  # what was not sent yet is lost, as on a broken line

    async def _requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, awaited: dict[bytes, Trap]
    ) -> None:
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                head = await reader.readexactly(12)
                trap = self._trap(int.from_bytes(head[4:6], signed=True))
                if trap is not None and trap.moment == "after":
                    awaited[head[8:12]] = trap
                elif trap is not None and not await _passes(trap):
                    return
                await _pass_on(reader, writer, head)

    async def _replies(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, awaited: dict[bytes, Trap]
    ) -> None:
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                head = await reader.readexactly(8)
                trap = awaited.pop(head[4:8], None)
                if trap is not None and not await _passes(trap):
                    return
                await _pass_on(reader, writer, head)


async def _passes(trap: Trap) -> bool:
    """Do what the trap says, and say whether the message goes on after that."""
    trap.once.set()
    if trap.hold_s is None:
        return False
    await asyncio.sleep(trap.hold_s)
    return True


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
    """The message that begins with *head*, to its end."""
    left = int.from_bytes(head[:4]) + 4 - len(head)
    writer.write(head)
    while left > 0:
        part = await reader.read(min(left, _CHUNK_BYTES))
        if not part:
            raise asyncio.IncompleteReadError(b"", left)
        writer.write(part)
        left -= len(part)
        await writer.drain()
