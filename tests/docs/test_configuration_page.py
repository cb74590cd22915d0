"""docs/configuration.md and the example, against what can be configured."""

import pytest

from agents.configuration.reading import read_configuration
from agents.configuration.tables import (
    DayTable,
    EndpointTable,
    EntryKeyTable,
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
from agents.configuration.tenants import Gate, Tenant
from agents.configuration.values import Bounds, Endpoint, LocalToolSettings, ToolServer
from agents.configuration.variables import OVERRIDABLE, references
from streams.cli.environment import CONFIG, FILE
from streams.wire.tenant_rules import default_faults
from tests.docs.pages import ROOT, names, table

PAGE = ROOT / "docs" / "configuration.md"
EXAMPLE = ROOT / "infra" / "anabranch.example.toml"


@pytest.mark.parametrize(
    ("head", "told", "values"),
    [
        ("[endpoints.NAME]", EndpointTable, Endpoint(name="x")),
        ("[models.NAME]", ModelTable, None),
        ("[models.NAME.prices]", PricesTable, None),
        ("[kinds.NAME]", KindTable, Bounds()),
        ("[servers.NAME]", ServerTable, ToolServer(name="x")),
        ("[tools]", ToolsTable, LocalToolSettings()),
        ("[tenants.NAME]", TenantTable, Tenant()),
        ("[tenants.NAME.day]", DayTable, None),
        ("[tenants.NAME.gate]", GateTable, Gate()),
        ("each of `refuse`", UnwantedTable, None),
        ("[entry]", EntryTable, None),
        ("[entry.keys.NAME]", EntryKeyTable, None),
    ],
)
def test_every_key_is_told_with_its_default(head: str, told: type[Table], values: object) -> None:
    """Each with its unit and what it does; a default that is a number or a word stands as it is."""
    rows = {names(row[0])[0]: row for row in table(PAGE, head if "`" in head else f"`{head}`")}
    assert rows.keys() == set(keys(told))
    assert all(all(row) for row in rows.values())
    for name, row in rows.items():
        default = getattr(values, name, None)
        if isinstance(default, bool):
            assert row[2] == f"`{str(default).lower()}`", name
        elif isinstance(default, int | float):
            assert row[2] == f"`{default:.0f}`", name
        elif isinstance(default, str) and default:
            assert row[2] == f"`{default}`", name


def test_the_rules_name_files_and_variables() -> None:
    """Those that the code reads."""
    text = PAGE.read_text(encoding="utf-8")
    rules = " ".join(text.partition("## Rules")[2].partition("\n## ")[0].split())
    assert f"`{CONFIG}`" in text
    assert f"`./{FILE}`" in text
    for start, settable in OVERRIDABLE.values():
        assert f"`{start}_NAME_KEY`" in rules
        assert all(f"`{key}`" in rules for key in settable)


def test_the_example_has_no_problem() -> None:
    """With the variables set that it refers to, and with none of its keys."""
    text = EXAMPLE.read_text(encoding="utf-8")
    found = read_configuration(
        text,
        path=str(EXAMPLE),
        environment=dict.fromkeys(references(text), "x"),
        goal_faults=default_faults,
    )
    assert {"kimi", "openai", "local"} <= found.endpoints.keys()
    assert {"default", "planner", "synthesis"} <= found.kinds.keys()
    # How each is told to think is what nobody guesses.
    assert {found.endpoints[name].thinking for name in ("kimi", "local")} == {"type", "template"}
    assert not any(endpoint.keys for endpoint in found.endpoints.values())
    assert found.others.requests_per_second == 100
    assert found.tenant("acme").defaults["hedge"] == {"share": 0.05}
