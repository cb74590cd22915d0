"""The worker processes of a round, as users start them: killed, stopped, put to sleep, started again.

What they say goes to a file each; the line ``worker_started`` holds the name of a life.
"""

import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final, Self

import orjson

import streams
from streams.broker.attached import die_with_parent
from streams.chaos.evidence import Life
from streams.settings import Settings

READY_S: Final = 60.0
"""Seconds that a worker may take from its start to its parts running, Kafka and endpoint being there."""
STOP_S: Final = 40.0
"""Seconds from SIGTERM to SIGKILL: more than a worker's way down may take without a broker."""
RESTART_S: Final = 1.0
"""Seconds after which a worker that ended by itself is started again, as any supervisor would."""

_LOOK_AGAIN_S: Final = 0.05
_TAIL_BYTES: Final = 2_000
_CODE: Final = str(Path(streams.__file__).parent.parent)
_PROGRAM: Final = f"import sys; sys.path.insert(0, {_CODE!r}); from streams.chaos.worker import main; main()"


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


@dataclass(slots=True, kw_only=True, eq=False)
class WorkerProcess:
    """One life of a worker.

    Attributes:
        log: What it says, as JSON lines.
        began, ended: Milliseconds since 1970.
        how, told: As of :class:`~streams.chaos.evidence.Life`; empty while nobody ended it.
        pauses: Spans in which it was stopped by a signal; the last may still be open.
        alone: It ended by itself: it crashed, or struck itself as it was told at its start.
        taken: A fault is at work on it, and no other is to be.
    """

    number: int
    process: asyncio.subprocess.Process
    log: Path
    began: int
    ended: int | None = None
    how: str = ""
    told: int | None = None
    pauses: list[tuple[int, int | None]] = field(default_factory=list)
    alone: bool = False
    taken: bool = False

    @property
    def lives(self) -> bool:
        """Its end is not known yet."""
        return self.ended is None

    def run(self) -> str:
        """The name it gave itself, empty where it never came so far."""
        return str(self._told().get("run", ""))

    def _told(self) -> dict[str, object]:
        with self.log.open("rb") as lines:
            for line in lines:
                if b'"worker_started"' in line:
                    with suppress(orjson.JSONDecodeError):  # half a line of one that was killed
                        told: dict[str, object] = orjson.loads(line)
                        return told
        return {}

    def last_word(self) -> str:
        """The last line it said."""
        with self.log.open("rb") as lines:
            lines.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
            said = lines.read().decode(errors="replace").strip().splitlines()
        return said[-1] if said else "nothing"

    async def ready(self) -> bool:
        """Wait until its parts run; False where it ended before.

        Raises:
            TimeoutError: they do not, in :data:`READY_S` seconds.
        """
        async with asyncio.timeout(READY_S):
            while self.lives:
                if self.run():
                    return True
                await asyncio.sleep(_LOOK_AGAIN_S)
        return False

    async def kill(self) -> None:
        """End it as a power cut would (SIGKILL)."""
        self._send(signal.SIGKILL, "killed")
        await self.end()

    async def stop(self) -> None:
        """Tell it to stop (SIGTERM) and wait for its end."""
        self.told = now_ms()
        self._send(signal.SIGTERM, "stopped")
        try:
            async with asyncio.timeout(STOP_S):
                await self.end()
        except TimeoutError:
            await self.kill()

    async def end(self) -> None:
        """Wait until it has ended."""
        while self.lives:
            await asyncio.sleep(_LOOK_AGAIN_S)

    def pause(self) -> None:
        """It takes no step from now on (SIGSTOP)."""
        if self.lives:
            with suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGSTOP)
            self.pauses.append((now_ms(), None))

    def resume(self) -> None:
        """It goes on (SIGCONT)."""
        if self.pauses and self.pauses[-1][1] is None:
            self.pauses[-1] = (self.pauses[-1][0], now_ms())
            with suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGCONT)

    def _send(self, number: signal.Signals, how: str) -> None:
        if self.lives:
            self.how = how
            with suppress(ProcessLookupError):
                self.process.send_signal(number)

    async def watch(self) -> None:
        """Until it has ended; notes when and how."""
        code = await self.process.wait()
        self.ended = now_ms()
        if not self.how or (self.how == "stopped" and code):
            self.alone = True
            self.how = "killed" if code == -signal.SIGKILL else "crashed"
        self.resume()

    def life(self) -> Life:
        """What the verifier is told."""
        end = self.ended or now_ms()
        pauses = tuple((began, ended or end) for began, ended in self.pauses)
        return Life(
            run=self.run(), began=self.began, ended=self.ended, how=self.how, told=self.told, pauses=pauses
        )


class Workers:
    """All worker processes of a round. Ended with the block, whatever happens.

    Args:
        settings: Theirs.
        place: Where their logs go.
    """

    def __init__(self, settings: Settings, place: Path) -> None:
        self._settings, self._place = settings, place
        self.all: list[WorkerProcess] = []
        self._watches: set[asyncio.Task[None]] = set()
        self._supervised = True

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._place.mkdir, parents=True, exist_ok=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._supervised = False
        for worker in self.living:
            await worker.kill()
        for watch in self._watches:
            watch.cancel()

    @property
    def living(self) -> list[WorkerProcess]:
        """Those that have not ended."""
        return [worker for worker in self.all if worker.lives]

    def crashes(self) -> tuple[str, ...]:
        """Of those that ended by themselves the last word, for a person."""
        return tuple(
            f"worker {worker.number} ended by itself: {worker.last_word()}"
            for worker in self.all
            if worker.how == "crashed"
        )

    async def start(self, *faults: str) -> WorkerProcess:
        """Start one more.

        Args:
            faults: Options of :mod:`streams.chaos.worker`.
        """
        number = len(self.all) + 1
        log = self._place / f"worker-{number}.log"
        with log.open("wb") as output:
            began = now_ms()
            process = await asyncio.create_subprocess_exec(
                *(
                    sys.executable,
                    "-P",
                    "-c",
                    _PROGRAM,
                    *faults,
                    "--tools",
                    str(self._place),
                    "--",
                    "worker",
                    "--json",
                ),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=_environment(self._settings),
                start_new_session=True,
                preexec_fn=die_with_parent(),
            )
        worker = WorkerProcess(number=number, process=process, log=log, began=began)
        self.all.append(worker)
        watch = asyncio.create_task(self._watch(worker))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)
        return worker

    async def _watch(self, worker: WorkerProcess) -> None:
        await worker.watch()
        if worker.alone and self._supervised:
            await asyncio.sleep(RESTART_S)
            await self.start()

    def pick(self, chance: Random) -> WorkerProcess | None:
        """One that runs and that no fault is at work on; None where there is none."""
        free = [worker for worker in self.living if not worker.taken and not worker.how]
        return chance.choice(free) if free else None

    async def heal(self, count: int) -> None:
        """All go on, and at least *count* of them run.

        Raises:
            TimeoutError: they do not come up.
        """
        async with asyncio.timeout(READY_S):
            while True:
                for worker in self.living:
                    worker.resume()
                while sum(not worker.how for worker in self.living) < count:
                    await self.start()
                up = [await worker.ready() for worker in self.living if not worker.how]
                if sum(up) >= count:
                    return

    def lives(self) -> tuple[Life, ...]:
        """Of all that came so far as to have a name."""
        return tuple(life for life in (worker.life() for worker in self.all) if life.run)


def _environment(settings: Settings) -> dict[str, str]:
    """The environment of a worker: ours, without what would set it up otherwise."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("ANABRANCH_", "OPENAI_"))
    }
    return inherited | {
        "PYTHONUNBUFFERED": "1",
        "ANABRANCH_BROKERS": settings.brokers,
        "ANABRANCH_PREFIX": settings.prefix,
        "ANABRANCH_LANES": str(settings.lanes),
        "ANABRANCH_CONCURRENCY": str(settings.concurrency),
        "ANABRANCH_WINDOW": str(settings.window),
        "ANABRANCH_WORKER_NAME": settings.worker_name,
        "ANABRANCH_SESSION_TIMEOUT_S": str(settings.session_timeout_s),
        "ANABRANCH_HEARTBEAT_S": str(settings.heartbeat_s),
        "ANABRANCH_DRAIN_S": str(settings.drain_s),
        "ANABRANCH_STALL_S": str(settings.stall_s),
        "ANABRANCH_CONFIG": os.devnull,  # whatever stands where the rounds are run
        "ANABRANCH_MODEL": settings.model,
        "OPENAI_BASE_URL": settings.base_url,
        "OPENAI_API_KEY": "no-key-is-needed",
    }
