"""``anabranch acls``: what each part of a system must be allowed on Kafka."""

from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.exits import Exit, Stop, run
from streams.cli.options import AsJson, Brokers, Prefix
from streams.cli.output import console, print_json

if TYPE_CHECKING:
    from streams.acls import Acl


def acls(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PART]...",
            help="worker, submitter, reader, watcher, operator, auditor; all if none is named.",
            show_default=False,
        ),
    ] = None,
    principal: Annotated[
        str | None,
        typer.Option(
            metavar="User:NAME",
            help="Who they are for. [dim]\\[User:anabranch-PART][/dim]",
            show_default=False,
        ),
    ] = None,
    commands: Annotated[
        bool, typer.Option("--commands", help="Print the lines of kafka-acls.sh that give them.")
    ] = False,
    brokers: Brokers = None,
    prefix: Prefix = None,
    as_json: AsJson = False,
) -> None:
    """Print the ACLs that each part of a system needs: with these it works, and may do nothing else.

    It asks no broker, and changes nothing.

    [bold]Examples[/bold]

    anabranch acls

    anabranch acls worker --principal User:anabranch --commands | sh

    anabranch acls submitter reader watcher --principal User:crm --json
    """
    if principal is not None and ":" not in principal:
        raise typer.BadParameter(f"--principal {principal}: write User:{principal}")
    if commands and as_json:
        raise typer.BadParameter("give either --commands or --json")

    async def show() -> None:
        _show(parts, principal, brokers, prefix, commands=commands, as_json=as_json)

    run(show())


def _show(
    parts: list[str] | None,
    principal: str | None,
    brokers: str | None,
    prefix: str | None,
    *,
    commands: bool,
    as_json: bool,
) -> None:
    from streams.acls import PARTS
    from streams.acls import acls as needed
    from streams.acls import commands as lines
    from streams.cli.environment import settings

    ours = settings(brokers=brokers, prefix=prefix)
    wanted = list(dict.fromkeys(parts or PARTS))
    if unknown := [part for part in wanted if part not in PARTS]:
        raise Stop(f"{unknown[0]!r} is none of {', '.join(PARTS)}", Exit.USAGE)
    for part in wanted:
        who, granted = principal or f"User:anabranch-{part}", needed(ours, [part])
        if as_json:
            for acl in granted:
                print_json(_fields(acl, who))
        elif commands:
            typer.echo(f"# {part}: {PARTS[part]}")
            for line in lines(ours, granted, who):
                typer.echo(line)
        else:
            _print(part, PARTS[part], who, granted)


def _fields(acl: "Acl", principal: str) -> dict[str, str]:
    return {
        "part": acl.part,
        "principal": principal,
        "resource": acl.resource,
        "name": acl.name,
        "pattern": acl.pattern,
        "operation": acl.operation,
        "why": acl.why,
    }


def _print(part: str, does: str, principal: str, granted: "tuple[Acl, ...]") -> None:
    from rich.table import Table

    out = console()
    out.print(f"[bold]{part}[/bold] ({principal}): {does}", markup=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for acl in granted:
        name = f"{acl.name}*" if acl.prefixed else acl.name
        table.add_row("", acl.operation, acl.resource, name, acl.why)
    out.print(table)
