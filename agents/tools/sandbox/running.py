"""One run in the sandbox: begun, its output kept to a bound, and ended whatever happens."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import orjson

from agents.tools.sandbox.mechanism import Bounds, Program, command, lacking, mechanism, specification

SETUP_S: Final = 10.0
"""Seconds to build a sandbox and to take it down, beyond those of the program."""

_CHUNK: Final = 65_536
_STATUS: Final = 65_536


class SandboxFailed(Exception):
    """The sandbox itself could not be made; the program did not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended.

    Attributes:
        exit: The program's exit code, below 0 the signal that ended it; None where the sandbox ended it.
        why: Why the sandbox ended it: ``time``, ``memory``, ``processes`` or ``output``; else empty.
    """

    exit: int | None
    why: str
    out: str
    err: str


async def run(program: Program, bounds: Bounds) -> Ended:
    """Run a program in a sandbox of its own, of which nothing is left afterwards.

    Cancelled, everything inside is killed.

    Raises:
        SandboxFailed: there is no sandbox, and why.
    """
    how = mechanism()
    if how is None or lacking():
        raise SandboxFailed(lacking())
    spec = orjson.dumps(specification(how, program, bounds))
    with _descriptors(spec) as (ours, theirs, begun):
        process = await asyncio.create_subprocess_exec(
            *command(how, inside(), theirs, bounds),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=theirs,
            env={},
            cwd="/",
            start_new_session=True,
        )
        begun()
        try:
            async with asyncio.timeout(bounds.seconds + SETUP_S):
                output = await _output(process, bounds.output)
                await process.wait()
        except TimeoutError:
            output = None
        finally:
            await _kill(process)
        if output is None:
            return Ended(exit=None, why="time", out="", err="")
        status = orjson.loads(os.read(ours, _STATUS) or b"{}") if not output.full else {"why": "output"}
    return _ended(status, output)


def _ended(status: dict[str, object], output: "_Output") -> Ended:
    out, err = output.text
    match status:
        case {"exit": int(code)}:
            return Ended(exit=code, why="", out=out, err=err)
        case {"why": "setup", "error": error}:
            raise SandboxFailed(str(error))
        case {"why": str(why)}:
            return Ended(exit=None, why=why, out=out, err=err)
        case _:
            raise SandboxFailed(err.strip() or "it ended without a word")


class _Output:
    """What a run writes, the first bytes of it."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._kept = bytearray(), bytearray()
        self.full = False

    def take(self, place: int, data: bytes) -> None:
        self._kept[place].extend(data[: max(0, self._left)])
        self._left -= len(data)
        self.full = self.full or self._left < 0

    @property
    def text(self) -> tuple[str, str]:
        out, err = (bytes(kept).decode("utf-8", "replace") for kept in self._kept)
        return out, err


async def _output(process: asyncio.subprocess.Process, most: int) -> _Output:
    """Read until both streams end, or there is more than is kept: then the run ends."""
    output = _Output(most)

    async def read(place: int, stream: asyncio.StreamReader | None) -> None:
        while stream is not None and (data := await stream.read(_CHUNK)):
            output.take(place, data)
            if output.full:
                with suppress(ProcessLookupError):
                    process.kill()
                return

    await asyncio.gather(read(0, process.stdout), read(1, process.stderr))
    return output


async def _kill(process: asyncio.subprocess.Process) -> None:
    """End the outermost process; the kernel ends all that is inside, as it loses its first process."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    await asyncio.shield(process.communicate())  # to the ends of its streams, so that they are closed


@contextmanager
def _descriptors(spec: bytes) -> Iterator[tuple[int, tuple[int, int, int], Callable[[], None]]]:
    """The descriptors of one run.

    They are: where we read how it ended; what goes inside, namely the specification, the place to say
    that, and a lifeline; and what closes here what is open there by then.
    """
    with ExitStack() as held, ExitStack() as passed:
        asked = os.memfd_create("sandbox")
        passed.callback(os.close, asked)
        os.write(asked, spec)
        os.lseek(asked, 0, os.SEEK_SET)
        ours, status = os.pipe()
        held.callback(os.close, ours)
        passed.callback(os.close, status)
        lifeline, end = os.pipe()
        passed.callback(os.close, lifeline)
        held.callback(os.close, end)
        yield ours, (asked, status, lifeline), passed.close


@cache
def inside() -> str:
    """The program that is process 1 of every sandbox, as text."""
    return (Path(__file__).parent / "inside.py").read_text(encoding="utf-8")
