"""``anabranch doctor``: what keeps a system from working here, each with what to do."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from streams.access import IN_FILES, SASL_SSL, VARIABLES, Access
from streams.cli.exits import Exit, run
from streams.cli.finding import Finding, Level
from streams.cli.options import AsJson, Brokers, Config, Lanes, Prefix
from streams.cli.output import console, print_json, say, typed
from streams.redaction import Redactor, is_sure
from streams.settings import Settings

if TYPE_CHECKING:
    from agents.configuration.problems import BadConfiguration

ABOUT = 14
"""Letters of the longest word for what a finding is about, and a blank."""

CONNECT_S = 3.0
"""Seconds that a broker may take to accept a connection."""


def doctor(
    brokers: Brokers = None,
    prefix: Prefix = None,
    lanes: Lanes = None,
    model: Annotated[str | None, typer.Option(help="The model to look for.", show_default=False)] = None,
    base_url: Annotated[
        str | None, typer.Option(help="The one endpoint to ask, and no file.", show_default=False)
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Look at brokers, topics, configuration, keys, endpoints, models and tools; say what to do.

    It spends nothing and never prints a key. Exit code 1 where there is a problem.

    [dim]ANABRANCH_MODEL=kimi-k2 anabranch doctor --base-url https://api.moonshot.ai/v1[/dim]
    """
    from agents.configuration.problems import BadConfiguration
    from streams.cli.environment import configured, settings
    from streams.cli.quiet import quiet

    async def look() -> bool:
        ours = settings(brokers=brokers, prefix=prefix, lanes=lanes, model=model, base_url=base_url)
        bad: BadConfiguration | None = None
        try:
            ours = configured(ours, config=config, base_url=base_url, model=model)
        except BadConfiguration as error:
            bad = error
        quiet(ours)
        well, hidden = True, Redactor(ours.secrets)
        async for finding in examine(ours, bad):
            well = well and finding.level != "problem"
            _print(without(finding, hidden), as_json=as_json)
        return well

    if not run(look()):
        raise typer.Exit(Exit.POOR)


async def examine(settings: Settings, bad: "BadConfiguration | None" = None) -> AsyncIterator[Finding]:
    """Every finding, in the order in which one should care.

    Args:
        settings: What is set.
        bad: What is wrong with the file of the agents' side, so that they cannot be looked at.
    """
    from streams.cli.doctor_agents import agents
    from streams.cli.doctor_tools import tools

    async for finding in _log(settings):
        yield finding
    for problem in bad.problems if bad is not None else ():
        what = f"{problem.place}: {problem.what}"
        yield Finding(about="configuration", level="problem", what=what, to_do=problem.to_do)
    if bad is None:
        async for finding in agents(settings):
            yield finding
        async for finding in tools(settings.configuration):
            yield finding


async def _log(settings: Settings) -> AsyncIterator[Finding]:
    from streams.kafka import admin
    from streams.kafka.allowed import missing
    from streams.log import LogUnavailable, NotAllowed

    for finding in _access(settings.access):
        yield finding
    addresses = [address.strip() for address in settings.brokers.split(",")]
    faults = await asyncio.gather(*map(_unreachable, addresses))
    todo = "`anabranch broker start` starts one here, ANABRANCH_BROKERS names others"
    for address, fault in zip(addresses, faults, strict=True):
        if fault:
            level: Level = "problem" if all(faults) else "warning"
            yield Finding(about="brokers", level=level, what=f"{address}: {fault}", to_do=todo)
        else:
            yield Finding(about="brokers", level="fine", what=f"{address} takes connections")
    if all(faults):
        return
    try:
        lacking = await missing(settings, "worker")
        problems = await admin.check(settings)
    except NotAllowed as error:
        what, _, do = str(error).partition("; to do: ")
        yield Finding(about="access", level="problem", what=what, to_do=do)
        return
    except LogUnavailable as error:
        yield Finding(about="brokers", level="problem", what=str(error), to_do=todo)
        return
    for acl in lacking:
        what = f"a worker may not {acl.operation} {acl.resource} {acl.name} ({acl.why})"
        todo = "`anabranch acls worker --commands` prints how to allow it"
        yield Finding(about="access", level="problem", what=what, to_do=todo)
    for each in problems:
        yield Finding(about="topics", level="problem", what=f"{each.topic} {each.what}", to_do=each.remedy)
    if not problems:
        yield Finding(about="topics", level="fine", what=f"all are right, with {settings.lanes} lanes")
        yield await _lag(settings)


async def _lag(settings: Settings) -> Finding:
    from streams.kafka.lag import lag
    from streams.log import LogUnavailable

    try:
        behind = await lag(settings)
    except LogUnavailable as error:
        return Finding(about="lag", level="warning", what=str(error))
    told = ", ".join(f"{count:,} on {topic}" for topic, count in behind.items())
    return Finding(about="lag", level="fine", what=f"records not done yet: {told}")


def _access(access: Access) -> Iterator[Finding]:
    """What of the way to Kafka is open to whoever listens."""
    from streams.cli.endpoint import is_local

    clear = access.token_url.startswith("http:") and not is_local(access.token_url)
    if access.with_sasl and not access.with_tls:
        what = f"{access.protocol}: not encrypted, so what is sent can be read on the way"
        todo = f"use a listener with TLS, and {VARIABLES['protocol']}={SASL_SSL}"
        yield Finding(about="access", level="warning", what=what, to_do=todo)
    if clear:
        what = f"{access.token_url} is not encrypted, so secret and tokens can be read on the way"
        yield Finding(
            about="access", level="warning", what=what, to_do=f"{VARIABLES['token_url']}: take https"
        )
    for name in IN_FILES:
        secret = getattr(access, name)
        if secret and not is_sure(secret):
            what = f"{VARIABLES[name]} is so short, or so plain a word, that records are not cleaned of it"
            yield Finding(about="access", level="warning", what=what, to_do="take a longer, random one")


async def _unreachable(address: str) -> str:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit():
        return "is no HOST:PORT"
    try:
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except TimeoutError:
        return f"no connection within {CONNECT_S:g} s"
    except (OSError, OverflowError) as error:
        return f"no connection ({error})"
    writer.close()
    return ""


def without(finding: Finding, redactor: Redactor) -> Finding:
    """The finding without secrets: what endpoints and tool servers said of themselves is in it.

    What is too short for a secret stays: a key such as ``none`` would make it unreadable.
    """
    what, to_do = (str(redactor.output(text)) for text in (finding.what, finding.to_do))
    return replace(finding, what=what, to_do=to_do)


def _print(finding: Finding, *, as_json: bool) -> None:
    if as_json:
        print_json(typed(finding))
        return
    mark = {"fine": "[green]fine   [/green]", "warning": "[yellow]warning[/yellow]"}.get(finding.level)
    out = console()
    out.print(f"{mark or '[red]problem[/red]'} [bold]{finding.about:<{ABOUT}}[/bold]", end="")
    say(out, finding.what)
    if finding.to_do:
        say(out, f"{'':<{ABOUT + 9}}to do: {finding.to_do}")
