"""Python functions as tools: their schema, their checks, and that nothing gets out as an exception."""

import asyncio
import sys
import threading
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from agents.ports import ToolReply
from agents.tools.local import LocalTools, local_tool
from agents.tools.shipped import shipped_tools
from streams.core.values import Json
from streams.memory_log.virtual_time import run


def sample(
    name: Annotated[str, Field(description="a name", min_length=1)],
    depth: int = 1,
    kind: Literal["a", "b"] | None = None,
) -> dict[str, Any]:
    """Sample something.

    With details.
    """
    return {"name": name, "depth": depth, "kind": kind, "thread": threading.current_thread().name}


def call(function: Any, arguments: dict[str, Json], *, timeout_s: float = 10.0) -> ToolReply:
    """The reply of a tool made of this function, on virtual time."""
    tools = LocalTools([local_tool(function, name="tool")])
    return run(tools.call("tool", arguments, timeout_s=timeout_s))


def test_the_schema_comes_from_the_annotations() -> None:
    """Types, bounds, defaults and descriptions; no titles, and nothing beyond the parameters."""
    spec = local_tool(sample, once=True).spec
    assert (spec.name, spec.description, spec.once) == ("sample", "Sample something.\n\nWith details.", True)
    assert spec.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "description": "a name", "minLength": 1},
            "depth": {"type": "integer", "default": 1},
            "kind": {"anyOf": [{"enum": ["a", "b"], "type": "string"}, {"type": "null"}], "default": None},
        },
    }


def test_a_blocking_function_runs_in_a_thread() -> None:
    """The event loop goes on meanwhile."""
    reply = call(sample, {"name": "n"})
    assert reply.error is None
    assert reply.latency_ms >= 0
    assert isinstance(reply.output, dict)
    assert (reply.output["name"], reply.output["depth"]) == ("n", 1)
    assert reply.output["thread"] != threading.main_thread().name


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "name"),
        ({"name": ""}, "$.name"),
        ({"name": 1}, "$.name"),
        ({"name": "n", "kind": "c"}, "$.kind"),
        ({"name": "n", "extra": 1}, "extra"),
    ],
)
def test_arguments_are_checked_before_the_call(arguments: dict[str, Json], says: str) -> None:
    """The reply says what is wrong and where, and holds the schema."""
    reply = call(sample, arguments)
    assert reply.error == "bad_arguments"
    assert isinstance(reply.output, dict)
    assert says in str(reply.output["message"])
    assert reply.output["parameters"] == local_tool(sample).spec.parameters


def test_what_a_function_raises_is_the_reply() -> None:
    """Blocking or not, whatever it raises."""

    def broken() -> None:
        """Break."""
        raise SystemError("out of luck")

    async def broken_too() -> None:
        """Break."""
        raise TimeoutError("its own")

    for function, words in ((broken, "SystemError: out of luck"), (broken_too, "TimeoutError: its own")):
        reply = call(function, {})
        assert (reply.error, reply.output) == ("tool_error", words)


def test_a_function_that_takes_too_long() -> None:
    """Its time is over: that is the reply, on virtual time at once."""

    async def slow() -> None:
        """Wait."""
        await asyncio.Event().wait()

    reply = call(slow, {}, timeout_s=30)
    assert (reply.error, reply.output) == ("timeout", "no result within 30.0 s")


@pytest.mark.parametrize("ends", ["cancels its task", "raises", "exits"])
def test_a_coroutine_that_ends_itself_ends_nothing_else(ends: str) -> None:
    """Neither the attempt that called it nor the event loop."""

    async def rash() -> None:
        """End."""
        if ends == "raises":
            raise asyncio.CancelledError
        if ends == "exits":
            sys.exit(3)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1)

    assert call(rash, {}).error == "tool_error"


def test_a_coroutine_that_goes_on_though_it_is_cancelled_is_left_to_itself() -> None:
    async def stubborn() -> str:
        """Take long."""
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            await asyncio.sleep(3_600)
        return "too late"

    assert call(stubborn, {}, timeout_s=30).error == "timeout"


def test_an_unknown_tool() -> None:
    """A reply as well."""
    assert run(LocalTools([]).call("x", {}, timeout_s=1)).error == "unknown_tool"


def test_what_is_no_json_becomes_json() -> None:
    """Tuples, keys that are no text, lone surrogates."""

    def odd() -> Any:
        """Return odd things."""
        return {1: ("a\ud800", float("nan"), {2})}

    assert call(odd, {}).output == {"1": ["a�", None, [2]]}


def test_a_tool_must_describe_itself() -> None:
    """And have a name of its own."""

    def silent() -> None: ...

    with pytest.raises(ValueError, match="silent"):
        local_tool(silent)
    with pytest.raises(ValueError, match="sample"):
        LocalTools([local_tool(sample), local_tool(sample)])


def test_the_shipped_tools() -> None:
    """They are there by name; unknown names are left out; noop does nothing."""
    tools = shipped_tools()
    assert tools.names() == ("list_distributions", "distribution_metadata", "licence_files", "noop")
    assert [spec.name for spec in tools.specs(["noop", "nothing"])] == ["noop"]
    assert run(tools.call("noop", {}, timeout_s=1)).output == "ok"
    missing = run(tools.call("distribution_metadata", {"name": "no-such-thing"}, timeout_s=10))
    assert missing.error == "tool_error"
    assert "no-such-thing" in str(missing.output)
