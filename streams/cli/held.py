"""``anabranch waiting``: the jobs that wait, and for whom."""

from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.exits import run
from streams.cli.options import AsJson, Brokers, Prefix

if TYPE_CHECKING:
    from streams.held import Waits


def waiting(
    tenant: Annotated[str | None, typer.Option(help="Only jobs of this one.", show_default=False)] = None,
    brokers: Brokers = None,
    prefix: Prefix = None,
    as_json: AsJson = False,
) -> None:
    """List what waits: for a person, for its tenant's turn or money, or for a child job.

    Of a call of a tool that a person is to approve it shows the tool and all arguments.

    [bold]Examples[/bold]

    anabranch waiting --tenant acme

    anabranch waiting --json | jq -r 'select(.on == "plan").job'
    """
    run(_waiting(tenant, brokers, prefix, as_json=as_json))


async def _waiting(tenant: str | None, brokers: str | None, prefix: str | None, *, as_json: bool) -> None:
    from dataclasses import asdict

    from streams.cli.environment import settings
    from streams.cli.output import console, print_json, say
    from streams.cli.quiet import quiet
    from streams.client import Swarm
    from streams.held import waiting as all_waiting

    quiet()
    ours = settings(brokers=brokers, prefix=prefix)
    out = console()
    async with Swarm(ours.brokers, prefix=ours.prefix, access=ours.access) as swarm:
        async for each in all_waiting(swarm.log, swarm.lanes, tenant):
            if as_json:
                print_json(asdict(each))
            else:
                say(out, line(each))


def line(each: "Waits") -> str:
    """What waits, in a line."""
    from streams.cli.words import clock, json_cut

    whole = each.job if each.task is None else f"{each.job}/{each.task}"
    what = {
        "place": "its tenant's turn",
        "money": "money of its tenant's day",
        "tools": f"approval of {each.tool} {json_cut(each.args)}",
        "child": f"the child job {each.child}",
    }.get(each.on, f"approval of its {each.on}")
    return f"{clock(each.since)} {whole} waits for {what}"
