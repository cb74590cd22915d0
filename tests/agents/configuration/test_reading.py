"""What ``anabranch.toml`` says becomes the values that the agents work with."""

from dataclasses import fields, replace
from typing import Any

import pytest

from agents.configuration.building import BOUNDS, with_model
from agents.configuration.tables import (
    EndpointTable,
    EntryTable,
    GateTable,
    KindTable,
    ModelTable,
    PricesTable,
    ServerTable,
    Table,
    TenantTable,
    ToolsTable,
    UnwantedTable,
    keys,
)
from agents.configuration.tenants import EntryKey, EntryRules, Gate, Tenant, Unwanted
from agents.configuration.values import (
    Bounds,
    Endpoint,
    Kind,
    LocalToolSettings,
    ModelSettings,
    Prices,
    ToolServer,
    one_endpoint,
)
from agents.configuration.variables import stray
from tests.agents.configuration.reading import problems, read

WHOLE = """
    [endpoints.kimi]
    base_url = "https://api.moonshot.ai/v1"
    key_variables = ["KIMI_KEY", "KIMI_KEY_2", "KIMI_KEY_3"]
    requests_per_minute = 500
    tokens_per_minute = 3_000_000
    concurrency = 100
    thinking = "type"
    first_token_s = 20

    [endpoints.local]
    base_url = "http://127.0.0.1:8000/v1"
    thinking = "template"
    sampling = true

    [models."kimi-k2.6"]
    endpoint = "kimi"
    context_tokens = 262_144
    prices = { tokens_in = 0.6, tokens_out = 2.5, tokens_cached = 0.1 }

    [models.qwen]
    endpoint = "local"
    id = "Qwen/Qwen3-32B"
    temperature = 0.6

    [kinds.default]
    models = ["kimi-k2.6", "qwen"]
    rounds = 4
    tools = ["files.read", "noop"]

    [kinds.planner]
    models = ["kimi-k2.6"]

    [kinds.analyze]
    thinking = false
    tool_s = 5

    [kinds.query]
    models = ["qwen"]
    tools = ["files.read"]
    schema = { type = "object", required = ["rows"] }

    [kinds.query.scopes."files.read"]
    path = { under = ["/data"] }

    [servers.files]
    command = ["python", "-m", "server", "/data"]
    environment = { TOKEN = "${FILES_TOKEN}", LEVEL = "info", HOME = "${HOME}" }
    tools = ["read", "write"]
    once = ["write"]
    read_only = ["read"]

    [servers.search]
    url = "https://search.example/mcp"
    headers = { Authorization = "Bearer ${SEARCH_KEY}" }
    requests_per_minute = 60

    [tools]
    modules = ["mine.tools:all"]
    sandbox = true
"""
ENVIRONMENT = {
    "KIMI_KEY": "first-key-of-kimi",
    "KIMI_KEY_3": "third-key-of-kimi",
    "FILES_TOKEN": "a-token-of-files",
    "SEARCH_KEY": "a-key-of-search",
    "HOME": "/home/me",
}


def test_a_whole_file() -> None:
    """Each table becomes its value; what it leaves out has its default."""
    found = read(WHOLE, **ENVIRONMENT)
    assert found.endpoints == {
        "kimi": Endpoint(
            name="kimi",
            base_url="https://api.moonshot.ai/v1",
            key_variables=("KIMI_KEY", "KIMI_KEY_3"),
            keys=("first-key-of-kimi", "third-key-of-kimi"),
            requests_per_minute=500,
            tokens_per_minute=3_000_000,
            concurrency=100,
            thinking="type",
            first_token_s=20,
        ),
        "local": Endpoint(
            name="local", base_url="http://127.0.0.1:8000/v1", thinking="template", sampling=True
        ),
    }
    assert found.models == {
        "kimi-k2.6": ModelSettings(
            name="kimi-k2.6",
            endpoint="kimi",
            id="kimi-k2.6",
            context_tokens=262_144,
            prices=Prices(tokens_in=0.6, tokens_out=2.5, tokens_cached=0.1),
        ),
        "qwen": ModelSettings(name="qwen", endpoint="local", id="Qwen/Qwen3-32B", temperature=0.6),
    }
    assert not found.open_models
    chain, tools = ("kimi-k2.6", "qwen"), ("files.read", "noop")
    assert found.kind("anything else") == Kind(
        name="default", models=chain, tools=tools, bounds=Bounds(rounds=4)
    )
    assert found.kind("analyze") == Kind(
        name="analyze", models=chain, tools=tools, thinking=False, bounds=Bounds(rounds=4, tool_s=5)
    )
    assert found.kind("query") == Kind(
        name="query",
        models=("qwen",),
        tools=("files.read",),
        scopes={"files.read": {"path": {"under": ["/data"]}}},
        schema={"type": "object", "required": ["rows"]},
        bounds=Bounds(rounds=4),
    )
    assert found.servers == {
        "files": ToolServer(
            name="files",
            command=("python", "-m", "server", "/data"),
            environment={"TOKEN": "a-token-of-files", "LEVEL": "info", "HOME": "/home/me"},
            tools=("read", "write"),
            once=("write",),
            read_only=("read",),
            secrets=("a-token-of-files",),
        ),
        "search": ToolServer(
            name="search",
            url="https://search.example/mcp",
            headers={"Authorization": "Bearer a-key-of-search"},
            requests_per_minute=60,
            secrets=("a-key-of-search",),
        ),
    }
    assert found.local == LocalToolSettings(modules=("mine.tools:all",), sandbox=True)


def test_planner_and_synthesis_take_only_models_of_default() -> None:
    """A schema, tools or thinking of sub-tasks are none of theirs; the planner thinks unless told not to."""
    found = read(WHOLE, **ENVIRONMENT)
    assert found.kind("planner") == Kind(name="planner", models=("kimi-k2.6",), thinking=True)
    assert found.kind("synthesis") == Kind(name="synthesis", models=("kimi-k2.6", "qwen"))
    told = read("[kinds.planner]\nthinking = false", ANABRANCH_MODEL="m")
    assert told.kind("planner") == Kind(name="planner", models=("m",), thinking=False)
    none = one_endpoint(base_url="", api_key="", model="m")
    assert none.kind("planner") == Kind(name="planner", models=("m",), thinking=True)


def test_only_what_is_secret_is_hidden() -> None:
    """Keys and what variables give to servers; a level of logging and a home are in every second line."""
    found = read(WHOLE, **ENVIRONMENT)
    assert set(found.secrets) == {value for name, value in ENVIRONMENT.items() if name != "HOME"}
    assert not any(secret in repr(found) for secret in found.secrets)


@pytest.mark.parametrize("model", ["", "kimi-k2.6"])
def test_an_empty_file_is_no_file(model: str) -> None:
    """All is as the variables say."""
    given = {"OPENAI_BASE_URL": "http://here/v1", "OPENAI_API_KEY": "the-key", "ANABRANCH_MODEL": model}
    found = read("", **given)
    expected = one_endpoint(base_url="http://here/v1", api_key="the-key", model=model)
    assert (found.endpoints, found.models, found.kinds) == (
        expected.endpoints,
        expected.models,
        expected.kinds,
    )
    assert found.open_models


def test_variables_fill_what_the_file_leaves_out_and_no_more() -> None:
    """Address and key go together: a key never goes to an address it was not given for."""
    given = {"OPENAI_BASE_URL": "http://there/v1", "OPENAI_API_KEY": "the-key", "ANABRANCH_MODEL": "m"}
    limited = read("[endpoints.mine]\nconcurrency = 3", **given)
    assert limited.endpoints == {
        "mine": Endpoint(
            name="mine",
            base_url="http://there/v1",
            key_variables=("OPENAI_API_KEY",),
            keys=("the-key",),
            concurrency=3,
        )
    }
    assert limited.kind("x").models == ("m",)
    addressed = read('[endpoints.mine]\nbase_url = "http://here/v1"', **given)
    assert addressed.endpoints["mine"] == Endpoint(name="mine", base_url="http://here/v1")
    named = read("[models.a]\n[models.b]\n[kinds.default]\nmodels = ['b']", **given)
    assert named.kind("x").models == ("b",)
    open_ = read("[models.m]\n[models.b]", **given)
    assert open_.kind("x").models == ("m",)
    assert not open_.open_models


def test_a_host_may_set_what_differs_there() -> None:
    """By a variable named after table and key; it goes before the file."""
    found = read(
        WHOLE,
        **ENVIRONMENT,
        ANABRANCH_ENDPOINT_KIMI_BASE_URL="http://proxy/v1",
        ANABRANCH_ENDPOINT_KIMI_CONCURRENCY="7",
        ANABRANCH_SERVER_SEARCH_URL="http://search/mcp",
        ANABRANCH_ENDPOINT_LOCAL_TOKENS_PER_MINUTE="",
    )
    assert (found.endpoints["kimi"].base_url, found.endpoints["kimi"].concurrency) == ("http://proxy/v1", 7)
    assert found.servers["search"].url == "http://search/mcp"
    assert found.endpoints["local"].tokens_per_minute is None
    [wrong] = problems("\n[endpoints.kimi]\nconcurrency = 2", ANABRANCH_ENDPOINT_KIMI_CONCURRENCY="many")
    assert wrong == (
        "2: endpoints.kimi.concurrency is 'many' (by ANABRANCH_ENDPOINT_KIMI_CONCURRENCY); "
        "write a whole number"
    )


def test_variables_that_set_nothing_are_found() -> None:
    """Misspelt ones, and those of another host's endpoints."""
    environment = {
        "ANABRANCH_ENDPOINT_KIMI_BASE_URL": "x",
        "ANABRANCH_ENDPOINT_KIMI_BASE_ULR": "x",
        "ANABRANCH_SERVER_X_URL": "x",
    }
    found = stray({"endpoints": ("kimi",), "servers": ()}, environment)
    assert found == ("ANABRANCH_ENDPOINT_KIMI_BASE_ULR", "ANABRANCH_SERVER_X_URL")


def test_a_model_may_be_chosen_later() -> None:
    """By a flag, or as the only one that the endpoint lists; kinds with models of their own keep them."""
    open_ = with_model(read("[kinds.planner]\nmodels = ['big']"), "small")
    assert set(open_.models) == {"small", "big"}
    assert open_.kind("x").models == open_.kind("synthesis").models == ("small",)
    assert open_.kind("planner").models == ("big",)
    chain = with_model(read("[models.a]\n[models.b]\n[kinds.default]\nmodels = ['a', 'b']"), "b")
    assert chain.kind("x").models == ("b", "a")


def test_who_may_submit() -> None:
    """Keys stand in variables, and are hidden; headers have no case."""
    text = """
        [entry]
        header = "X-Principal"
        worker = "workers"
        [entry.principals]
        "User:ci" = ["acme"]
        [entry.keys.workers]
        variable = "WORKERS_KEY"
        tenants = ["*"]
    """
    found = read(text, WORKERS_KEY="a-key-of-all-workers")
    key = EntryKey(name="workers", secret="a-key-of-all-workers", tenants=("*",))
    assert found.entry == EntryRules(
        header="x-principal", principals={"User:ci": ("acme",)}, keys={"workers": key}, worker="workers"
    )
    assert found.secrets == ("a-key-of-all-workers",)
    assert "a-key-of" not in repr(found)
    assert len(problems(text, WORKERS_KEY="too-short")) == 1


def test_tenants_are_as_all_others_where_their_tables_say_nothing() -> None:
    """Of the gate each key by itself."""
    found = read(
        """
        [tenant]
        weight = 2
        in_flight = 7
        gate = { longest = 10, refuse = [{ pattern = "a", reason = "b" }] }
        [tenants.acme]
        weight = 3
        gate = { model = true }
        """
    )
    gate = Gate(longest=10, refuse=(Unwanted(pattern="a", reason="b"),))
    assert found.tenant("any") == Tenant(weight=2, in_flight=7, gate=gate)
    acme = Tenant(name="acme", weight=3, in_flight=7, gate=replace(gate, model=True))
    assert found.tenant("acme") == acme
    assert read("").tenant("any") == Tenant()


@pytest.mark.parametrize(
    ("value", "table", "filled"),
    [
        (Endpoint, EndpointTable, {"name", "keys"}),
        (ModelSettings, ModelTable, {"name"}),
        (Prices, PricesTable, set()),
        (Kind, KindTable, {"name", "bounds"}),
        (Bounds, KindTable, set()),
        (ToolServer, ServerTable, {"name", "secrets"}),
        (LocalToolSettings, ToolsTable, set()),
        (Tenant, TenantTable, {"name"}),
        (Gate, GateTable, set()),
        (Unwanted, UnwantedTable, set()),
        (EntryRules, EntryTable, set()),
    ],
)
def test_every_setting_has_a_key(value: type[Any], table: type[Table], filled: set[str]) -> None:
    """What the agents may be told can be written in the file, under the same name."""
    assert {each.name for each in fields(value)} - filled <= set(keys(table))
    assert {each.name for each in fields(Bounds)} == set(BOUNDS)
