"""The page on the verifier has a line for every kind of finding."""

import re

from tests.docs.pages import ROOT, names, table

PAGE = ROOT / "docs" / "verifier.md"


def test_every_kind_of_finding_is_told() -> None:
    """Those that the code can make."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "streams" / "chaos").rglob("*.py"))
    made = set(re.findall(r'Finding\(\s*kind="(\w+)"', code)) | set(
        re.findall(r'^CRASHED = "(\w+)"$', code, re.MULTILINE)
    )
    told = {name for row in table(PAGE, "finding") for name in names(row[0])}
    assert told == made
