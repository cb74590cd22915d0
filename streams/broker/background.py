"""A broker that lives on when the command that started it ends, until it is told to stop."""

import asyncio
import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streams.broker import lockfile
from streams.broker.embedded import HOME
from streams.broker.failures import BrokerFailed
from streams.broker.install import install
from streams.broker.node import HOST, STOP_TIMEOUT_S, lock_file, start_node, state_file

PORT: Final = 9092
"""Where the background broker listens unless told otherwise: Kafka's usual port."""

_LOOK_AGAIN_S: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A broker in the background.

    Attributes:
        pid: Its process.
        servers: Bootstrap servers for clients, ``host:port``.
        data: Where its data are; they stay when it is stopped.
    """

    pid: int
    servers: str
    data: Path


async def start_in_background(directory: Path = HOME, *, port: int = PORT) -> Running:
    """Start a broker that outlives this process; its data stay under *directory*.

    Raises:
        BrokerFailed: with what to do; one already runs, for example.
    """
    kafka = await install(directory)
    node = await start_node(kafka, _data(directory), port=port, attached=False)
    return Running(pid=node.process.pid, servers=node.servers, data=node.data)


def status(directory: Path = HOME) -> Running | None:
    """The broker in the background under *directory*, or None.

    The state it left is only believed while the broker's own process holds the lock beside it, so
    another process that was given its id since is never taken for it.

    Raises:
        BrokerFailed: it is just being started or stopped.
    """
    data = _data(directory)
    if not lockfile.is_held(lock_file(data)):
        return None
    try:
        state = json.loads(state_file(data).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        raise BrokerFailed(f"The broker on {data} is starting or stopping: ask again in a moment.") from None
    return Running(pid=state["pid"], servers=f"{HOST}:{state['port']}", data=data)


async def stop_in_background(directory: Path = HOME) -> bool:
    """Stop the broker in the background (SIGTERM, after 20 s SIGKILL); False if there is none.

    Raises:
        BrokerFailed: it does not end, or is just being started.
    """
    running = status(directory)
    if running is None:
        state_file(_data(directory)).unlink(missing_ok=True)
        return False
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                os.kill(running.pid, how)
                while lockfile.is_held(lock_file(running.data)):
                    await asyncio.sleep(_LOOK_AGAIN_S)
        except ProcessLookupError:
            pass
        except TimeoutError:
            continue
        state_file(running.data).unlink(missing_ok=True)
        return True
    raise BrokerFailed(f"The broker, process {running.pid}, does not end even on SIGKILL.")


def _data(directory: Path) -> Path:
    return directory.absolute() / "broker"
