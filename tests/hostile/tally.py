"""What became of inputs, counted; and a watch over whoever works at one."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType


class Hung(BaseException):
    """An input took longer than it may. No program catches it by accident."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """Of one kind of input.

    Attributes:
        kind: What was put in.
        inputs: How many.
        accepted: Taken for what they are: a job, a fold, a reply.
        refused: Said to be none, with a reason: dead letters, refusals, errors of a kind.
        rejected: Answers that say so to whoever waits.
        crashes: What broke, or was not accounted for, each with what repeats it.
        hangs: Inputs that took too long.
    """

    kind: str
    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    rejected: int = 0
    crashes: list[str] = field(default_factory=list)
    hangs: int = 0

    def took(self, *, accepted: bool) -> None:
        """An input ended one way or the other."""
        self.inputs += 1
        self.accepted += accepted
        self.refused += not accepted

    def add(self, other: "Tally") -> None:
        """Count another's as well."""
        self.inputs += other.inputs
        self.accepted += other.accepted
        self.refused += other.refused
        self.rejected += other.rejected
        self.crashes += other.crashes
        self.hangs += other.hangs

    @contextmanager
    def watching(self, what: str, within_s: int) -> Iterator[None]:
        """Count what goes wrong inside as a crash or a hang, and go on.

        Args:
            what: What repeats it.
            within_s: Seconds of this machine's clock.
        """

        def late(_: int, __: FrameType | None) -> None:
            raise Hung(what)

        before = signal.signal(signal.SIGALRM, late)
        others_s, _ = signal.setitimer(signal.ITIMER_REAL, within_s)
        began = time.monotonic()
        try:
            yield
        except Hung:
            self.hangs += 1
            self.crashes.append(f"{what}: no end within {within_s} s")
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            self.hangs += isinstance(error, TimeoutError)
            self.crashes.append(f"{what}: {type(error).__name__}: {str(error)[:300]}")
        finally:
            # Whoever runs us may watch as well, by the one timer that there is.
            left_s = max(0.01, others_s - (time.monotonic() - began)) if others_s else 0
            signal.signal(signal.SIGALRM, before)
            signal.setitimer(signal.ITIMER_REAL, left_s)

    async def awaiting(self, what: str, within_s: int, done: Awaitable[None]) -> None:
        """As :meth:`watching`, also where it waits for what never comes."""
        with self.watching(what, 2 * within_s):
            async with asyncio.timeout(within_s):
                await done


def table(tallies: Sequence[Tally]) -> str:
    """A table for docs/reliability.md, with a line of sums."""
    sums = Tally(kind="**all**")
    for tally in tallies:
        sums.add(tally)
    lines = [
        "| input | inputs | accepted | refused, dead letters | rejected answers | crashes | hangs |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for one in (*tallies, sums):
        counts = (one.inputs, one.accepted, one.refused, one.rejected, len(one.crashes), one.hangs)
        lines.append(f"| {one.kind} | {' | '.join(f'{count:,}' for count in counts)} |")
    return "\n".join(lines)
