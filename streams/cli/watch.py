"""``anabranch watch``: what happens to a job, as it happens."""

from typing import Annotated

import typer

from streams.cli.exits import Exit, run
from streams.cli.options import AsJson, Brokers, Prefix, Since, moment
from streams.cli.output import console, print_answer, print_json, say, typed


def watch(
    job: Annotated[
        str, typer.Argument(help="The job, tenant/id; of the tenant `default` the id alone will do.")
    ],
    brokers: Brokers = None,
    prefix: Prefix = None,
    since: Since = "",
    within: Annotated[float, typer.Option(min=0, help="Seconds to watch; then exit code 4.")] = 86_400.0,
    as_json: AsJson = False,
) -> None:
    """Show every event of a job from its goal on, until it is answered; then the answer.

    The answer alone goes to stdout, the events to stderr; with --json all go to stdout. Exit code
    1 where the answer is not `succeeded`.

    [bold]Examples[/bold]

    anabranch watch acme/order-17

    anabranch watch order-17 --since 1h --json | jq -c 'select(.type == "SubTaskFailed")'
    """
    run(_watch(named(job), brokers, prefix, since, within, as_json=as_json))


def named(job: str) -> str:
    """The job's whole name."""
    return job if "/" in job else f"default/{job}"


async def _watch(
    job: str, brokers: str | None, prefix: str | None, since: str, within: float, *, as_json: bool
) -> None:
    import asyncio

    from streams.cli.environment import settings
    from streams.cli.quiet import quiet
    from streams.cli.words import clock, said
    from streams.client import NotAnswered, Swarm

    quiet()
    ours = settings(brokers=brokers, prefix=prefix)
    start = moment(since)
    began = asyncio.get_running_loop().time()
    notes = console(stderr=True)
    async with Swarm(ours.brokers, prefix=ours.prefix, access=ours.access) as swarm:
        async for event in swarm.events(job, since=start, within_s=within, values=False):
            if as_json:
                print_json(typed(event))
            else:
                notes.print(
                    f"[dim]{clock(event.at)[11:]}[/dim] [bold]{type(event).__name__:<16}[/bold]", end=" "
                )
                say(notes, said(event))
        left = within - (asyncio.get_running_loop().time() - began)
        if left <= 0:
            raise NotAnswered(job, within)
        answer = await swarm.wait(job, within_s=left)
    print_answer(answer, as_json=as_json)
    if answer.outcome != "succeeded":
        raise typer.Exit(Exit.POOR)
