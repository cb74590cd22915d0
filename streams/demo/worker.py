"""A worker as users start it, a process of its own; it ends with the one that started it."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import streams
from streams.access import Access
from streams.broker.attached import die_with_parent
from streams.settings import Settings

STOP_S: Final = 3.0
"""Seconds between SIGTERM and SIGKILL: nothing that it does is of use any more."""

_KILL_S: Final = 5.0
_TAIL_BYTES: Final = 4_096

# Our own code, whatever lies in the working directory.
_CODE: Final = str(Path(streams.__file__).parent.parent)
_PROGRAM: Final = f"import sys; sys.path.insert(0, {_CODE!r}); from streams.cli import main; main()"


class WorkerDied(Exception):
    """The worker ended by itself; the message holds the end of its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A running worker.

    Attributes:
        log: What it says, as JSON lines.
    """

    process: asyncio.subprocess.Process
    log: Path

    async def died(self) -> None:
        """Wait until it ends.

        Raises:
            WorkerDied: always.
        """
        code = await self.process.wait()
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        raise WorkerDied(f"the worker {how}.{self.told()}")

    def told(self) -> str:
        """The end of its log, for a message."""
        with suppress(FileNotFoundError):
            if text := self.log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").strip():
                return f" The end of its log, {self.log}:\n{text}"
        return f" Its log, {self.log}, is empty."

    async def stop(self) -> None:
        """End it with SIGTERM, and after 3 s with SIGKILL."""
        try:
            with suppress(ProcessLookupError, TimeoutError):
                self.process.terminate()
                async with asyncio.timeout(STOP_S):
                    await self.process.wait()
        finally:
            with suppress(ProcessLookupError):
                self.process.kill()
            async with asyncio.timeout(_KILL_S):
                await self.process.wait()


def _environment(settings: Settings) -> dict[str, str]:
    """Ours, without what belongs to another Kafka, or to other models, than the worker is to use."""
    foreign = "ANABRANCH_KAFKA_" if settings.access == Access() else "\0"
    ours = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return ours | {"ANABRANCH_CONFIG": os.devnull}


async def start_worker(settings: Settings, log: Path) -> Worker:
    """Start a worker for a system; its key it takes from our environment.

    Args:
        log: A new file for what it says.
    """
    arguments = ["--brokers", settings.brokers, "--prefix", settings.prefix, "--lanes", str(settings.lanes)]
    arguments += ["--concurrency", str(settings.concurrency), "--json"]
    for flag, value in (("--base-url", settings.base_url), ("--model", settings.model)):
        arguments += [flag, value] if value else []
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-c", _PROGRAM, "worker", *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=_environment(settings),
            start_new_session=True,  # Ctrl-C is for us, who then stop it in order
            preexec_fn=die_with_parent(),
        )
    return Worker(process=process, log=log)
