"""``anabranch answers``: what was answered."""

from contextlib import aclosing
from typing import Annotated

import typer

from streams.cli.exits import Exit, fail, run
from streams.cli.options import AsJson, Brokers, Prefix, Since, moment
from streams.cli.output import print_answer


def answers(
    brokers: Brokers = None,
    prefix: Prefix = None,
    job: Annotated[str, typer.Option(help="Of this job alone, tenant/id.", show_default=False)] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with those that come.")] = False,
    since: Since = "",
    as_json: AsJson = False,
) -> None:
    """Print the answers that are there, the newest revision of each job, oldest first.

    With --job the exit code says how it was answered: 0 succeeded, 1 otherwise or not at all.

    [bold]Examples[/bold]

    anabranch answers --since 1h

    anabranch answers --job order-17

    anabranch answers --follow --json | jq -r '[.job, .outcome] | @tsv'
    """
    run(_answers(brokers, prefix, job, since, follow=follow, as_json=as_json))


async def _answers(
    brokers: str | None, prefix: str | None, job: str, since: str, *, follow: bool, as_json: bool
) -> None:
    from streams.cli.environment import settings
    from streams.cli.quiet import quiet
    from streams.cli.watch import named
    from streams.client import Swarm

    quiet()
    ours, job, start = settings(brokers=brokers, prefix=prefix), named(job) if job else "", moment(since)
    async with Swarm(ours.brokers, prefix=ours.prefix, access=ours.access) as swarm:
        if follow:
            async with aclosing(swarm.answers(since=start)) as coming:
                async for answer in coming:
                    if job in {"", answer.job}:
                        print_answer(answer, as_json=as_json)
            return
        found = [answer for answer in await swarm.published(since=start) if job in {"", answer.job}]
    for answer in found:
        print_answer(answer, as_json=as_json)
    if job and not found:
        fail(f"{job} has no answer yet; `anabranch watch {job}` shows how far it is", Exit.POOR)
    if job and found[-1].outcome != "succeeded":
        raise typer.Exit(Exit.POOR)
