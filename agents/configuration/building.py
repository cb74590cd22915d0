"""From tables without faults to the values that the agents work with; what they leave out is filled here."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from agents.configuration.references import Tables
from agents.configuration.tables import (
    CallTable,
    EndpointTable,
    EntryTable,
    GateTable,
    KindTable,
    ModelTable,
    OthersTable,
    ServerTable,
    Table,
)
from agents.configuration.tenants import EntryKey, EntryRules, Gate, Tenant, Unwanted, merged
from agents.configuration.values import (
    CALLS,
    DEFAULT,
    JUDGE,
    PLANNER,
    SYNTHESIS,
    Bounds,
    Configuration,
    Endpoint,
    Kind,
    LocalToolSettings,
    ModelSettings,
    Prices,
    ToolServer,
)
from agents.configuration.variables import API_KEY, BASE_URL, MODEL, filled, secrets
from streams.core.values import ANSWER, PLAN, Grant, Json

BOUNDS = ("rounds", "turn_tokens", "task_tokens", "calls", "side_by_side", "tool_s")
"""Keys of a kind that are a sub-agent's bounds."""

STEPS: Final[Mapping[str, tuple[str, ...]]] = {
    PLANNER: (PLAN,),
    SYNTHESIS: (ANSWER,),
    JUDGE: ("judge", "gate"),
}
"""What goals call the attempts in which these calls are made, where they limit their time."""


def built(tables: Tables, environment: Mapping[str, str]) -> Configuration:
    """The configuration of tables that have no fault."""
    endpoints = {name: _endpoint(name, each, environment) for name, each in tables.endpoints.items()}
    if not endpoints:
        endpoints = {DEFAULT: _endpoint(DEFAULT, EndpointTable(), environment)}
    only = next(iter(endpoints))
    model = environment.get(MODEL, "").strip()
    models = {name: _model(name, each, only) for name, each in tables.models.items()}
    open_models = not models
    default = tables.kinds.get(DEFAULT, KindTable())
    chain = tuple(default.models or ()) or ((model or next(iter(models), ""),))
    if open_models:
        named = {name: None for kind in tables.kinds.values() for name in kind.models or ()}
        models = {
            name: ModelSettings(name=name, endpoint=only, id=name) for name in dict.fromkeys((*chain, *named))
        }
    return Configuration(
        endpoints=endpoints,
        models=models,
        kinds=_kinds(tables.kinds, chain),
        open_models=open_models,
        servers={name: _server(name, each, environment) for name, each in tables.servers.items()},
        local=LocalToolSettings(**_given(tables.tools)),
        others=_others(tables),
        tenants={name: _tenant(tables, name) for name in tables.tenants},
        entry=None if tables.entry is None else _entry(tables.entry, environment),
    )


def defaults_of(tables: Tables, name: str) -> Mapping[str, Json]:
    """Fields of the goals of a tenant where they say nothing; empty: of one without a table."""
    below = merged(_timeouts(tables.kinds), tables.defaults)
    own = tables.tenants[name].defaults if name else None
    return merged(below, own or {})


def _timeouts(kinds: Mapping[str, CallTable]) -> Mapping[str, Json]:
    """What kinds say of the time of their attempts, as a goal would say it."""
    limits: dict[str, Json] = {}
    timeouts: dict[str, Json] = {}
    for name, table in kinds.items():
        if table.timeout_s is not None and name == DEFAULT:
            limits["timeout_s"] = table.timeout_s
        elif table.timeout_s is not None:
            timeouts |= dict.fromkeys(STEPS.get(name, (name,)), table.timeout_s)
    return (
        {"limits": {**limits, **({"timeouts": timeouts} if timeouts else {})}} if limits or timeouts else {}
    )


def with_model(configuration: Configuration, model: str) -> Configuration:
    """The configuration with *model* where goal, plan and kind name none.

    With ``open_models`` it is one more name; else it is one of the configured models, and those that
    ``default`` falls back on stay.
    """
    models, default = dict(configuration.models), configuration.kinds[DEFAULT]
    models.pop("", None)
    if configuration.open_models and model not in models:
        models[model] = ModelSettings(name=model, endpoint=next(iter(configuration.endpoints)), id=model)
    chain = (model, *(name for name in default.models if name and name != model))
    kinds = {
        name: replace(kind, models=chain) if kind.models == default.models else kind
        for name, kind in configuration.kinds.items()
    }
    return replace(configuration, models=models, kinds=kinds)


def _given(table: Table) -> dict[str, Any]:
    """What stands in a table, its lists as tuples."""
    given = {
        name: getattr(table, name) for name in table.model_fields_set if getattr(table, name) is not None
    }
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}


def _endpoint(name: str, table: EndpointTable, environment: Mapping[str, str]) -> Endpoint:
    """An endpoint with the keys that are set; one that has no address takes address and key together."""
    given = _given(table)
    if table.base_url is None:
        given["base_url"] = environment.get(BASE_URL, "").strip()
        given.setdefault("key_variables", (API_KEY,))
    named: tuple[str, ...] = given.pop("key_variables", ())
    there: dict[str, str] = {}  # by key: the same one in two variables is one key, with one account's limits
    for each in named:
        if (key := environment.get(each, "")).strip():
            there.setdefault(key, each)
    return Endpoint(name=name, key_variables=tuple(there.values()) or named, keys=tuple(there), **given)


def _model(name: str, table: ModelTable, only: str) -> ModelSettings:
    given = _given(table)
    if table.prices is not None:
        given["prices"] = Prices(**_given(table.prices))
    return ModelSettings(name=name, **{"endpoint": only, "id": name, **given})


def _kinds(tables: Mapping[str, CallTable], chain: tuple[str, ...]) -> dict[str, Kind]:
    """The kinds; what the table of one leaves out is as in that of ``default``."""
    default = _kind(DEFAULT, tables.get(DEFAULT, KindTable()), Kind(name=DEFAULT, models=chain))
    kinds = {DEFAULT: default}
    for name, table in tables.items():
        if name in CALLS:
            thinking = True if name == PLANNER else None
            kinds[name] = _kind(name, table, Kind(name=name, models=chain, thinking=thinking))
        elif name != DEFAULT:
            kinds[name] = _kind(name, table, default)
    return kinds


def _kind(name: str, table: CallTable, others: Kind) -> Kind:
    given = _given(table)
    bounds: Bounds = replace(others.bounds, **{key: given.pop(key) for key in BOUNDS if key in given})
    given.pop("timeout_s", None)  # it is among the defaults of goals
    if "schema_" in given:
        given["schema"] = given.pop("schema_")
    return replace(others, name=name, bounds=bounds, **given)


def _server(name: str, table: ServerTable, environment: Mapping[str, str]) -> ToolServer:
    given = _given(table)
    hidden: tuple[str, ...] = ()
    for key in ("environment", "headers"):
        texts: Mapping[str, str] = given.get(key, {})
        hidden += secrets(texts, environment)
        given[key] = {each: filled(text, environment) for each, text in texts.items()}
    return ToolServer(name=name, secrets=tuple(dict.fromkeys(hidden)), **given)


def _others(tables: Tables) -> Tenant:
    return _limited(tables.tenant, Tenant(defaults=defaults_of(tables, "")))


def _tenant(tables: Tables, name: str) -> Tenant:
    """A tenant; what its table leaves out is as in ``[tenant]``."""
    table = tables.tenants[name]
    return _limited(table, replace(_others(tables), name=name, defaults=defaults_of(tables, name)))


def _limited(table: OthersTable, others: Tenant) -> Tenant:
    given = _given(table)
    given.pop("defaults", None)
    if table.day is not None:
        given["day"] = Grant(**_given(table.day))
    if table.gate is not None:
        given["gate"] = _gate(table.gate, others.gate)
    return replace(others, **given)


def _gate(table: GateTable, others: Gate) -> Gate:
    given = _given(table)
    if table.refuse is not None:
        given["refuse"] = tuple(Unwanted(**_given(each)) for each in table.refuse)
    return replace(others, **given)


def _entry(table: EntryTable, environment: Mapping[str, str]) -> EntryRules:
    return EntryRules(
        header=(table.header or "").lower(),
        principals={name: tuple(tenants) for name, tenants in (table.principals or {}).items()},
        keys={
            name: EntryKey(
                name=name, secret=environment.get(key.variable, "").strip(), tenants=tuple(key.tenants)
            )
            for name, key in (table.keys or {}).items()
        },
        worker=table.worker or "",
    )
