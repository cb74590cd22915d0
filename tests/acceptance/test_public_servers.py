"""The public tool servers of the example configuration, as it stands, tried for real.

`make servers` installs them. Nothing outside this machine is asked: pages come from a server of the
test, and of the web search only its list of tools is looked at, which needs no key that is right.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web

from agents.configuration.reading import read_configuration
from agents.configuration.values import Configuration, Kind, ToolServer
from agents.configuration.variables import references
from agents.ports import Caller, ToolReply
from agents.tools.local import LocalTools
from agents.tools.shelf import ToolShelf
from streams.core.values import Json
from tests.agents.tool_servers.stories import until

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "infra" / "anabranch.example.toml"
WITHIN_S = 120.0
"""Seconds for seven Python programs to start on a busy machine."""


def example() -> Configuration:
    """The example, with more time to start; variables that it wants are set to something."""
    text = EXAMPLE.read_text(encoding="utf-8")
    found = read_configuration(
        text, path=str(EXAMPLE), environment=dict.fromkeys(references(text), "not-a-key")
    )
    slow = {name: replace(server, start_s=WITHIN_S, call_s=60.0) for name, server in found.servers.items()}
    return replace(found, servers=slow)


@pytest_asyncio.fixture
async def page() -> AsyncIterator[str]:
    """The address of a page on this machine."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(
            text="<html><body><h1>Tides</h1><p>High at noon.</p></body></html>", content_type="text/html"
        )

    app = web.Application()
    app.router.add_get("/tides", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/tides"
    await runner.cleanup()


@pytest_asyncio.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory such as the example is meant for: documents, a repository, a database."""
    assert (ROOT / ".anabranch/servers/ready").exists(), (
        "the public servers are not installed: `make servers`"
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".anabranch").symlink_to(ROOT / ".anabranch")
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "report.txt").write_text("Revenue grew by a third.")
    (tmp_path / "secret.txt").write_text("not for sub-agents")
    (tmp_path / "documents" / "link.txt").symlink_to(tmp_path / "secret.txt")
    with sqlite3.connect(tmp_path / "orders.db") as database:
        database.executescript(
            "create table orders (id integer, total real); insert into orders values (1, 9.5), (2, 20.5);"
            "create table users (name text); insert into users values ('ada');"
        )
    database.close()
    for command in (
        ("init", "-q"),
        (
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t.test",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "The first",
        ),
    ):
        git = await asyncio.create_subprocess_exec("git", *command)
        assert await git.wait() == 0
    return tmp_path


async def test_each_server_of_the_example_does_its_work_within_its_bounds(place: Path, page: str) -> None:
    configuration = example()
    fetching = configuration.servers["fetch"]
    here = replace(
        fetching, name="here", command=(*fetching.command, "--allow-private-ips", "--ignore-robots-txt")
    )
    anything = Kind(name="anything")
    configuration = replace(
        configuration,
        servers={**configuration.servers, "here": here},
        kinds={**configuration.kinds, "anything": anything},
    )
    shelf = ToolShelf(LocalTools(()), configuration)
    try:
        await shelf.start()
        states = shelf.states()
        assert {name: state.reason for name, state in states.items() if state.word != "up"} == {}

        async def call(tool: str, kind: str = "research", **arguments: Json) -> ToolReply:
            return await shelf.call(tool, arguments, timeout_s=60, caller=Caller(kind=kind))

        # files: a folder and nothing beside it, by our scope and by the server itself
        read = await call("files.read_file", path="documents/report.txt")
        assert "Revenue grew by a third." in str(read.output)
        assert (await call("files.read_file", path="documents/../secret.txt")).error == "not_allowed"
        assert (await call("files.read_file", path="secret.txt")).error == "not_allowed"
        beyond = await call("files.read_file", kind="anything", path="secret.txt")
        assert (beyond.error, "not allowed" in str(beyond.output)) == ("tool_error", True)
        linked = await call("files.read_file", path="documents/link.txt")  # our scope sees no link; it does
        assert (linked.error, "not for sub-agents" in str(linked.output)) == ("tool_error", False)
        assert (
            await call("files.write_file", kind="anything", path="documents/x", content="")
        ).error == "unknown_tool"

        # SQL: the tables that are allowed, to read only
        total = await call("sql.execute_query", query="select sum(total) as sum from orders", params={})
        assert "sum: 30.0" in str(total.output)
        assert (await call("sql.execute_query", query="select * from users")).error == "not_allowed"
        written = await call("sql.execute_query", kind="anything", query="delete from orders")
        assert "readonly" in str(written.output)

        # git: this repository
        logged = await call("git.git_log", repo_path=".")
        assert "The first" in str(logged.output)
        assert (await call("git.git_log", repo_path=str(ROOT))).error == "not_allowed"
        assert (await call("git.git_log", kind="anything", repo_path=str(ROOT))).error == "tool_error"

        # fetch: as configured no address of this machine; otherwise the page as Markdown
        private = await call("fetch.fetch", kind="anything", url=page)
        assert (private.error, "private" in str(private.output)) == ("tool_error", True)
        assert (await call("fetch.fetch", url=page)).error == "not_allowed"
        assert "High at noon." in str((await call("here.fetch", kind="anything", url=page)).output)

        # time, and the web search's tool
        told = await call(
            "time.convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"
        )
        assert "21:00" in str(told.output)
        assert [spec.read_only for spec in shelf.specs(("web.web_search", "time.get_current_time"))] == [
            True
        ] * 2
        assert (await call("web.web_search", kind="anything")).error == "bad_arguments"
    finally:
        await shelf.close()


async def test_a_public_server_over_http(place: Path) -> None:
    """The same SQL server as a service, which outlives one worker's shelf."""
    program = str(ROOT / ".anabranch/servers/bin/mcp-alchemy")
    process = await asyncio.create_subprocess_exec(
        *(program, "--transport", "streamable-http", "--port", "0"),
        env={"DB_URL": "sqlite:///file:orders.db?mode=ro&uri=true"},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        port = 0
        async with asyncio.timeout(WITHIN_S):
            async for line in process.stderr:
                if b"http://127.0.0.1:" in line:
                    port = int(line.split(b"http://127.0.0.1:")[1].split()[0])
                    break
        server = ToolServer(name="sql", url=f"http://127.0.0.1:{port}/mcp", start_s=WITHIN_S, call_s=60.0)
        shelf = ToolShelf(LocalTools(()), replace(example(), servers={"sql": server}))
        await shelf.start()
        await until(lambda: shelf.states()["sql"].word == "up")
        arguments: dict[str, Json] = {"query": "select count(*) as many from orders", "params": {}}
        reply = await shelf.call("sql.execute_query", arguments, timeout_s=60, caller=Caller(kind="research"))
        assert "many: 2" in str(reply.output)
        await shelf.close()
    finally:
        process.kill()
        await process.wait()
