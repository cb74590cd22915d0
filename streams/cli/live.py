"""How far jobs are, live: a bar a job, its sub-agents, what it has spent."""

import asyncio
from collections.abc import Iterable
from typing import Final, Literal, Self

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from streams.cli.words import cut
from streams.core.events import Event
from streams.core.values import JobId
from streams.progress import JobProgress, Progress

REFRESH_S: Final = 0.1
"""Seconds between two pictures at least."""

ROWS: Final = 20
"""Jobs shown at once; those under way go before the finished ones."""

WIDE: Final = 110
"""Characters of a line that has room for the goals, too."""

_COLOURS: Final = {
    "succeeded": "green",
    "partial": "yellow",
    "failed": "red",
    "rejected": "red",
    "cancelled": "yellow",
}


class LiveJobs:
    """A picture of some jobs while it is entered; on no terminal nothing shows.

    To be made inside the running loop.

    Args:
        simulated: The money is not spent, and is shown so.

    Attributes:
        events: Every event of these jobs so far, for the report.
        finished: Set once all of them are.
    """

    def __init__(self, jobs: Iterable[JobId], console: Console, *, simulated: bool = False) -> None:
        self.events: dict[JobId, list[Event]] = {job: [] for job in jobs}
        self.finished = asyncio.Event()
        self._simulated = simulated
        self._open = set(self.events)
        self._progress = Progress()
        self._live = (
            Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        )
        self._next: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._next is not None:
            self._next.cancel()
        if self._live is not None:
            self._live.stop()

    def feed(self, event: Event) -> None:
        """Take the next event; those of other jobs are passed over."""
        if event.job not in self.events:
            return
        self.events[event.job].append(event)
        self._progress.feed(event)
        if event.job in self._open and self._ended(event.job):
            self._open.discard(event.job)
            if not self._open:
                self.finished.set()
        if self._live is not None and self._next is None:
            self._next = self._loop.call_later(REFRESH_S, self._draw)

    def _ended(self, job: JobId) -> bool:
        try:
            return self._progress.of(job).phase == "finished"
        except KeyError:  # its goal is still to come: a record that somebody else wrote
            return False

    def _draw(self) -> None:
        self._next = None
        if self._live is not None:
            self._live.update(
                picture(self._progress.jobs(), width=self._live.console.width, simulated=self._simulated),
                refresh=True,
            )


def picture(jobs: Iterable[JobProgress], *, width: int = WIDE, simulated: bool = False) -> Table:
    """The jobs as a table, a line each, of *width* characters."""
    table = Table(box=None, pad_edge=False, expand=True)
    wide = width >= WIDE
    flexible = "goal" if wide else "job"  # has what the others leave
    for name in ("job", "goal", "", "done", "running", "failed", "tokens", "US$", ""):
        if name != "goal" or wide:
            numbers = name in {"done", "running", "failed", "tokens", "US$"}
            justify: Literal["left", "right"] = "right" if numbers else "left"
            table.add_column(name, justify=justify, no_wrap=True, ratio=1 if name == flexible else None)
    ordered = sorted(jobs, key=lambda job: job.phase == "finished")
    for job in ordered[:ROWS]:
        colour = _COLOURS.get(job.outcome or "", "cyan")
        table.add_row(
            cut(job.job, 32),
            *([cut(job.text)] if wide else []),
            ProgressBar(total=max(1, job.total), completed=job.finished, width=20 if wide else 8),
            f"{job.finished}/{job.total}",
            str(job.running),
            str(job.failed),
            f"{job.usage.tokens:,}",
            "simulated" if simulated else f"{job.usage.usd:.4f}",
            f"[{colour}]{job.outcome or job.phase}[/{colour}]",
        )
    if len(ordered) > ROWS:
        table.add_row(f"and {len(ordered) - ROWS} more")
    return table
