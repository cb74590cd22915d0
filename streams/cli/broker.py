"""``anabranch broker``: a real Kafka on this machine, in the background."""

from pathlib import Path
from typing import Annotated

import typer

from streams.cli.exits import Exit, run
from streams.cli.options import AsJson, Home
from streams.cli.output import print_json

app = typer.Typer(
    no_args_is_help=True,
    help="A real Apache Kafka on this machine, for development: no Docker, no Java needed.",
)

_HOME = Path(".anabranch")


@app.command()
def start(
    home: Home = _HOME,
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Where it listens, on 127.0.0.1 only.")] = 9092,
    as_json: AsJson = False,
) -> None:
    """Start it; it runs on when this command ends, and its data stay when it is stopped.

    The first start downloads Kafka and a Java runtime (about a minute) into --home.

    [dim]anabranch broker start --port 9192 && export ANABRANCH_BROKERS=127.0.0.1:9192[/dim]
    """
    from streams.broker import start_in_background

    running = run(start_in_background(home, port=port))
    if as_json:
        print_json({"running": True, "servers": running.servers, "pid": running.pid, "data": running.data})
        return
    typer.echo(f"Kafka listens on {running.servers} (process {running.pid}, data in {running.data}).")
    typer.echo("Next: anabranch topics create. To stop it: anabranch broker stop.")


@app.command()
def stop(home: Home = _HOME, as_json: AsJson = False) -> None:
    """Stop it, in order. That none runs is fine, too."""
    from streams.broker import stop_in_background

    stopped = run(stop_in_background(home))
    if as_json:
        print_json({"running": False, "stopped": stopped})
    else:
        typer.echo("Kafka is stopped; its data stay." if stopped else "No Kafka of ours runs here.")


@app.command()
def status(home: Home = _HOME, as_json: AsJson = False) -> None:
    """Say whether one runs here, and where. Exit code 1 where none does."""
    from streams.broker import status as look
    from streams.broker.failures import BrokerFailed
    from streams.cli.exits import fail

    try:
        running = look(home)
    except BrokerFailed as error:
        fail(str(error), Exit.FAILED)
    if as_json:
        found = (
            {} if running is None else {"servers": running.servers, "pid": running.pid, "data": running.data}
        )
        print_json({"running": running is not None, **found})
    elif running is None:
        typer.echo("No Kafka of ours runs here. `anabranch broker start` starts one.")
    else:
        typer.echo(f"Kafka listens on {running.servers} (process {running.pid}, data in {running.data}).")
    raise typer.Exit(Exit.POOR if running is None else Exit.FINE)
