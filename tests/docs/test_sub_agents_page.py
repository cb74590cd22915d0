"""What docs/sub-agents.md says: its example is registered and called, its numbers are those of the code."""

import sys
import tomllib
from pathlib import Path

import pytest

from agents.configuration.reading import read_configuration
from agents.configuration.values import Bounds, LocalToolSettings
from agents.conversation import RESULT_BYTES
from agents.tool_turn import KEPT_BYTES, MAX_TOOLS
from agents.tools.local import LocalTools
from agents.tools.registered import GROUP, registered_tools
from agents.tools.sandbox.inside import _FILES
from agents.tools.sandbox.mechanism import PROCESSES
from agents.tools.threads import AT_ONCE, OVERDUE
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "sub-agents.md"


async def test_the_example_is_a_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the page registers it; each of its functions runs, the computing one in a process."""
    (program,) = [text for language, text in blocks(PAGE) if language == "python"]
    settings, package, sandbox = [text for language, text in blocks(PAGE) if language == "toml"]
    (tmp_path / "our_tools.py").write_text(program)
    monkeypatch.syspath_prepend(tmp_path)
    environment = {"OPENAI_API_KEY": "k", "ANABRANCH_MODEL": "m"}
    configuration = read_configuration(settings, path="anabranch.toml", environment=environment)
    points = tomllib.loads(package)["project"]["entry-points"]
    assert points == {GROUP: {"ours": configuration.local.modules[0]}}
    assert read_configuration(sandbox, path="anabranch.toml", environment=environment).local.sandbox
    tools = LocalTools(registered_tools(configuration.local.modules, points=()))
    try:
        rate = await tools.call("rate", {"currency": "EUR", "on": "2026-11-30"}, timeout_s=60)
        assert rate.output == {"currency": "EUR", "on": "2026-11-30", "rate": 1.08}
        assert (await tools.call("rate", {"currency": "euro", "on": "2026-11-30"}, timeout_s=60)).error
        assert (await tools.call("factors", {"n": 12}, timeout_s=60)).output == [2, 2, 3]
        sent = await tools.call("send_report", {"to": "a", "text": "four"}, timeout_s=60)
        assert sent.output == "sent 4 characters to a"
    finally:
        await tools.close()
        sys.modules.pop("our_tools", None)


def test_its_numbers() -> None:
    """Those that the code has."""
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    bounds, local = Bounds(), LocalToolSettings()
    for said in (
        f"has {bounds.rounds} turns",
        f"{bounds.turn_tokens} output tokens a turn and {bounds.task_tokens:,} in all",
        f"{bounds.side_by_side} at once; of more than {bounds.calls} the rest",
        f"sees {RESULT_BYTES >> 10} KB",
        f"up to {KEPT_BYTES >> 20} MB",
        f"more than {MAX_TOOLS} tools",
        f"in a thread, {AT_ONCE} at once",
        f"with {OVERDUE} such threads",
        f"`sandbox_s`, {local.sandbox_s:g} s",
        f"`sandbox_bytes`, {local.sandbox_bytes >> 20} MB",
        f"`sandbox_output`, {local.sandbox_output >> 10} KB",
        f"half of it, and {_FILES:,}",
        f"| processes | {PROCESSES} |",
    ):
        assert said in text, said
