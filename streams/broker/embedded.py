"""A broker that belongs to this process and ends with it."""

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from streams.broker import lockfile
from streams.broker.install import install
from streams.broker.node import AS_IT_IS, Node, lock_file, start_node

HOME: Final = Path(".anabranch")
"""Where everything lives unless told otherwise, in the working directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A running broker.

    Attributes:
        kept: Its data stay when it is stopped.
    """

    node: Node = field(repr=False)
    kept: bool

    @property
    def servers(self) -> str:
        """Bootstrap servers for clients, ``host:port``."""
        return self.node.servers

    @property
    def port(self) -> int:
        """Where it listens, on this machine only."""
        return self.node.port

    async def stop(self) -> None:
        """Stop it in order (0.4 s), or after 20 s at once."""
        try:
            await self.node.stop()
        finally:
            self._tidy()

    async def kill(self) -> None:
        """End it at once, as a crash would (SIGKILL)."""
        await self.node.kill()
        self._tidy()

    def _tidy(self) -> None:
        if not self.kept:
            shutil.rmtree(self.node.data, ignore_errors=True)


async def start(
    directory: Path = HOME,
    *,
    data: Path | None = None,
    port: int = 0,
    properties: Mapping[str, str] = AS_IT_IS,
) -> Broker:
    """Start a broker that dies with this process, however that ends (on Linux; see ``start_node``).

    Call it on a thread that lives as long as the broker is to live, such as the main thread.

    Args:
        directory: Where Kafka is installed, or will be.
        data: Where its data live and stay; the same directory and port again, after a stop or a
            crash, is the same broker again. None: somewhere under *directory*, until it is stopped.
        port: Where it listens on 127.0.0.1; 0 takes a free port.
        properties: Kafka's own, beside those that every broker here has, or in their place.

    Raises:
        BrokerFailed: with what to do.
    """
    kafka = await install(directory)
    if data is not None:
        return Broker(node=await start_node(kafka, data, port=port, properties=properties), kept=True)
    place = await asyncio.to_thread(_room, directory / "brokers")
    try:
        return Broker(node=await start_node(kafka, place, port=port, properties=properties), kept=False)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def _room(brokers: Path) -> Path:
    """A new directory for a broker's data; those of killed processes' brokers are removed."""
    brokers.mkdir(parents=True, exist_ok=True)
    for place in brokers.iterdir():
        if lock_file(place).exists() and not lockfile.is_held(lock_file(place)):
            shutil.rmtree(place, ignore_errors=True)
    return Path(tempfile.mkdtemp(dir=brokers))
