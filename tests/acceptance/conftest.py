"""What acceptance tests need: the programs as users start them, and a Kafka that may fall over."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest
import pytest_asyncio

from streams import broker
from streams.settings import Settings

ROOT = Path(__file__).parent.parent.parent
START_S = 60.0
END_S = 60.0
PROGRAM = "from streams.cli import main; main()"


@dataclass(slots=True, kw_only=True)
class Program:
    """One ``anabranch`` process, and what it has said so far on both outputs."""

    name: str
    process: asyncio.subprocess.Process
    lines: list[str] = field(default_factory=list)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _listening: "asyncio.Task[None] | None" = None

    @classmethod
    async def start(cls, *arguments: str, environment: dict[str, str], code: str = PROGRAM) -> Self:
        """Start ``anabranch`` with these arguments, or other *code* that takes them."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", code, *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
            cwd=ROOT,
            limit=1_048_576,
        )
        program = cls(name=" ".join(arguments), process=process)
        program._listening = asyncio.create_task(program._listen())
        return program

    async def _listen(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            async with self._changed:
                self.lines.append(line.decode(errors="replace").rstrip("\n"))
                self._changed.notify_all()
        await self.process.wait()
        async with self._changed:
            self._changed.notify_all()

    async def says(self, text: str, *, within_s: float = START_S) -> str:
        """The first line that holds *text*; waits for it.

        Raises:
            AssertionError: it ended, or the time is over, before it said so.
        """

        def line() -> str | None:
            return next((line for line in self.lines if text in line), None)

        try:
            async with asyncio.timeout(within_s), self._changed:
                await self._changed.wait_for(lambda: line() or self.process.returncode is not None)
        except TimeoutError:
            pytest.fail(f"`{self.name}` has not said {text!r} within {within_s:.0f} s:\n{self.output}")
        said = line()
        assert said is not None, f"`{self.name}` ended with {self.process.returncode}:\n{self.output}"
        return said

    async def ended(self, *, within_s: float = END_S) -> int:
        """Its exit code; waits for its end."""
        assert self._listening is not None
        try:
            async with asyncio.timeout(within_s):
                await asyncio.shield(self._listening)
        except TimeoutError:
            pytest.fail(f"`{self.name}` still runs after {within_s:.0f} s:\n{self.output}")
        assert self.process.returncode is not None
        return self.process.returncode

    async def stop(self) -> int:
        """End it as a terminal or an orchestrator would (SIGTERM); gives the exit code."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        return await self.ended()

    async def kill(self) -> None:
        """End it as a power cut would (kill -9)."""
        if self.process.returncode is None:
            self.process.kill()
        await self.ended()

    @property
    def output(self) -> str:
        """The last lines it said."""
        return "\n".join(self.lines[-200:])


class Programs:
    """Starts ``anabranch`` processes for one test; those that still run at its end are killed."""

    def __init__(self) -> None:
        """None runs yet."""
        self.started: list[Program] = []

    async def start(
        self, *arguments: str, system: Settings | None = None, code: str = PROGRAM, **variables: str
    ) -> Program:
        """Start ``anabranch ARGUMENTS`` for a system, with these environment variables beside."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ANABRANCH_", "OPENAI_"))
        }
        environment |= {"PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "200"}
        if system is not None:
            environment |= {
                "ANABRANCH_BROKERS": system.brokers,
                "ANABRANCH_PREFIX": system.prefix,
                "ANABRANCH_LANES": str(system.lanes),
                "ANABRANCH_CONCURRENCY": str(system.concurrency),
            }
        program = await Program.start(*arguments, environment=environment | variables, code=code)
        self.started.append(program)
        return program


@pytest_asyncio.fixture
async def programs() -> AsyncIterator[Programs]:
    """``anabranch`` processes; what they said is printed for a failed test."""
    programs = Programs()
    try:
        yield programs
    finally:
        for program in programs.started:
            await program.kill()
            print(f"--- anabranch {program.name}: exit code {program.process.returncode}\n{program.output}")  # noqa: T201


class OwnKafka:
    """A broker of one test, which may stop it, kill it and start it again where it was."""

    def __init__(self, home: Path, data: Path) -> None:
        """It does not run yet."""
        self._home = home
        self._data = data
        self._port = 0
        self._running: broker.Broker | None = None

    @property
    def servers(self) -> str:
        """Bootstrap servers, the same over restarts."""
        return f"127.0.0.1:{self._port}"

    async def start(self) -> None:
        """Start it, with what it had."""
        assert self._running is None
        self._running = await broker.start(self._home, data=self._data, port=self._port)
        self._port = self._running.port

    async def stop(self) -> None:
        """Stop it in order, if it runs."""
        if self._running is not None:
            await self._running.stop()
            self._running = None

    async def kill(self) -> None:
        """Kill -9, if it runs."""
        if self._running is not None:
            await self._running.kill()
            self._running = None


@pytest_asyncio.fixture
async def own_kafka(kafka_home: Path, tmp_path: Path) -> AsyncIterator[OwnKafka]:
    """A running broker that nobody else uses."""
    kafka = OwnKafka(kafka_home, tmp_path / "kafka")
    await kafka.start()
    try:
        yield kafka
    finally:
        await kafka.kill()
