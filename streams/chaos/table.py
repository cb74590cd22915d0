"""What a run of rounds came to, as a table: a line a fault, and one for all together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median_low

from rich.table import Table

from streams.chaos.verifier import Figures

CALM = "(none)"
COLUMNS = (
    "fault",
    "rounds",
    "goals",
    "answers",
    "lost",
    "duplicated",
    "wrong",
    "other findings",
    "calls",
    "calls repeated",
    "recovery p50",
    "recovery max",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A round that was verified.

    Attributes:
        faults: What was broken in it; nothing in a calm round.
        recovery_s: Seconds from the end of the last fault until a fresh goal was answered; None in a
            calm round, and where it never was.
    """

    faults: Sequence[str]
    figures: Figures
    recovery_s: float | None = None


def table(rounds: Sequence[Round]) -> Table:
    """For a terminal."""
    made = Table(*COLUMNS, title=f"{len(rounds)} rounds")
    for column in made.columns[1:]:
        column.justify = "right"
    lines = _lines(rounds)
    for place, line in enumerate(lines):
        made.add_row(*line, end_section=place == len(lines) - 2)
    return made


def markdown(rounds: Sequence[Round]) -> str:
    """For a page."""
    lines = [COLUMNS, ("---", *["---:"] * (len(COLUMNS) - 1)), *_lines(rounds)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _lines(rounds: Sequence[Round]) -> list[tuple[str, ...]]:
    """A round with several faults counts in the line of each, and once in the last."""
    by_fault: dict[str, list[Round]] = {}
    for one in rounds:
        for fault in dict.fromkeys(one.faults or (CALM,)):
            by_fault.setdefault(fault, []).append(one)
    return [*(_line(fault, by_fault[fault]) for fault in sorted(by_fault)), _line("all", rounds)]


def _line(name: str, rounds: Sequence[Round]) -> tuple[str, ...]:
    figures = sum_of(one.figures for one in rounds)
    recoveries = [one.recovery_s for one in rounds if one.recovery_s is not None]
    counts = (
        *(len(rounds), figures.goals, figures.answers),
        *(figures.lost, figures.duplicated, figures.wrong, figures.others),
        *(figures.calls, figures.repeated),
    )
    times = (f"{median_low(recoveries):.1f} s", f"{max(recoveries):.1f} s") if recoveries else ("", "")
    return (name, *(f"{count:,}" for count in counts), *times)


def sum_of(figures: Iterable[Figures]) -> Figures:
    """The figures of many rounds together."""
    return sum(figures, Figures())
