"""The table of decisions in the docs is the one that the code has."""

from pathlib import Path

from agents.models.decisions import RULES

PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def rows() -> list[str]:
    """The table's rows, as the docs have them."""

    def mark(*, is_so: bool) -> str:
        return "yes" if is_so else ""

    return [
        f"| `{kind}` | `{rule.decision}` | {mark(is_so=rule.counted)} | {mark(is_so=rule.ill)} "
        f"| {mark(is_so=rule.congested)} |"
        for kind, rule in RULES.items()
    ]


def test_the_table() -> None:
    """Row by row."""
    page = PAGE.read_text(encoding="utf-8").splitlines()
    first = page.index("|---|---|---|---|---|") + 1
    assert page[first : page.index("", first)] == rows()
