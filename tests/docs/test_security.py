"""What the page on security says, against the code."""

import re

from streams.access import MECHANISMS, PROTOCOLS, VARIABLES
from streams.acls import PARTS, acls
from streams.settings import Settings
from tests.docs.pages import ROOT, names, table

PAGE = ROOT / "docs" / "security.md"


def test_the_acls_are_those_that_the_command_prints() -> None:
    """In its order, with the default prefix."""
    printed = [
        [acl.part, acl.operation, f"{acl.resource} `{acl.name}{'*' if acl.prefixed else ''}`", acl.why]
        for part in PARTS
        for acl in acls(Settings(), [part])
    ]
    assert table(PAGE, "part") == printed


def test_every_variable_is_told() -> None:
    """And what values it may have."""
    rows = table(PAGE, "variable")
    assert {name for row in rows for name in names(row[0])} == set(VARIABLES.values())
    told = {name: row[1] for row in rows for name in names(row[0])}
    assert all(f"`{each}`" in told[VARIABLES["protocol"]] for each in PROTOCOLS)
    assert all(f"`{each}`" in told[VARIABLES["mechanism"]] for each in MECHANISMS)
    text = PAGE.read_text(encoding="utf-8")
    assert re.search(r"`_FILE` at its end", text)
