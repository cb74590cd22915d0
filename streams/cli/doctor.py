"""``anabranch doctor``: what keeps a system from working here, each with what to do."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from streams.access import IN_FILES, SASL_SSL, VARIABLES, Access
from streams.cli.exits import Exit, run
from streams.cli.options import AsJson, Brokers, Lanes, Prefix
from streams.cli.output import console, print_json, say, typed
from streams.redaction import is_sure
from streams.settings import Settings

CONNECT_S = 3.0
"""Seconds that a broker may take to accept a connection."""

SHOWN = 8
"""Models that the finding about them names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing looked at.

    Attributes:
        about: ``access``, ``brokers``, ``topics``, ``lag``, ``key``, ``endpoint`` or ``model``.
        level: A ``problem`` keeps the system from working, a ``warning`` may.
        to_do: What to do about it.
    """

    about: str
    level: Literal["fine", "warning", "problem"]
    what: str
    to_do: str = ""


def doctor(
    brokers: Brokers = None,
    prefix: Prefix = None,
    lanes: Lanes = None,
    model: Annotated[str | None, typer.Option(help="The model to look for.", show_default=False)] = None,
    base_url: Annotated[str | None, typer.Option(help="The endpoint to ask.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Look at brokers, topics, key, endpoint and model, and say what to do about what is wrong.

    It spends nothing and never prints the key. Exit code 1 where there is a problem.

    [dim]ANABRANCH_MODEL=kimi-k2 anabranch doctor --base-url https://api.moonshot.ai/v1[/dim]
    """
    from streams.cli.environment import settings
    from streams.cli.quiet import quiet

    async def look() -> bool:
        quiet()
        ours = settings(brokers=brokers, prefix=prefix, lanes=lanes, model=model, base_url=base_url)
        well = True
        async for finding in examine(ours):
            well = well and finding.level != "problem"
            _print(finding, as_json=as_json)
        return well

    if not run(look()):
        raise typer.Exit(Exit.POOR)


async def examine(settings: Settings) -> AsyncIterator[Finding]:
    """Every finding, in the order in which one should care."""
    async for finding in _log(settings):
        yield finding
    for finding in _key(settings):
        yield finding
    async for finding in _endpoint(settings):
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
            level: Literal["warning", "problem"] = "problem" if all(faults) else "warning"
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


def _key(settings: Settings) -> list[Finding]:
    from streams.cli.endpoint import is_local, key_fault, wrong_endpoint

    if not settings.api_key.strip():
        if settings.base_url and is_local(settings.base_url):
            return [Finding(about="key", level="fine", what="none, and a local endpoint needs none")]
        todo = "set OPENAI_API_KEY; without a key: `anabranch model`, and OPENAI_BASE_URL as it says"
        return [Finding(about="key", level="problem", what="OPENAI_API_KEY is not set", to_do=todo)]
    local = is_local(settings.base_url)
    found = []
    if fault := key_fault(settings.api_key):
        level: Literal["warning", "problem"] = "warning" if local else "problem"
        todo = "set OPENAI_API_KEY to the key alone, as the provider shows it"
        found.append(Finding(about="key", level=level, what=f"OPENAI_API_KEY {fault}", to_do=todo))
    if not local and (foreign := wrong_endpoint(settings.base_url, settings.api_key)):
        todo = "set OPENAI_BASE_URL to it, or OPENAI_API_KEY to a key of the endpoint you want"
        found.append(Finding(about="key", level="problem", what=foreign, to_do=todo))
    return found or [Finding(about="key", level="fine", what="is set, and looks like one")]


async def _endpoint(settings: Settings) -> AsyncIterator[Finding]:
    from agents.models.faults import PUBLIC_URL
    from agents.ports import ModelError
    from streams.cli.endpoint import advice, list_models, nearest

    url = settings.base_url or PUBLIC_URL
    if not settings.base_url and not settings.api_key.strip():
        return  # said already
    try:
        listing = await list_models(settings)
    except ModelError as error:
        yield Finding(about="endpoint", level="problem", what=error.reason, to_do=advice(settings, error))
        return
    label = " (simulated)" if listing.simulated else ""
    more = f" and {len(listing.models) - SHOWN} more" if len(listing.models) > SHOWN else ""
    has = ", ".join(listing.models[:SHOWN]) + more
    yield Finding(about="endpoint", level="fine", what=f"{url}{label} has {has or 'no models'}")
    if settings.model in listing.models:
        yield Finding(about="model", level="fine", what=f"{settings.model} is there")
    elif settings.model:
        todo = f"set ANABRANCH_MODEL; {nearest(settings.model, listing.models)}"
        yield Finding(about="model", level="problem", what=f"{settings.model} is not there", to_do=todo)
    elif len(listing.models) == 1:
        yield Finding(about="model", level="fine", what=f"none is set, so the only one: {listing.models[0]}")
    else:
        todo = f"set ANABRANCH_MODEL; {nearest('', listing.models)}"
        yield Finding(about="model", level="problem", what="none is set", to_do=todo)


def _print(finding: Finding, *, as_json: bool) -> None:
    if as_json:
        print_json(typed(finding))
        return
    mark = {"fine": "[green]fine   [/green]", "warning": "[yellow]warning[/yellow]"}.get(finding.level)
    out = console()
    out.print(f"{mark or '[red]problem[/red]'} [bold]{finding.about:<9}[/bold]", end="")
    say(out, finding.what)
    if finding.to_do:
        say(out, f"{'':<18}to do: {finding.to_do}")
