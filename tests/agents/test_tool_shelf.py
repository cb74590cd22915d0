"""All tools of a process by name, as the kinds may use them."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from agents.configuration.values import Configuration, Kind, ToolServer
from agents.models.metrics import Metrics
from agents.models.retry import PatientModel
from agents.ports import Caller, Done, GaveUp, ToolReply
from agents.sub_agent import ToolUsingAgent
from agents.tools.local import LocalTools, local_tool
from agents.tools.mcp.supervisor import Supervisor
from agents.tools.shelf import ToolShelf, check_tools
from streams.core.commands import RunSubTask
from tests.agents.memory_attempt import MemoryAttempt
from tests.agents.scripted_model import ScriptedModel, said
from tests.agents.tool_servers.configured import configured
from tests.agents.tool_servers.stories import never, soon, stdio


async def greet(name: str) -> str:
    """Greet somebody."""
    return f"hello {name}"


async def opened(
    configuration: Configuration, metrics: Metrics | None = None, *, again: bool = True
) -> ToolShelf:
    """A shelf with a function and the servers of a configuration, started."""

    def supervised(server: ToolServer) -> Supervisor:
        return Supervisor(server, delay_s=soon if again else never)

    shelf = ToolShelf(LocalTools([local_tool(greet)]), configuration, metrics=metrics, supervised=supervised)
    return await shelf.start()


async def test_functions_and_servers_stand_side_by_side() -> None:
    server = stdio("tests", tools=("echo", "count"), once=("count",))
    shelf = await opened(configured(servers=[server]))
    try:
        assert shelf.names() == ("greet", "tests.count", "tests.echo")
        specs = shelf.specs(
            ("greet", "tests.echo", "tests.count", "tests.hang", "tests.nothing", "away.x", "nobody")
        )
        assert [(spec.name, spec.read_only, spec.once) for spec in specs] == [
            ("greet", False, False),
            ("tests.echo", True, False),
            ("tests.count", False, True),
        ]
        assert (await shelf.call("greet", {"name": "ada"}, timeout_s=60)).output == "hello ada"
        assert (await shelf.call("tests.echo", {"text": "x"}, timeout_s=60)).output == "x"
        for name in ("tests.hang", "nobody", "tests.", ".echo", "away.x"):
            assert (await shelf.call(name, {}, timeout_s=60)).error == "unknown_tool"
    finally:
        await shelf.close()


async def test_the_run_goes_on_without_a_server_that_does_not_come() -> None:
    with capture_logs() as logs:
        shelf = await opened(
            configured(servers=[stdio("mute", "silent", start_s=0.3), stdio("tests")]), again=False
        )
        try:
            assert (await shelf.call("tests.echo", {"text": "x"}, timeout_s=60)).output == "x"
            assert (await shelf.call("mute.echo", {"text": "x"}, timeout_s=60)).error == "unavailable"
            assert shelf.states()["mute"].word == "waiting"
        finally:
            await shelf.close()
    missing = [entry for entry in logs if entry["event"] == "tool_server_missing"]
    assert [(entry["server"], "within 0.3 s" in entry["reason"]) for entry in missing] == [("mute", True)]


async def test_what_a_kind_may_not_use_is_refused_where_the_call_is_made() -> None:
    scopes = {"greet": {"name": {"matches": "[a-z]+"}}}
    narrow = Kind(name="narrow", tools=("greet",), scopes=scopes)
    metrics = Metrics()
    shelf = await opened(configured(kinds=[narrow], tools=()), metrics)

    async def call(kind: str, name: str) -> ToolReply:
        return await shelf.call("greet", {"name": name}, timeout_s=60, caller=Caller(kind=kind))

    try:
        assert (await call("narrow", "ada")).output == "hello ada"
        refused = await call("narrow", "Robert'); drop table")
        assert refused.error == "not_allowed"
        assert refused.output == {"message": "not allowed: argument name must match '[a-z]+'"}
        # Kinds that nobody configured are as the default, which may use nothing here; so is nobody.
        for kind in ("another", ""):
            assert (await call(kind, "ada")).error == "not_allowed"
        assert (await shelf.call("greet", {"name": "ada"}, timeout_s=60)).error == "not_allowed"
        told = metrics.snapshot()
        assert (told.tools["greet"].calls, told.tools["greet"].failures, told.refused_tool_calls) == (1, 0, 4)
    finally:
        await shelf.close()


async def test_equal_calls_of_a_read_only_tool_are_one_within_a_job() -> None:
    """The server counts its calls; what another kind may not see is not shared with it either."""
    narrow = Kind(name="narrow", scopes={"tests.echo": {"text": {"one_of": ["y"]}}})
    server = stdio("tests", read_only=("count",))
    shelf = await opened(configured(servers=[server], kinds=[narrow]))

    async def call(tool: str, arguments: dict[str, Any], job: str, kind: str = "") -> ToolReply:
        return await shelf.call(f"tests.{tool}", arguments, timeout_s=60, caller=Caller(job=job, kind=kind))

    try:
        replies = await asyncio.gather(*(call("count", {}, "one") for _ in range(20)))
        assert {reply.output for reply in replies} == {"1"}
        assert [reply.shared for reply in replies].count(False) == 1
        assert (await call("count", {}, "another")).output == "2"
        assert [(await call("count", {}, "")).output for _ in range(2)] == ["3", "4"]
        assert (await call("echo", {"text": "x"}, "one")).output == "x"
        assert (await call("echo", {"text": "x"}, "one")).shared
        assert (await call("echo", {"text": "x"}, "one", "narrow")).error == "not_allowed"
        assert [(await call("fail", {}, "one")).shared for _ in range(2)] == [False, False]
    finally:
        await shelf.close()


async def test_names_that_mean_nothing_are_told_at_start() -> None:
    kind = Kind(
        name="typing",
        tools=("greet", "tests.ecko", "tests.echo"),
        scopes={"tests.echo": {"txt": {"matches": "x"}}},
    )
    with capture_logs() as logs:
        shelf = await opened(configured(servers=[stdio("tests", tools=("echo", "missing"))], kinds=[kind]))
        await shelf.close()
    told = {entry["event"]: entry for entry in logs}
    assert told["no_such_tool"]["tool"] == "tests.ecko"
    assert told["no_such_argument"]["arguments"] == ["txt"]
    assert told["tools_not_listed"]["tools"] == ["missing"]


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (ToolServer(name="a.b", command=("x",)), "has no dot"),
        (ToolServer(name="a", command=("x",), once=("t",), read_only=("t", "u")), "t cannot be both"),
    ],
)
def test_servers_that_cannot_be_meant_so_are_refused(server: ToolServer, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_tools(configured(servers=[server]))


async def test_a_sub_agent_goes_on_when_its_tool_server_dies() -> None:
    """Its calls side by side are each answered, the transcript has why, and the next turn is asked."""

    def asks(call_id: str, tool: str, arguments: str = "{}") -> dict[str, Any]:
        return {"id": call_id, "type": "function", "function": {"name": tool, "arguments": arguments}}

    model = ScriptedModel(
        said(
            None,
            calls=[
                asks("c1", "tests__hang"),
                asks("c2", "tests__crash"),
                asks("c3", "other__echo", '{"text": "x"}'),
            ],
        ),
        said("what there was"),
    )
    shelf = await opened(configured(servers=[stdio("tests", call_s=600), stdio("other")]), again=False)
    names = ("tests.hang", "tests.crash", "other.echo")
    attempt = MemoryAttempt(time_s=600)
    command = RunSubTask(
        job="t/j", task="a", attempt=1, ordinal=1, timeout_s=600.0, goal="look", kind="extract", tools=names
    )
    try:
        async with asyncio.timeout(60):
            done = await ToolUsingAgent(PatientModel(model), shelf).run(command, attempt)
    finally:
        await shelf.close()
    assert isinstance(done, Done)
    assert done.result == "what there was"
    assert [call.name for call in attempt.journal.calls].count("tests.crash") == 1
    errors = {call_id: reply.error for call_id, reply in attempt.journal.tool_replies.items()}
    assert errors == {"c1": "unavailable", "c2": "unavailable", "c3": None}
    assert "tool server tests went away during the call" in str(attempt.journal.tool_replies["c1"].output)


@pytest.mark.parametrize("tool", ["crash", "hang"])
async def test_a_once_tool_with_an_unknown_outcome_is_the_end(tool: str) -> None:
    """Neither this model nor another attempt gets to ask for it again; a call that was not made is none."""
    call = {"id": "c1", "type": "function", "function": {"name": f"tests__{tool}", "arguments": "{}"}}
    model = ScriptedModel(said(None, calls=[call]), said("sent"))
    server = stdio("tests", once=("crash", "hang"), call_s=0.2 if tool == "hang" else 60.0)
    shelf = await opened(configured(servers=[server]), again=False)
    command = RunSubTask(
        job="t/j",
        task="a",
        attempt=1,
        ordinal=1,
        timeout_s=60.0,
        goal="send",
        kind="act",
        tools=(f"tests.{tool}",),
    )
    agent = ToolUsingAgent(PatientModel(model), shelf)
    try:
        gave_up = await agent.run(command, MemoryAttempt())
        assert isinstance(gave_up, GaveUp)
        assert (gave_up.kind, gave_up.final, len(model.requests)) == ("unknown_outcome", True, 1)
        assert f"tests.{tool} must not run twice" in gave_up.reason
        if tool == "crash":  # the server is away now: nothing is sent, and the model goes on
            model = ScriptedModel(said(None, calls=[call]), said("not sent"))
            done = await ToolUsingAgent(PatientModel(model), shelf).run(command, MemoryAttempt())
            assert isinstance(done, Done)
            assert done.result == "not sent"
    finally:
        await shelf.close()
