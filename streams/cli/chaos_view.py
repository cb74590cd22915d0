"""Simulated lives on the command line: progress while they are lived, a table when they are over."""

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Final

import typer
from rich.table import Table

from streams.chaos.simulation.deriving import derive
from streams.chaos.simulation.series import Judged, Tally, judged, smallest
from streams.chaos.simulation.writing import read_scenario, write_scenario
from streams.cli.exits import Exit, fail
from streams.cli.output import console, print_json, say

PROGRESS_S: Final = 10.0
SHRUNK: Final = 3
"""Lives that are made smaller, at most; others that broke the promise are told by their seeds."""

BATCH: Final = 16


def one(path: Path | None, life: int | None, *, as_json: bool) -> None:
    """Live one scenario, and tell what was found."""
    try:
        scenario = read_scenario(path.read_bytes()) if path is not None else derive(life or 0)
    except ValueError as error:
        fail(f"{path}: no scenario: {error}", Exit.USAGE)
    lived = judged(scenario)
    if as_json:
        print_json({"digest": lived.digest, "findings": lived.findings, "figures": asdict(lived.figures)})
    else:
        out = console()
        say(out, write_scenario(scenario).decode())
        tell(lived)
        say(out, f"digest of all records: {lived.digest}")
    raise typer.Exit(Exit.POOR if lived.findings else Exit.FINE)


def series(
    lives: int, seed: int, *, minutes: float | None, processes: int, out: Path | None, as_json: bool
) -> None:
    """Live many lives; those that break the promise are made smaller at the end."""
    tally, broken = Tally(), list[Judged]()
    ends = None if minutes is None else tally.began + 60 * minutes
    told = tally.began
    try:
        for life in _lived(seed, lives, processes, ends):
            tally.add(life)
            if life.findings:
                broken.append(life)
                typer.echo(f"life {life.scenario.seed}: {', '.join(sorted(life.kinds))}", err=True)
            if time.monotonic() >= told + PROGRESS_S:
                told = time.monotonic()
                progress = f"{tally.lives} lives, {tally.broken} broken, {tally.a_minute:.0f} a minute"
                typer.echo(progress, err=True)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
    if as_json:
        print_json(report(tally))
    else:
        console().print(table(tally))
    kinds = set[frozenset[str]]()
    for life in broken:
        if life.kinds not in kinds and len(kinds) < SHRUNK:
            kinds.add(life.kinds)
            _shrink(life, out)
    raise typer.Exit(Exit.POOR if broken else Exit.FINE)


def _lived(seed: int, lives: int, processes: int, ends: float | None) -> Iterator[Judged]:
    if processes == 1:
        for each in range(seed, seed + lives):
            if ends is not None and time.monotonic() >= ends:
                return
            yield _life(each)
        return
    with ProcessPoolExecutor(processes) as pool:
        for first in range(seed, seed + lives, BATCH * processes):
            if ends is not None and time.monotonic() >= ends:
                return
            batch = range(first, min(seed + lives, first + BATCH * processes))
            yield from pool.map(_life, batch)


def _life(seed: int) -> Judged:
    return judged(derive(seed))


def _shrink(life: Judged, out: Path | None) -> None:
    typer.echo(f"making life {life.scenario.seed} smaller ...", err=True)
    small = smallest(life)
    written = write_scenario(small.scenario)
    say(console(), written.decode())
    tell(small)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{life.scenario.seed}.json").write_bytes(written)


def tell(life: Judged) -> None:
    """What was found in a life."""
    out = console()
    for finding in life.findings:
        say(out, f"{finding.kind}: {finding.where}: {finding.what}", style="red")
    if not life.findings:
        say(out, f"kept the promise: {life.figures.jobs} jobs, {life.figures.calls} calls", style="green")


def report(tally: Tally) -> dict[str, object]:
    """The figures of many lives, for programs."""
    figures = tally.figures
    return {
        "lives": tally.lives,
        "calm": tally.calm,
        "broken": tally.broken,
        "faults": dict(sorted(tally.faults.items())),
        "jobs": figures.jobs,
        "lost": figures.lost,
        "duplicated": figures.duplicated,
        "wrong": figures.wrong,
        "others": figures.others,
        "kinds": dict(figures.kinds),
        "calls": figures.calls,
        "repeated": figures.repeated,
        "steps": tally.steps,
        "virtual_s": round(tally.virtual_s),
        "a_minute": round(tally.a_minute),
    }


def table(tally: Tally) -> Table:
    """The figures of many lives, for people."""
    figures = tally.figures
    made = Table("what", "how many", title="Simulated lives")
    made.columns[1].justify = "right"
    rows: list[tuple[str, int]] = [
        ("lives", tally.lives),
        ("of them without faults", tally.calm),
        *(sorted(tally.faults.items())),
        ("jobs", figures.jobs),
        ("answers lost", figures.lost),
        ("answers duplicated", figures.duplicated),
        ("answers wrong", figures.wrong),
        ("other findings", figures.others),
        ("model calls", figures.calls),
        ("repeated, their reply lost with a worker", figures.repeated),
        ("steps of workers", tally.steps),
        ("virtual hours", round(tally.virtual_s / 3600)),
        ("lives a minute", round(tally.a_minute)),
    ]
    for what, count in rows:
        made.add_row(what, f"{count:,}")
    return made
