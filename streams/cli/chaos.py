"""``anabranch chaos``: break everything around the parts, and verify that the promise held."""

from pathlib import Path
from typing import Annotated

import typer

from streams.cli.options import AsJson

app = typer.Typer(
    no_args_is_help=True,
    help="Break everything around the parts, and verify that every goal got its one answer.",
)


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


@app.command("run")
def run_(
    rounds: Annotated[int, typer.Option(min=1, help="How many rounds.")] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Goals, faults and their times follow from it.")] = 1,
    brokers: Annotated[int, typer.Option(min=1, max=3, help="1, or 3 of which one may be lost.")] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Workers where nothing is broken.")] = 2,
    faults: Annotated[
        str, typer.Option(metavar="NAME,NAME", help="Only these faults.", show_default=False)
    ] = "",
    only: Annotated[
        int | None,
        typer.Option("--round", min=0, help="Play the round of this seed alone.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            file_okay=False,
            help="Where evidence is kept of rounds that break the promise.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play rounds on a real Kafka: brokers, workers and endpoint are broken while goals are worked on.

    Each round is a system of its own with at least two workers. Once the faults are over, a fresh
    goal is sent, all must be answered and nothing may be left behind; then topics and the endpoint's
    log are verified. A quarter of the rounds goes without faults. Worker logs and records of a round
    that broke the promise stay on disk, for `anabranch chaos verify`.

    [dim]anabranch chaos run --rounds 100[/dim]

    [dim]anabranch chaos run --round 10003 --faults kill,brokers_killed[/dim]
    """
    from streams.chaos.plans import seeds
    from streams.cli.chaos_rounds import play_rounds
    from streams.cli.exits import run
    from streams.logging import configure

    configure(level="WARNING")
    run(
        play_rounds(
            [only] if only is not None else seeds(seed, rounds),
            brokers=brokers,
            workers=workers,
            faults=[name for name in faults.split(",") if name],
            place=out,
            as_json=as_json,
        ),
        uvloop=True,
    )


@app.command()
def faults() -> None:
    """List the faults of `anabranch chaos run`, and what each does."""
    from streams.cli.chaos_rounds import say_faults

    say_faults()


@app.command()
def verify(
    place: Annotated[Path, typer.Argument(metavar="DIR", help="A round's directory.")],
    as_json: AsJson = False,
) -> None:
    """Verify a round again whose evidence was kept, and say what was found.

    [dim]anabranch chaos verify .anabranch/chaos/5f0e7d31/round-10003[/dim]
    """
    from streams.cli.chaos_rounds import verify_kept
    from streams.cli.exits import Stop, fail

    try:
        verify_kept(place, as_json=as_json)
    except Stop as error:
        fail(str(error), error.code)
