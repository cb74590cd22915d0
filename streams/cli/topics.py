"""``anabranch topics``: makes a system's topics, and checks them."""

from typing import Annotated

import typer

from streams.cli.exits import Exit, run
from streams.cli.options import AsJson, Brokers, Lanes, Prefix
from streams.cli.output import print_json, typed

app = typer.Typer(
    no_args_is_help=True, help="The topics of a system: they are made by command, never by accident."
)


@app.command()
def create(
    brokers: Brokers = None,
    prefix: Prefix = None,
    lanes: Lanes = None,
    replication: Annotated[
        int, typer.Option(min=1, help="Copies of each partition: 3 in production, 1 on a single broker.")
    ] = 1,
    as_json: AsJson = False,
) -> None:
    """Make the topics that are missing; those that are there stay as they are.

    [dim]anabranch topics create --brokers kafka-1:9092 --lanes 24 --replication 3[/dim]
    """
    run(_create(brokers, prefix, lanes, replication, as_json=as_json))


async def _create(
    brokers: str | None, prefix: str | None, lanes: int | None, replication: int, *, as_json: bool
) -> None:
    from streams.cli.environment import settings
    from streams.cli.quiet import quiet
    from streams.kafka import admin

    quiet()
    ours = settings(brokers=brokers, prefix=prefix, lanes=lanes)
    made = await admin.create(ours, replication=replication)
    if as_json:
        print_json({"made": made})
    elif made:
        typer.echo(f"Made {len(made)} topics with {ours.lanes} partitions each: {', '.join(made)}.")
    else:
        typer.echo("All topics were there already. `anabranch topics check` says whether they are right.")


@app.command()
def check(
    brokers: Brokers = None, prefix: Prefix = None, lanes: Lanes = None, as_json: AsJson = False
) -> None:
    """Say what is wrong with them, each with what to do. Exit code 1 where something is."""
    run(_check(brokers, prefix, lanes, as_json=as_json))


async def _check(brokers: str | None, prefix: str | None, lanes: int | None, *, as_json: bool) -> None:
    from streams.cli.environment import settings
    from streams.cli.quiet import quiet
    from streams.kafka import admin

    quiet()
    problems = await admin.check(settings(brokers=brokers, prefix=prefix, lanes=lanes))
    for problem in problems:
        if as_json:
            print_json(typed(problem))
        else:
            typer.echo(f"{problem.topic} {problem.what}\n  to do: {problem.remedy}")
    if problems:
        raise typer.Exit(Exit.POOR)
    if not as_json:
        typer.echo("All topics are as they should be.")
