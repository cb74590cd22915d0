"""What ``anabranch doctor`` says of the agents' side: configuration, keys, endpoints and models."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

from agents.configuration.problems import nearest
from agents.configuration.tenants import UNLIMITED
from agents.configuration.values import DEFAULT, Configuration, Endpoint
from agents.configuration.variables import API_KEY
from agents.models.faults import PUBLIC_URL
from agents.ports import ModelError
from streams.cli.endpoint import (
    Listing,
    address,
    advice,
    is_local,
    key_fault,
    list_models,
    variables,
    wrong_endpoint,
)
from streams.cli.environment import stray_variables
from streams.cli.finding import Finding, Level
from streams.settings import Settings

SHOWN = 8
"""Models that the finding about them names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What came of asking an endpoint for its models.

    Attributes:
        listing: What it has; None: it did not say so to any key.
        refusals: By key, why it did not.
    """

    endpoint: Endpoint
    listing: Listing | None
    refusals: dict[str, ModelError]


async def agents(settings: Settings) -> AsyncIterator[Finding]:
    """Every finding, in the order in which one should care."""
    configuration = settings.configuration
    for finding in _configuration(settings, configuration):
        yield finding
    for endpoint in configuration.endpoints.values():
        for finding in _keys(configuration, endpoint):
            yield finding
    endpoints = [each for each in configuration.endpoints.values() if each.base_url or each.keys]
    asked = await asyncio.gather(*map(ask, endpoints))
    away = all(each.listing is None for each in asked)
    for each in asked:
        for finding in _endpoint(configuration, each, away=away):
            yield finding
    for each in asked:
        if each.listing is not None:
            for finding in _models(configuration, each.endpoint, each.listing.models):
                yield finding


async def ask(endpoint: Endpoint) -> Asked:
    """Ask an endpoint for its models, with each of its keys."""
    keys = endpoint.keys or ("",)
    answers = await asyncio.gather(*(_ask(endpoint, key) for key in keys))
    listings = [answer for answer in answers if isinstance(answer, Listing)]
    refusals = {
        key: answer for key, answer in zip(keys, answers, strict=True) if isinstance(answer, ModelError)
    }
    return Asked(endpoint=endpoint, listing=next(iter(listings), None), refusals=refusals)


async def _ask(endpoint: Endpoint, key: str) -> Listing | ModelError:
    try:
        return await list_models(endpoint, key)
    except ModelError as error:
        return error


def _configuration(settings: Settings, configuration: Configuration) -> Iterator[Finding]:
    if configuration.path:
        counts = {
            "endpoint": configuration.endpoints,
            "model": [name for name in configuration.models if name],
            "kind": configuration.kinds,
            "tool server": configuration.servers,
        }
        told = ", ".join(f"{len(each)} {name}{'s'[: len(each) != 1]}" for name, each in counts.items())
        yield Finding(about="configuration", level="fine", what=f"{configuration.path} has {told}")
    yield from _tenants(configuration)
    for name in stray_variables(settings):
        what = f"{name} is set, and sets nothing: no endpoint or tool server has that name or key"
        yield Finding(about="configuration", level="warning", what=what, to_do=f"unset {name}")


def _tenants(configuration: Configuration) -> Iterator[Finding]:
    """Who has rules of its own, and who may submit."""
    others = "others have limits" if configuration.others != UNLIMITED else "others have none"
    if configuration.tenants or configuration.others != UNLIMITED:
        names = ", ".join([*configuration.tenants][:SHOWN]) or "none"
        more = f" and {len(configuration.tenants) - SHOWN} more" if len(configuration.tenants) > SHOWN else ""
        what = f"with rules of their own: {names}{more}; {others}"
        yield Finding(about="tenants", level="fine", what=what)
    entry = configuration.entry
    if entry is None:
        return
    ways = [f"the header {entry.header}"] if entry.header else []
    ways += [f"signatures of {', '.join(entry.keys)}"] if entry.keys else []
    yield Finding(about="entry", level="fine", what=f"goals come in by {' or '.join(ways)}")
    if not entry.worker:
        what = "goals that sub-agents submit are not admitted: workers have no key to sign them with"
        todo = "where sub-agents are to submit goals, name a key of all tenants as entry.worker"
        yield Finding(about="entry", level="warning", what=what, to_do=todo)


def _keys(configuration: Configuration, endpoint: Endpoint) -> Iterator[Finding]:
    before, local = _named(configuration, endpoint), is_local(endpoint.base_url)
    if not endpoint.keys:
        yield _no_key(before, endpoint, local=local)
        return
    faults = 0
    for variable, key in zip(endpoint.key_variables, endpoint.keys, strict=True):
        if fault := key_fault(key):
            faults += 1
            level: Level = "warning" if local else "problem"
            todo = f"set {variable} to the key alone, as the provider shows it"
            yield Finding(about="key", level=level, what=f"{before}{variable} {fault}", to_do=todo)
        if not local and (foreign := wrong_endpoint(endpoint.base_url, key)):
            faults += 1
            todo = f"set {address(endpoint)} to it, or {variable} to a key of the endpoint you want"
            yield Finding(about="key", level="problem", what=f"{before}{foreign}", to_do=todo)
    if not faults:
        count = len(endpoint.keys)
        what = "is set, and looks like one" if count == 1 else f"{count} are set, and look like keys"
        yield Finding(about="key", level="fine", what=f"{before}{what}")


def _no_key(before: str, endpoint: Endpoint, *, local: bool) -> Finding:
    named, as_ever = variables(endpoint), endpoint.name == DEFAULT and endpoint.key_variables == (API_KEY,)
    if local and endpoint.base_url and (as_ever or not endpoint.key_variables):
        return Finding(about="key", level="fine", what=f"{before}none, and a local endpoint needs none")
    if as_ever:
        todo = f"set {API_KEY}; without a key: `anabranch model`, and OPENAI_BASE_URL as it says"
        return Finding(about="key", level="problem", what=f"{API_KEY} is not set", to_do=todo)
    if not endpoint.key_variables:
        todo = f"where it wants one: {named}"
        return Finding(about="key", level="warning", what=f"{before}it has none", to_do=todo)
    unset = "is not set" if len(endpoint.key_variables) == 1 else "are not set, none of them"
    level: Level = "warning" if local else "problem"
    return Finding(about="key", level=level, what=f"{before}{named} {unset}", to_do=f"set {named}")


def _endpoint(configuration: Configuration, asked: Asked, *, away: bool) -> Iterator[Finding]:
    """What it has, and which of its keys it refuses.

    Args:
        configuration: All of it.
        asked: What came of asking it.
        away: No endpoint is there.
    """
    endpoint, listing = asked.endpoint, asked.listing
    before = _named(configuration, endpoint)
    if listing is not None:
        label = " (simulated)" if listing.simulated else ""
        more = f" and {len(listing.models) - SHOWN} more" if len(listing.models) > SHOWN else ""
        has = ", ".join(listing.models[:SHOWN]) + more
        url = endpoint.base_url or PUBLIC_URL
        yield Finding(about="endpoint", level="fine", what=f"{before}{url}{label} has {has or 'no models'}")
    told: set[str] = set()
    for key, error in asked.refusals.items():
        if error.reason in told:
            continue  # an endpoint that is away is away for each key
        told.add(error.reason)
        lasting = listing is None and (away or not error.retry)
        level: Level = "problem" if lasting or error.kind == "bad_key" else "warning"
        yield Finding(about="endpoint", level=level, what=error.reason, to_do=advice(endpoint, error, key))


def _models(configuration: Configuration, endpoint: Endpoint, there: Sequence[str]) -> Iterator[Finding]:
    for model in configuration.models.values():
        if model.endpoint != endpoint.name:
            continue
        if not model.id:
            yield _any_model(there)
        elif model.id in there:
            yield Finding(about="model", level="fine", what=f"{model.id} is there")
        else:
            where = "ANABRANCH_MODEL" if configuration.open_models else f"id of models.{model.name}"
            todo = f"set {where}; {nearest(model.id, there)}"
            yield Finding(about="model", level="problem", what=f"{model.id} is not there", to_do=todo)


def _any_model(there: Sequence[str]) -> Finding:
    if len(there) == 1:
        return Finding(about="model", level="fine", what=f"none is set, so the only one: {there[0]}")
    todo = f"set ANABRANCH_MODEL; {nearest('', there)}"
    return Finding(about="model", level="problem", what="none is set", to_do=todo)


def _named(configuration: Configuration, endpoint: Endpoint) -> str:
    """Which endpoint it is about, where there may be several."""
    return f"{endpoint.name}: " if configuration.path and endpoint.name != DEFAULT else ""
