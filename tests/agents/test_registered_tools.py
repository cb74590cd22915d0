"""Functions of users become tools: found by name, run in their place, and named where they are wrong."""

import asyncio
import os
import threading
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from agents.ports import ToolReply
from agents.tools import tool
from agents.tools.local import LocalTools, local_tool
from agents.tools.registered import GROUP, BadTools, registered_tools
from agents.tools.threads import StillRunning, Threads
from tests.agents import brought_tools

HERE = "tests.agents.brought_tools"


def entry_point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group=GROUP)


def test_functions_are_found_by_module_and_by_entry_point() -> None:
    """One or a list; what was said of them holds."""
    found = registered_tools(
        [f"{HERE}:mine", f"{HERE}:mine"], points=[entry_point("spinner", f"{HERE}:spin")], taken=["noop"]
    )
    assert {one.spec.name: one.place for one in found} == {
        "area": "thread",
        "prime_factors": "process",
        "launch": "loop",
        "spin": "process",
    }
    specs = {one.spec.name: one.spec for one in found}
    assert (specs["launch"].once, specs["prime_factors"].read_only, specs["area"].once) == (True, True, False)


def test_nothing_is_installed_by_accident() -> None:
    """The group of this environment is read where no other entry points are given."""
    assert isinstance(registered_tools([]), tuple)


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("nowhere.at:all", r"tools module nowhere\.at:all.*install the package"),
        (f"{HERE}:absent", r"absent.*check the name after the colon"),
        (HERE, r"is no package\.module:name"),
        (f"{HERE}:number", r"a int is no function"),
        (f"{HERE}:silent", r"has no docstring"),
        (f"{HERE}:clashes", r"anabranch itself has a tool noop already.*another name"),
        (f"{HERE}:Box", r"is no function"),
    ],
)
def test_what_cannot_be_used_is_named_with_what_to_do(module: str, says: str) -> None:
    """At the start, not when the first sub-agent wants it."""
    with pytest.raises(BadTools, match=says):
        registered_tools([module], taken=["noop"], points=())


def test_all_problems_are_told_at_once() -> None:
    """An entry point that fails is named as well, and two that bring the same tool."""
    bad = [entry_point("gone", "nowhere.at:all"), entry_point("again", f"{HERE}:area")]
    with pytest.raises(BadTools) as caught:
        registered_tools([f"{HERE}:absent", f"{HERE}:area"], points=bad)
    assert len(caught.value.problems) == 3
    assert "entry point again" in caught.value.problems[1]
    assert f"tools module {HERE}:area has a tool area already" in caught.value.problems[1]
    assert "entry point gone = nowhere.at:all" in caught.value.problems[2]


def test_what_a_mark_cannot_mean() -> None:
    """Each with a reason: a process cannot import what stands inside of a function."""
    with pytest.raises(ValueError, match="not both"):
        tool(once=True, read_only=True)

    @tool(cpu=True)
    def inner() -> None:
        """Inside."""

    @tool(cpu=True)
    async def waits() -> None:
        """Wait."""

    def many(*names: str) -> None:
        """Take many."""

    for function, says in (
        (inner, "top level of a module"),
        (waits, "plain function"),
        (many, "by its name"),
    ):
        with pytest.raises(ValueError, match=says):
            local_tool(function)


async def called(name: str, arguments: dict[str, Any], function: Any) -> ToolReply:
    return await LocalTools([local_tool(function)]).call(name, arguments, timeout_s=20)


async def test_arguments_come_as_they_are_annotated() -> None:
    """A model of one's own, a date; one that is none is the model's mistake."""
    box = {"wide": 3, "high": 2}
    reply = await called("area", {"box": box, "on": "2026-11-30"}, brought_tools.area)
    assert reply.output == {"area": 6, "year": 2026}
    reply = await called("area", {"box": box, "on": "soon"}, brought_tools.area)
    assert reply.error == "bad_arguments"
    assert isinstance(reply.output, dict)
    assert str(reply.output["message"]).startswith("$.on")


async def test_processes_compute_and_are_killed_when_time_is_over(tmp_path: Path) -> None:
    """One that runs on is gone afterwards, one that dies is told of; the next call has a process again."""
    tools = LocalTools(local_tool(one) for one in brought_tools.computing)
    try:
        reply = await tools.call("prime_factors", {"n": 84}, timeout_s=60)
        assert isinstance(reply.output, dict)
        assert reply.output["factors"] == [2, 2, 3, 7]
        assert reply.output["process"] != os.getpid()
        note = tmp_path / "pid"
        spinning = asyncio.create_task(tools.call("spin", {"path": str(note)}, timeout_s=60))
        async with asyncio.timeout(60):
            while not (note.exists() and note.read_text()):
                await asyncio.sleep(0.01)
            spinning.cancel()
            with pytest.raises(asyncio.CancelledError):
                await spinning
            while alive(int(note.read_text())):
                await asyncio.sleep(0.01)
        died = await tools.call("die", {"code": 7}, timeout_s=60)
        assert (died.error, died.output) == ("tool_error", "its process died with exit code 7")
        failed = await tools.call("fail", {}, timeout_s=60)
        assert (failed.error, failed.output) == ("tool_error", "Own: no luck")
        again = await tools.call("prime_factors", {"n": 9}, timeout_s=60)
        assert again.error is None
    finally:
        await tools.close()


def alive(pid: int) -> bool:
    """A process is there and at work; one that is dead and not yet waited for is not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


async def test_threads_that_never_end_use_up_nothing_but_their_own_tool() -> None:
    """Their places are given back; the tool is called no more until one of them ends."""
    threads, go = Threads(at_once=2, overdue=3), threading.Event()

    async def given_up() -> None:
        began = asyncio.Event()
        loop = asyncio.get_running_loop()

        def hang() -> None:
            loop.call_soon_threadsafe(began.set)
            go.wait(60)

        task = asyncio.create_task(threads.run("stuck", hang))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    try:
        for _ in range(3):
            await given_up()
        with pytest.raises(StillRunning, match="3 earlier calls of stuck"):
            await threads.run("stuck", lambda: None)
        assert await threads.run("other", lambda: "fine") == "fine"
    finally:
        go.set()
    async with asyncio.timeout(60):
        while threads.overdue("stuck"):
            await asyncio.sleep(0.01)
    assert await threads.run("stuck", lambda: "again") == "again"


async def test_a_tool_that_hangs_is_unavailable() -> None:
    """The model is told so, with the reason."""

    def never() -> str:
        """Never run."""
        raise AssertionError

    tools = LocalTools([local_tool(never)])
    tools._threads = Threads(overdue=0)
    reply = await tools.call("never", {}, timeout_s=5)
    assert reply.error == "unavailable"
    assert "still run though their time is over" in str(reply.output)
