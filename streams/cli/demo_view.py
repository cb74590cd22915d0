"""What the demo shows: its jobs at work, their answers, and what it took."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import orjson
from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.text import Text

from streams.cli.live import LiveJobs, picture
from streams.cli.report_view import report_table
from streams.core.commands import Answer
from streams.core.events import Event
from streams.core.values import JobId
from streams.progress import JobProgress, Progress
from streams.report import Report

LINE_S: Final = 2.0
"""Seconds between two lines of a job, where there is no terminal for a picture."""

_COLOURS: Final = {"succeeded": "green", "partial": "yellow"}


class DemoJobs(LiveJobs):
    """The jobs live on a terminal, else in lines now and then.

    Attributes:
        midway: The jobs as they were when half of all sub-tasks were finished.
    """

    def __init__(self, jobs: Iterable[JobId], console: Console, *, simulated: bool) -> None:
        super().__init__(jobs, console, simulated=simulated)
        self.simulated = simulated
        self.midway: tuple[JobProgress, ...] = ()
        self._seen = Progress()
        self._console = console
        self._told: dict[JobId, tuple[float, str]] = {}

    @property
    def jobs(self) -> tuple[JobProgress, ...]:
        """The jobs as they stand."""
        return self._seen.jobs()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self._console.is_terminal:
            self._console.print(picture(self.jobs, width=self._console.width, simulated=self.simulated))

    def feed(self, event: Event) -> None:
        """Take the next event."""
        super().feed(event)
        if event.job not in self.events:
            return
        self._seen.feed(event)
        jobs = self.jobs
        if 2 * sum(job.finished for job in jobs) <= sum(job.total for job in jobs):
            self.midway = jobs
        if not self._console.is_terminal:
            for job in jobs:
                if job.job == event.job:
                    self._tell(job)

    def _tell(self, job: JobProgress) -> None:
        now = self._loop.time()
        at, phase = self._told.get(job.job, (0.0, ""))
        if phase != job.phase or now - at >= LINE_S:
            self._told[job.job] = now, job.phase
            self._console.print(line(job, simulated=self.simulated), markup=False, soft_wrap=True)


def line(job: JobProgress, *, simulated: bool) -> str:
    """A job as it stands, on one line."""
    if job.phase == "planning":
        return f"{job.job}: planning"
    money = "simulated" if simulated else f"${job.usage.usd:.4f}"
    return (
        f"{job.job}: {job.outcome or job.phase}, {job.finished} of {job.total} sub-tasks finished, "
        f"{job.running} running, {job.failed} failed, {job.usage.tokens:,} tokens, {money}"
    )


def show(console: Console, answers: Sequence[Answer], report: Report) -> None:
    """The answers, then the run report; Markdown as it is where it is not for a terminal."""
    for answer in answers:
        for part in answered(answer, rendered=console.is_terminal):
            console.print(part)
    console.print(report_table(report))


def answered(answer: Answer, *, rendered: bool) -> Iterator[RenderableType]:
    """An answer under its heading."""
    colour = _COLOURS.get(answer.outcome, "red")
    yield Text.assemble((answer.job, "bold"), " ", (answer.outcome, colour))
    if answer.reason:
        yield Text(answer.reason)
    yield ""
    match answer.value:
        case None:
            pass
        case str(text) if rendered:
            yield Markdown(text)
        case str(text):
            yield Text(text)
        case value:
            yield Text(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
    yield ""
