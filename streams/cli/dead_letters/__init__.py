"""``anabranch dead-letters``: what could not be read or handled, and its way back."""

from functools import partial
from typing import Annotated

import typer

from streams.cli.dead_letters.choosing import (
    All,
    By,
    Filters,
    Job,
    Key,
    Lots,
    Partition,
    Places,
    Reason,
    Topic,
    Until,
    Yes,
)
from streams.cli.exits import run
from streams.cli.options import AsJson, Brokers, Prefix, Since

app = typer.Typer(
    no_args_is_help=True,
    help="Records that could not be read or handled, whole, each with the reason; and their way back.",
)


@app.command("list")
def list_(
    topic: Topic = "",
    partition: Partition = None,
    job: Job = "",
    key: Key = "",
    reason: Reason = "",
    since: Since = "",
    until: Until = "",
    lot: Annotated[Lots, typer.Option("--state", help="What became of them.")] = Lots.WAITING,
    every: Annotated[bool, typer.Option("--all", help="Also those that are redriven or dropped.")] = False,
    brokers: Brokers = None,
    prefix: Prefix = None,
    as_json: AsJson = False,
) -> None:
    """List those that wait, oldest first: their place, where the original stands, and why.

    [bold]Examples[/bold]

    anabranch dead-letters list --since 1d

    anabranch dead-letters list --topic subtasks --reason "newer than" --json | jq -r .job
    """
    from streams.cli.dead_letters.acting import list_letters

    filters = Filters(
        topic=topic, partition=partition, job=job, key=key, reason=reason, since=since, until=until
    )
    wanted = partial(filters.wanted, None if every else lot)
    run(list_letters(wanted, brokers, prefix, as_json=as_json))


@app.command()
def show(
    place: Annotated[str, typer.Argument(metavar="PARTITION:OFFSET", help="Its place, as `list` shows it.")],
    brokers: Brokers = None,
    prefix: Prefix = None,
    as_json: AsJson = False,
) -> None:
    """Show one whole: key, headers and value of the original, byte for byte, and what became of it.

    [dim]anabranch dead-letters show 3:17[/dim]
    """
    from streams.cli.dead_letters.acting import show_letter

    run(show_letter(place, brokers, prefix, as_json=as_json))


@app.command()
def redrive(
    places: Places = None,
    topic: Topic = "",
    partition: Partition = None,
    job: Job = "",
    key: Key = "",
    reason: Reason = "",
    since: Since = "",
    until: Until = "",
    every: All = False,
    yes: Yes = False,
    by: By = "",
    brokers: Brokers = None,
    prefix: Prefix = None,
    as_json: AsJson = False,
) -> None:
    """Send them back to where they came from, whole, each once; these, or all that wait and match.

    A command opens its job again, where that was answered without success: it goes on from the results
    it has, and its next answer is a revision that replaces the one before. So does an event that
    brings a result. A command that a later attempt followed is not sent: its job gives a new one.

    Exit code 1 where one was redriven or dropped before, which it says, or is not redriven for another
    reason. To do it again is always safe, also after an error.

    [bold]Examples[/bold]

    anabranch dead-letters redrive 3:17 5:2

    anabranch dead-letters redrive --topic subtasks --reason "newer than" --since 1d
    """
    from streams.cli.dead_letters.acting import redrive_letters

    filters = Filters(
        topic=topic, partition=partition, job=job, key=key, reason=reason, since=since, until=until
    )
    choose = partial(filters.chosen, places, every=every)
    run(redrive_letters(choose, brokers, prefix, by, yes=yes, as_json=as_json))


@app.command()
def drop(
    why: Annotated[str, typer.Option(help="Why nothing is to be done with them, for whoever looks later.")],
    places: Places = None,
    topic: Topic = "",
    partition: Partition = None,
    job: Job = "",
    key: Key = "",
    reason: Reason = "",
    since: Since = "",
    until: Until = "",
    every: All = False,
    yes: Yes = False,
    by: By = "",
    brokers: Brokers = None,
    prefix: Prefix = None,
    as_json: AsJson = False,
) -> None:
    """Mark them as done with: `list` passes them over. Nothing is deleted.

    Exit code 1 where one was redriven or dropped before, which it says.

    [dim]anabranch dead-letters drop --topic goals --until 7d --why "a load test of ours"[/dim]
    """
    from streams.cli.dead_letters.acting import drop_letters

    filters = Filters(
        topic=topic, partition=partition, job=job, key=key, reason=reason, since=since, until=until
    )
    choose = partial(filters.chosen, places, every=every)
    run(drop_letters(choose, brokers, prefix, by, why=why, yes=yes, as_json=as_json))
