"""What tests read in the Markdown pages: blocks of code, tables, links."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.md"

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^]]*\]\(([^)\s]+)\)")


def pages() -> list[Path]:
    """Every page of the documentation."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each block of code, in order."""
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


def commands(block: str) -> list[str]:
    """What a reader types: the lines after a prompt."""
    return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]


def links(page: Path) -> list[str]:
    """Targets of all links outside of code."""
    return _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8")))


def table(page: Path, first: str) -> list[list[str]]:
    """The rows of the table whose first column is headed *first*."""
    rows = _tables(page.read_text(encoding="utf-8"))
    return next(table[2:] for table in rows if table[0][0] == first)


def names(cell: str) -> list[str]:
    """What stands in code in a cell; ``a.b`` and ``.c`` beside it is ``a.c``."""
    found = re.findall(r"`([^`]+)`", cell)
    place = found[0].rpartition(".")[0] if found else ""
    return [place + name if name.startswith(".") and len(name) > 1 else name for name in found]


def _tables(text: str) -> Iterator[list[list[str]]]:
    rows: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            yield rows
            rows = []
