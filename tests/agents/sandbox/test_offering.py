"""Where a sandbox can be had, and what is said where it cannot."""

import asyncio

import pytest
import structlog

from agents.configuration.values import LocalToolSettings
from agents.tools.registered import BadTools
from agents.tools.sandbox import mechanism, sandbox_problem, tools
from agents.tools.sandbox.running import SandboxFailed, run
from agents.tools.shipped import local_tools, shipped_tools

HERE = "tests.agents.brought_tools"


def test_without_programs_for_it_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to install, and the tools are not offered; all others are."""
    monkeypatch.setenv("PATH", "")
    assert "install bubblewrap" in str(sandbox_problem())
    with structlog.testing.capture_logs() as logged:
        offered = local_tools(LocalToolSettings(sandbox=True))
    assert offered.names() == shipped_tools().names()
    assert [(entry["event"], "bwrap" in entry["reason"]) for entry in logged] == [
        ("sandbox_not_offered", True)
    ]
    with pytest.raises(SandboxFailed, match="bubblewrap"):
        asyncio.run(run(mechanism.Program(argv=("/bin/true",)), tools._PROBE))


def test_where_the_kernel_refuses_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the words of whoever failed, with what to do."""
    monkeypatch.setattr(mechanism, "SYSTEM", ("/nowhere/at/all",))
    monkeypatch.setattr("agents.tools.sandbox.mechanism.Path.is_dir", lambda _: True)
    said = str(sandbox_problem())
    assert "does not work here" in said
    assert "namespaces" in said


def test_it_is_off_by_default() -> None:
    """What ships, and what users bring, with their mistakes told."""
    assert not LocalToolSettings().sandbox
    assert local_tools().names() == shipped_tools().names()
    brought = local_tools(LocalToolSettings(modules=(f"{HERE}:mine",)))
    assert brought.names()[-3:] == ("area", "prime_factors", "launch")
    with pytest.raises(BadTools, match="noop already"):
        local_tools(LocalToolSettings(modules=(f"{HERE}:clashes",)))


@pytest.mark.skipif(sandbox_problem() is not None, reason="there is no sandbox here")
def test_it_is_offered_where_it_works() -> None:
    """As two tools, each with its schema."""
    offered = local_tools(LocalToolSettings(sandbox=True))
    specs = {spec.name: spec for spec in offered.specs(["run_python", "run_shell"])}
    assert set(specs) == {"run_python", "run_shell"}
    assert specs["run_python"].parameters["required"] == ["code"]
