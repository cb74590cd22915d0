"""One Kafka process on a data directory: configured, formatted, started, awaited, stopped."""

import asyncio
import json
import os
import secrets
import signal
import socket
import subprocess
from collections.abc import Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from streams.broker import lockfile
from streams.broker.attached import die_with_parent
from streams.broker.failures import BrokerFailed
from streams.broker.kafka import Kafka, java_environment
from streams.broker.ready import is_ready

HOST: Final = "127.0.0.1"

START_TIMEOUT_S: Final = 90.0
"""Seconds for a start, format included: about 2 on an idle machine."""

STOP_TIMEOUT_S: Final = 20.0
"""Seconds between SIGTERM and SIGKILL; a clean stop takes 0.4."""

_LOOK_AGAIN_S: Final = 0.02
_LOG_TAIL_BYTES: Final = 4_096
_CLUSTER_ID: Final = "AnabranchEmbeddedKafka"  # any 22 characters that do not begin with "-"

# Below the ports that systems give to outgoing connections (Linux from 32768, macOS and IANA from
# 49152): a client that keeps trying a stopped broker's port there can end up connected to itself,
# and the broker cannot come back.
_PORTS: Final = range(20_000, 32_000)

_CONFIG: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
log.dirs={logs}
auto.create.topics.enable=false
message.max.bytes=4194304
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
# After a kill the node waits until its own former registration has expired (9 s by default).
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
# One small machine, few clients.
num.network.threads=2
num.io.threads=4
log.cleaner.dedupe.buffer.size=16777216
"""

AS_IT_IS: Final[Mapping[str, str]] = MappingProxyType({})
"""No properties beside those that every node here has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A running Kafka process.

    Attributes:
        data: All it keeps: configuration, log of the process, logs of the topics.
        port: Where it listens, on this machine only.
    """

    data: Path
    port: int
    process: "subprocess.Popen[bytes]" = field(repr=False)

    @property
    def servers(self) -> str:
        """Bootstrap servers for clients."""
        return f"{HOST}:{self.port}"

    async def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End it with SIGTERM, and after *timeout_s* seconds with SIGKILL."""
        self.process.terminate()  # ours until it is awaited, so no other can have its id
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await _ended(self.process)
        finally:
            await self.kill()

    async def kill(self) -> None:
        """End it with SIGKILL, if it still runs, as a crash would."""
        await _kill(self.process)
        state_file(self.data).unlink(missing_ok=True)


def lock_file(data: Path) -> Path:
    """Locked by the Kafka process itself, for as long as it lives."""
    return data / "running.lock"


def state_file(data: Path) -> Path:
    """Process id and port of the Kafka process that holds the lock."""
    return data / "running.json"


async def start_node(
    kafka: Kafka,
    data: Path,
    *,
    port: int = 0,
    attached: bool = True,
    record: Path | None = None,
    properties: Mapping[str, str] = AS_IT_IS,
) -> Node:
    """Start Kafka on *data*, new or as an earlier one left it, and wait until clients can work.

    Args:
        port: Where to listen; 0 takes a free one.
        attached: The process dies with the thread that started it, however that ends (on Linux;
            elsewhere only when it is stopped). Else it lives on.
        record: Where the process writes the JVM's start-up cache when it ends.
        properties: Kafka's own, beside those that every node here has, or in their place.

    Raises:
        BrokerFailed: it did not start; the message holds the end of its log.
    """
    data = data.absolute()
    log = data / "broker.log"
    lock = _lock(data)
    try:
        port = free_port(port)
        config = _write(data, port, properties)
        async with asyncio.timeout(START_TIMEOUT_S):
            if not _is_formatted(data):
                arguments = ["format", "--ignore-formatted", "-t", _CLUSTER_ID, "-c", str(config)]
                command = kafka.command("kafka.tools.StorageTool", *arguments, temporary=data / "tmp")
                await _format(_spawn(command, log, attached=True, inherit=lock), log)
            command = kafka.command("kafka.Kafka", str(config), temporary=data / "tmp", record=record)
            process = _spawn(command, log, attached=attached, inherit=lock)
            node = Node(data=data, port=port, process=process)
            try:
                state_file(data).write_text(json.dumps({"pid": process.pid, "port": port}), encoding="utf-8")
                await _ready(process, port, log)
            except BaseException:
                await node.kill()
                raise
    except TimeoutError:
        raise BrokerFailed(f"Kafka was not ready after {START_TIMEOUT_S:.0f} s.{_tail(log)}") from None
    finally:
        os.close(lock)
    return node


def _lock(data: Path) -> int:
    """Have *data* for ourselves; Kafka inherits the lock and holds it while it lives."""
    lock = lockfile.take(lock_file(data))
    if lock is None:
        raise BrokerFailed(f"A broker already runs on {data} ({_known(data)}): stop it first.")
    state_file(data).unlink(missing_ok=True)
    return lock


def _write(data: Path, port: int, properties: Mapping[str, str]) -> Path:
    """The configuration file."""
    (data / "tmp").mkdir(exist_ok=True)
    (data / "broker.log").write_bytes(b"")
    controller = free_port(but={port})
    config = data / "server.properties"
    text = _CONFIG.format(host=HOST, port=port, controller=controller, logs=data / "logs")
    # Of a property that stands there twice Kafka takes the last.
    text += "".join(f"{name}={value}\n" for name, value in properties.items())
    config.write_text(text, encoding="utf-8")
    return config


def _is_formatted(data: Path) -> bool:
    return (data / "logs" / "meta.properties").exists()


def _known(data: Path) -> str:
    try:
        state = json.loads(state_file(data).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "still starting"
    return f"process {state['pid']}, {HOST}:{state['port']}"


def free_port(port: int = 0, *, but: Container[int] = ()) -> int:
    """*port* if it is free, or with 0 any free one except those of *but*.

    Raises:
        BrokerFailed: it is in use, or none is free.
    """
    if port:
        if not _is_free(port):
            raise BrokerFailed(f"Port {port} is in use: stop what listens there, or choose another.")
        return port
    for _ in range(100):
        candidate = secrets.choice(_PORTS)
        if candidate not in but and _is_free(candidate):
            return candidate
    raise BrokerFailed(f"No free port found between {_PORTS.start} and {_PORTS.stop}: name one.")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As Kafka does: a port that only waits for late packets is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _spawn(command: list[str], log: Path, *, attached: bool, inherit: int) -> "subprocess.Popen[bytes]":
    """A process in a session of its own: Ctrl-C is for us, who then stop it in order."""
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603 - our own Java, with our own arguments
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=java_environment(),
            start_new_session=True,
            pass_fds=(inherit,),
            preexec_fn=die_with_parent() if attached else None,  # noqa: PLW1509 - only system calls
        )


async def _format(process: "subprocess.Popen[bytes]", log: Path) -> None:
    try:
        await _ended(process)
    except BaseException:
        await _kill(process)
        raise
    if process.returncode:
        raise BrokerFailed(f"Kafka cannot format its data directory.{_tail(log)}")


async def _ready(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    while not await is_ready(HOST, port):
        if process.poll() is not None:
            raise BrokerFailed(f"Kafka ended at its start with code {process.returncode}.{_tail(log)}")
        await asyncio.sleep(_LOOK_AGAIN_S)


async def _ended(process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None:
        await asyncio.sleep(_LOOK_AGAIN_S)


async def _kill(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)  # and the process that writes its start-up cache
    async with asyncio.timeout(STOP_TIMEOUT_S):
        await _ended(process)


def _tail(log: Path) -> str:
    text = log.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace").strip()
    return f" The end of {log}:\n{text}" if text else f" {log} is empty."
