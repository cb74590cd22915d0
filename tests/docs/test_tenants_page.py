"""What docs/tenants.md and docs/security.md show of anabranch.toml can be written so."""

import pytest

from agents.configuration.reading import read_configuration
from streams.wire.tenant_rules import default_faults
from tests.docs.pages import ROOT, blocks

SHOWN = [
    (page, text)
    for page in ("tenants.md", "security.md")
    for language, text in blocks(ROOT / "docs" / page)
    if language == "toml"
]


@pytest.mark.parametrize(("page", "text"), SHOWN)
def test_what_is_shown_can_be_read(page: str, text: str) -> None:
    """With the variables set that it names."""
    secrets = dict.fromkeys(("ACME_APP_KEY", "WORKERS_KEY"), "a-secret-of-24-characters")
    read_configuration(text, path=page, environment=secrets, goal_faults=default_faults)


def test_some_is_shown() -> None:
    assert len(SHOWN) >= 4
