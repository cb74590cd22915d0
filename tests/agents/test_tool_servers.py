"""Tool servers that crash, hang, are silent and print noise: a lane gets a reply, never an exception."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from mcp.types import Tool
from structlog.testing import capture_logs

from agents.configuration.values import ToolServer
from agents.ports import ToolReply
from agents.tools.mcp.connection import connect
from agents.tools.mcp.listing import server_tool, why_broken
from agents.tools.shelf import check_tools
from tests.agents.tool_servers.configured import configured
from tests.agents.tool_servers.http_server import HttpServer
from tests.agents.tool_servers.stories import never, running, soon, stdio, until, up

CASES = Path(__file__).parent / "cases" / "mcp.jsonl"


def test_every_case_has_a_test_here() -> None:
    names = [json.loads(line)["case"] for line in CASES.read_text(encoding="utf-8").splitlines()]
    assert [name for name in names if f"test_case_{name.replace('-', '_')}" not in globals()] == []


async def test_case_crash_mid_call() -> None:
    """Calls in flight get a tool error at once; the server is started again; other servers go on."""
    failures: list[int] = []

    def delay_s(number: int) -> float:
        failures.append(number)
        return 0.01

    crashing, other = stdio("crashing", call_s=3_600), stdio("other")
    async with running(crashing, delay_s=delay_s) as one, running(other) as another:
        await one.call("count", {}, timeout_s=60)
        async with asyncio.timeout(30):
            replies = await asyncio.gather(
                *(one.call("hang", {}, timeout_s=3_600) for _ in range(10)),
                one.call("crash", {}, timeout_s=3_600),
                another.call("echo", {"text": "still here"}, timeout_s=60),
            )
        assert replies[-1].output == "still here"
        assert {reply.error for reply in replies[:-1]} == {"unavailable"}
        assert all(
            "Whether the call was carried out is not known" in str(reply.output) for reply in replies[:-1]
        )
        await up(one)
        # A new process, in which none of those calls was made again.
        assert (await one.call("count", {}, timeout_s=60)).output == "1"
        assert failures == [1]


async def test_a_server_that_dies_while_nobody_calls_is_started_again() -> None:
    failures: list[int] = []

    def delay_s(number: int) -> float:
        failures.append(number)
        return 0.01

    async with running(stdio(), delay_s=delay_s) as server:
        pid = int(str((await server.call("pid", {}, timeout_s=60)).output))
        os.kill(pid, signal.SIGKILL)
        await until(lambda: failures == [1])
        await up(server)
        assert (await server.call("pid", {}, timeout_s=60)).output != str(pid)
        assert server.state.failure_rate == 0


@pytest_asyncio.fixture
async def http() -> AsyncIterator[HttpServer]:
    """A server over HTTP that runs."""
    server = HttpServer()
    await server.start()
    yield server
    await server.kill()


async def test_case_http_server_down(http: HttpServer) -> None:
    """The shared client dies; its supervisor builds a new one; no CancelledError reaches a lane.

    Both ways of the protocol: without sessions (2026-07-28), and with (before).
    """
    legacy = partial(connect, mode="legacy")
    async with (
        running(http.settings("new", call_s=60)) as new,
        running(http.settings("old", call_s=60), opened=legacy) as old,
    ):

        async def lane() -> list[ToolReply]:
            return await asyncio.gather(
                *(server.call("hang", {}, timeout_s=60) for server in (new, old) for _ in range(5))
            )

        assert (await new.call("echo", {"text": "x"}, timeout_s=60)).output == "x"
        working = asyncio.create_task(lane())
        await until(lambda: len(new._calls) == len(old._calls) == 5)
        assert (await new.call("hang", {}, timeout_s=0.1)).error == "timeout"
        assert (await old.call("hang", {}, timeout_s=0.1)).error == "timeout"
        await until(lambda: http.given_up == 2)  # it was told, both ways
        await http.kill()
        async with asyncio.timeout(30):
            replies = await working
        assert {reply.error for reply in replies} == {"unavailable"}
        assert not working.cancelling()
        for server in (new, old):
            assert (await server.call("echo", {"text": "x"}, timeout_s=60)).error == "unavailable"
        await http.start()
        for server in (new, old):
            await up(server)
            assert (await server.call("echo", {"text": "again"}, timeout_s=60)).output == "again"
        await http.kill()
        await http.start()
        # Nobody called meanwhile. Without sessions nothing is missed; with them the old one is gone.
        for server in (new, old):
            await server.call("echo", {"text": "x"}, timeout_s=60)
            await up(server)
            assert (await server.call("echo", {"text": "back"}, timeout_s=60)).output == "back"


@pytest.mark.parametrize(("mode", "at"), [("auto", "start"), ("auto", "body"), ("legacy", "body")])
async def test_a_request_that_breaks_off_fails_alone(http: HttpServer, mode: str, at: str) -> None:
    async with running(http.settings(call_s=60), opened=partial(connect, mode=mode)) as server:
        other = asyncio.create_task(server.call("hang", {}, timeout_s=60))
        await until(lambda: len(server._calls) == 1)
        reply = await server.call("drop", {"at": at}, timeout_s=60)
        assert reply.error == "unavailable"
        assert "Whether the call was carried out is not known" in str(reply.output)
        assert (await server.call("echo", {"text": "x"}, timeout_s=60)).output == "x"
        assert not other.done()
        assert server.state.word == "up"
        other.cancel()


async def test_a_refused_key_is_named_by_its_status_and_not_shown(http: HttpServer) -> None:
    with capture_logs() as logs:
        async with running(http.settings(key="wrong-key-of-mine"), delay_s=never) as server:
            assert "HTTP 401" in server.state.reason
            reply = await server.call("echo", {"text": "x"}, timeout_s=60)
    assert reply.error == "unavailable"
    assert "wrong-key-of-mine" not in f"{logs}{reply}{server.server!r}"


async def test_case_silent_initialize() -> None:
    """Given up after the start-up deadline, named in the log; its tools are unavailable."""
    with capture_logs() as logs:
        async with running(stdio("mute", "silent", start_s=0.2), delay_s=never) as server:
            reply = await server.call("echo", {"text": "x"}, timeout_s=60)
    assert reply.error == "unavailable"
    away = next(entry for entry in logs if entry["event"] == "tool_server_away")
    assert away["server"] == "mute"
    assert "did not start and list its tools within 0.2 s" in away["reason"]


async def test_case_hanging_call() -> None:
    """It ends at the call's time; the server is told to cancel; the model gets a tool error."""
    async with running(stdio(call_s=0.1)) as server:
        reply = await server.call("hang", {}, timeout_s=3_600)
        assert reply.error == "timeout"
        assert "no result within 0.1 s" in str(reply.output)
    async with running(stdio()) as server:
        assert (await server.call("hang", {}, timeout_s=0.1)).error == "timeout"
        assert (await server.call("cancelled", {}, timeout_s=60)).output == "1"


@pytest.mark.parametrize("key", ["tools", "once", "read_only"])
def test_case_wildcard(key: str) -> None:
    """Refused at start-up: name the tools."""
    server = ToolServer(name="files", command=("x",), **{key: ("*",)})  # type: ignore[arg-type]  # each of them is a tuple
    with pytest.raises(ValueError, match=rf"servers\.files\.{key}: '\*' is a pattern; name the tools"):
        check_tools(configured(servers=[server]))
    with pytest.raises(ValueError, match=r"kinds\.default\.tools"):
        check_tools(configured(tools=("files.*",)))


async def test_a_broken_schema_takes_its_tool_only() -> None:
    with capture_logs() as logs:
        async with running(stdio(fault="broken")) as server:
            assert (await server.call("echo", {"text": "x"}, timeout_s=60)).output == "x"
            odd = await server.call("odd", {"a": 1}, timeout_s=60)
    assert odd.error == "unavailable"
    assert "tests.odd is broken: inputSchema is no JSON Schema" in str(odd.output)
    told = {(entry["server"], entry["tool"]) for entry in logs if entry["event"] == "tool_left_out"}
    assert told == {("tests", "odd"), ("tests", "none")}
    assert not {"odd", "none"} & set(server.tools)


TUPLE = {"type": "array", "items": [{"type": "integer"}]}  # so until draft 7


def nested(levels: int) -> dict[str, Any]:
    """Properties that have properties, and so on."""
    found: dict[str, Any] = {}
    for _ in range(levels):
        found = {"a": {"type": "object", "properties": found}}
    return found


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"name": "a", "inputSchema": {"type": "object"}}, None),
        (
            {
                "name": "a",
                "inputSchema": {
                    "$schema": "http://json-schema.org/draft-07/schema#",
                    "type": "object",
                    "properties": {"pair": TUPLE},
                },
            },
            None,
        ),
        ({"name": "a", "inputSchema": {"type": "object", "properties": {"pair": TUPLE}}}, "no JSON Schema"),
        ({"name": "a", "inputSchema": {"type": "object"}, "outputSchema": {"type": 7}}, "outputSchema is no"),
        ({"name": "a", "inputSchema": {"type": "object", "$schema": ["x"]}}, "inputSchema is no"),
        ({"name": "a", "inputSchema": {"type": "object", "$schema": 7}}, "inputSchema is no"),
        ({"name": "a", "inputSchema": {"type": "object", "properties": nested(400)}}, "inputSchema is no"),
        ({"name": "a", "inputSchema": {}}, 'no "type": "object"'),
        ({"name": "", "inputSchema": {"type": "object"}}, "name has 0 characters"),
        ({"inputSchema": {"type": "object"}}, "name: Field required"),
        ("a", "valid dictionary"),
    ],
)
def test_what_makes_a_listed_tool_unusable(entry: Any, why: str | None) -> None:
    found = why_broken(entry)
    assert (found is None) == (why is None)
    assert (why or "") in (found or "")


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"properties": {"a": {"$ref": "#/type"}}},
        {"maximum": 5, "properties": {"a": {"$ref": "#/maximum/x"}}},
        {"properties": {"a": {"$ref": "file:///etc/hostname"}}},
        {"$id": "http://[", "properties": {"a": {"$ref": "b"}}},
    ],
)
def test_a_schema_that_cannot_be_followed_is_told_and_raises_nothing(schema: dict[str, Any]) -> None:
    entry = {"name": "a", "inputSchema": {"type": "object", **schema}}
    if why_broken(entry) is None:
        listed = server_tool(Tool.model_validate(entry, by_name=False), ToolServer(name="s"))
        assert "the tool's own schema is broken" in str(listed.wrong({"a": 1}))


async def test_noise_on_stdout_costs_nothing() -> None:
    """A line of its own is skipped; behind noise on one line the message is found."""
    with capture_logs() as logs:
        async with running(stdio(fault="noise", call_s=60)) as server:
            assert (await server.call("echo", {"text": "x"}, timeout_s=60)).output == "x"
            assert (await server.call("glued", {}, timeout_s=60)).output == "read me"
    assert [entry["server"] for entry in logs if entry["event"] == "tool_server_noise"] == ["tests"] * 3


async def test_wrong_arguments_never_reach_the_server() -> None:
    async with running(stdio()) as server:
        for wrong in ({}, {"text": 7}):
            reply = await server.call("echo", wrong, timeout_s=60)
            assert reply.error == "bad_arguments"
            assert isinstance(reply.output, dict)
            assert reply.output["parameters"] == dict(server.tools["echo"].spec.parameters)
        assert (await server.call("count", {}, timeout_s=60)).output == "1"


async def test_a_tools_own_error_is_told_and_no_failure_of_the_server() -> None:
    async with running(stdio()) as server:
        replies = [await server.call("fail", {}, timeout_s=60) for _ in range(10)]
        assert [(reply.error, reply.output) for reply in replies] == [("tool_error", "the disk is full")] * 10
        assert server.state.failure_rate == 0


async def test_a_server_gets_few_variables_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-servers")
    async with running(stdio(environment={"TOKEN": "its own"})) as server:
        reply = await server.call("variables", {}, timeout_s=60)
    names = set(str(reply.output).split())
    assert "TOKEN" in names
    assert names <= {"TOKEN", "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE"}


async def test_a_server_that_cannot_start_is_told_by_what_it_said() -> None:
    with capture_logs() as logs:
        async with running(stdio("refusing", "refuses"), delay_s=never) as server:
            assert server.state.reason.endswith("its last words: no licence for tools found")
        absent = ToolServer(name="absent", command=("no-such-program-anywhere",))
        async with running(absent, delay_s=never) as server:
            assert "no-such-program-anywhere" in server.state.reason
    away = {entry["server"]: entry for entry in logs if entry["event"] == "tool_server_away"}
    assert away["refusing"]["said"] == ["no licence for tools found"]
    assert "FileNotFoundError" in away["absent"]["reason"]


async def test_a_caller_who_goes_away_ends_its_call_and_no_other() -> None:
    async with running(stdio(call_s=60)) as server:
        leaving = asyncio.create_task(server.call("hang", {}, timeout_s=60))
        await until(lambda: len(server._calls) == 1)
        assert (await server.call("cancelled", {}, timeout_s=60)).output == "0"
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        await until(lambda: not server._calls)
        assert (await server.call("cancelled", {}, timeout_s=60)).output == "1"


async def test_closing_answers_the_calls_under_way() -> None:
    async with running(stdio(call_s=60)) as server:
        waiting = asyncio.create_task(server.call("hang", {}, timeout_s=60))
        await until(lambda: len(server._calls) == 1)
        await server.close()
        async with asyncio.timeout(10):
            assert (await waiting).error == "unavailable"
        assert (await server.call("echo", {"text": "x"}, timeout_s=60)).error == "unavailable"
        assert server.state.word == "closed"


async def test_a_server_whose_probe_hangs_as_well_is_started_again() -> None:
    """It hangs for ever and does not crash; only a new process helps."""
    starts: list[int] = []

    def delay_s(number: int) -> float:
        starts.append(number)
        return 0.01

    async with running(stdio(), delay_s=delay_s) as server:
        hanging: list[Any] = [server.call("hang", {}, timeout_s=0.05) for _ in range(5)]
        assert {reply.error for reply in await asyncio.gather(*hanging)} == {"timeout"}
        refused = await server.call("echo", {"text": "x"}, timeout_s=60)
        assert refused.error == "unavailable"
        assert "5 of its last 5 calls failed; it is asked again in" in str(refused.output)
        server.health.restarted(asyncio.get_running_loop().time())  # as if the time were over
        assert (await server.call("hang", {}, timeout_s=0.05)).error == "timeout"
        await until(lambda: starts == [1] and server.state.word == "up")
        assert (await server.call("echo", {"text": "x"}, timeout_s=60)).output == "x"


def test_backoff_doubles_to_a_minute_and_half_of_it_is_chance() -> None:
    from agents.tools.mcp.backoff import delay_s  # noqa: PLC0415 - used here only

    assert [delay_s(number, lambda: 1.0) for number in (1, 2, 3, 8, 9_000)] == [0.5, 1, 2, 60, 60]
    assert [delay_s(number, lambda: 0.0) for number in (1, 8)] == [0.25, 30]
    assert soon(1) < delay_s(1)
