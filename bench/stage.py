"""What a measurement runs on: a real Kafka, the simulated endpoint and a worker, each its own process."""

import asyncio
import os
import platform
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import psutil

from streams.kafka import admin
from streams.settings import Settings

HOME = Path(".anabranch")
READY_S = 40.0
STOP_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A running system.

    Attributes:
        url: The simulated endpoint.
        worker: The worker process, to account its CPU.
    """

    settings: Settings
    url: str
    worker: psutil.Process | None

    def cpu_s(self) -> float:
        """Seconds of CPU the worker has used, user and system together."""
        if self.worker is None:
            return 0.0
        times = self.worker.cpu_times()
        return times.user + times.system

    def memory_mb(self) -> float:
        """Resident memory of the worker, in megabytes."""
        return 0.0 if self.worker is None else self.worker.memory_info().rss / 1e6


@asynccontextmanager
async def process(*arguments: str, env: dict[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program of ours, ended with the block."""
    log = HOME / "bench" / f"{arguments[0]}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        running = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "streams.cli",
            *arguments,
            env=os.environ | env,
            stdout=asyncio.subprocess.PIPE,
            stderr=output,
        )
        try:
            yield running
        finally:
            if running.returncode is None:
                running.terminate()
            async with asyncio.timeout(STOP_S):
                await running.wait()


@asynccontextmanager
async def endpoint(*options: str) -> AsyncIterator[str]:
    """The simulated endpoint in a process of its own; its URL."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/v1"
    async with process("model", "--port", str(port), *options, env={}):
        await answers(f"{url}/models")
        yield url


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def answers(url: str) -> None:
    """Wait until an HTTP server answers."""
    async with asyncio.timeout(READY_S), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(url):
                    return
            except aiohttp.ClientError:
                await asyncio.sleep(0.05)


@asynccontextmanager
async def stage(servers: str, name: str, *options: str, concurrency: int = 100) -> AsyncIterator[Stage]:
    """Topics, endpoint and worker of one measurement.

    Args:
        options: Of the simulated endpoint.
    """
    prefix = f"bench-{name}-{os.getpid()}."
    settings = Settings(brokers=servers, prefix=prefix, concurrency=concurrency)
    await admin.create(settings)
    async with endpoint(*options) as url:
        env = {
            "ANABRANCH_BROKERS": servers,
            "ANABRANCH_PREFIX": prefix,
            "ANABRANCH_CONCURRENCY": str(concurrency),
            "OPENAI_BASE_URL": url,
            "OPENAI_API_KEY": "simulated",
        }
        async with process("worker", env=env) as worker:
            yield Stage(settings=settings, url=url, worker=psutil.Process(worker.pid))
    await admin.delete(settings)


def machine() -> str:
    """The machine that the figures belong to."""
    memory = round(psutil.virtual_memory().total / 2**30)
    return (
        f"{psutil.cpu_count()} cores, {memory} GiB, {platform.system()}, Python {platform.python_version()}"
    )
