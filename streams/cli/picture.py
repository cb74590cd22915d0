"""A picture of the terminal after a run of the demo, for documents: an SVG that fetches nothing."""

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from streams.cli.demo_view import DemoJobs, answered
from streams.cli.live import picture
from streams.cli.report_view import report_table
from streams.core.commands import Answer
from streams.core.values import Inline
from streams.report import Report

WIDTH: Final = 124
"""Characters on a line."""

ROWS: Final = 13
"""Rows of a table in the answer that are shown."""

_FONTS: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def save(file: Path, live: DemoJobs, answers: Sequence[Answer], report: Report) -> None:
    """Draw the jobs in the middle of it, the first answer, cut, and the run report."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(Text.assemble(("$ ", "dim"), "make demo"))
    console.print(picture(live.midway, width=WIDTH, simulated=live.simulated))
    console.print()
    for part in answered(_cut(answers[0]), rendered=True):
        console.print(part)
    console.print(report_table(report))
    # It names fonts on somebody's server, which a document should not make its readers ask.
    file.write_text(_FONTS.sub("", console.export_svg(title="anabranch demo")), encoding="utf-8")


def _cut(answer: Answer) -> Answer:
    """The answer with the first rows of its table only; it says how many more there are."""
    if not isinstance(answer.value, str):
        return answer
    lines = answer.value.splitlines()
    table = [place for place, line in enumerate(lines) if line.startswith("|")]
    if len(table) <= ROWS + 2:
        return answer
    dropped = set(table[ROWS + 2 :])
    kept = [line for place, line in enumerate(lines) if place not in dropped]
    return replace(answer, answer=Inline(value="\n".join([*kept, "", f"*{len(dropped)} more rows*", ""])))
