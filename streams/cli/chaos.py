"""``anabranch chaos``: break everything around the parts, and verify that the promise held."""

from pathlib import Path
from typing import Annotated

import typer

from streams.cli.options import AsJson

app = typer.Typer(
    no_args_is_help=True,
    help="Break everything around the parts, and verify that every goal got its one answer.",
)


@app.callback()
def chaos() -> None:
    """A group, also while it has a single command."""


@app.command()
def simulate(
    lives: Annotated[int, typer.Option(min=1, help="How many lives.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="The first life's; each further one has the next.")] = 0,
    minutes: Annotated[float | None, typer.Option(min=0, help="End after so long, however few.")] = None,
    processes: Annotated[int, typer.Option(min=1, help="Lives lived at once.")] = 1,
    life: Annotated[
        int | None, typer.Option(min=0, help="Live this one alone, and tell all of it.", show_default=False)
    ] = None,
    scenario: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="Live the scenario in this file alone.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            file_okay=False, help="Where to put scenarios that broke the promise.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Live many lives on the log in memory, on virtual time, each from a seed.

    Orchestrator, intake, lanes, journal and agents are the real ones. Workers are killed between any
    two awaits, put to sleep, stopped and fenced; the log is late, loses replies, goes away. What
    breaks the promise is made as small as can be, and printed as a scenario to live again.

    [dim]anabranch chaos simulate --lives 10000 --processes 2[/dim]
    """
    from streams.cli.chaos_view import one, series

    if scenario is not None or life is not None:
        one(scenario, life, as_json=as_json)
    else:
        series(lives, seed, minutes=minutes, processes=processes, out=out, as_json=as_json)
