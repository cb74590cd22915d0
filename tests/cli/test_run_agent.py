"""``anabranch run-agent``: one sub-agent in the foreground, on the simulated endpoint and without Kafka."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from streams.cli.exits import Exit
from tests.cli.conftest import KEY, anabranch, printed


def test_each_step_is_told(endpoint: str, tmp_path: Path) -> None:
    """Calls with tokens, cost and endpoint, tools with their results; the result alone goes to stdout."""
    items = tmp_path / "items.json"
    items.write_text('["orjson"]')
    result = anabranch(
        *("run-agent", "Which licence?", "--kind", "extract", "--tools", "distribution_metadata"),
        *("--input", str(items), "--base-url", endpoint),
        OPENAI_API_KEY=KEY,
    )
    assert result.exit_code == Exit.FINE, result.output
    assert result.stdout.startswith('{\n  "name": "orjson"')
    told = result.stderr
    for words in (
        "call 1: 2 messages, tools distribution_metadata, at most 800 tokens",
        "call 1: simulated at default, ",
        " cached), ",
        ' distribution_metadata {"name":"orjson"}',
        ' distribution_metadata: {"name":"orjson","version":',
        "call 2: 4 messages",
        "done: 2 calls, 1 tool calls, ",
        "simulated",
    ):
        assert words in told, told
    assert KEY not in result.output


def test_json_lines_hold_all_of_it(endpoint: str) -> None:
    """Each step whole, and how it ended; standard input is what to work on."""
    result = anabranch(
        *("run-agent", "Sum up", "--input", "-", "--base-url", endpoint, "--json"),
        stdin="some words",
        OPENAI_API_KEY=KEY,
    )
    assert result.exit_code == Exit.FINE
    lines = printed(result)
    assert [line["type"] for line in lines] == ["ModelAsked", "ModelAnswered", "Done"]
    assert lines[1]["reply"]["message"]["content"] == lines[2]["result"]
    assert "some words" in lines[2]["result"]
    assert (lines[1]["reply"]["endpoint"], lines[2]["simulated"]) == ("default", True)
    assert lines[2]["usage"]["calls"] == 1


def test_what_failed_is_told_with_what_is_made_of_it(endpoint: str) -> None:
    """Kind, model, endpoint and decision of every try."""
    arguments = ("--base-url", endpoint)
    refused = anabranch("run-agent", "Sum up [[fail]]", *arguments, OPENAI_API_KEY=KEY)
    assert refused.exit_code == Exit.POOR
    assert "call 1, try 1: content_filter (simulated at default): " in refused.stderr
    assert "-> give_up" in refused.stderr
    assert "no result: content_filter" in refused.stderr
    assert refused.stdout == ""
    again = anabranch("run-agent", "Sum up [[flaky 1]]", *arguments, "--json", OPENAI_API_KEY=KEY)
    assert again.exit_code == Exit.FINE
    failed = next(line for line in printed(again) if line["type"] == "ModelFailed")
    assert (failed["kind"], failed["endpoint"], failed["decision"]) == ("server_error", "default", "retry")
    types = [line["type"] for line in printed(again)]
    assert types == ["ModelAsked", "ModelFailed", "Waited", "ModelAsked", "ModelAnswered", "Done"]


def test_its_time_is_kept(endpoint: str) -> None:
    """An endpoint that does not answer ends it with a code of its own."""
    result = anabranch(
        *("run-agent", "Sum up [[hang]]", "--timeout", "0.3", "--base-url", endpoint), OPENAI_API_KEY=KEY
    )
    assert result.exit_code == Exit.LATE, result.output
    assert "no result: timeout" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["x", "--tools", "nop"], "there is no such tool; did you mean noop?"),
        (["x", "--kind", "narrow", "--tools", "list_distributions"], "kind narrow may not use it"),
        (["x", "--input", "/nowhere/at/all"], "cannot be read"),
        ([" "], "the goal is empty"),
    ],
)
def test_mistakes_are_usage_errors(arguments: list[str], says: str, endpoint: str, tmp_path: Path) -> None:
    """With what to do; nothing was asked."""
    config = tmp_path / "anabranch.toml"
    config.write_text('[kinds.narrow]\ntools = ["noop"]\n')
    result = anabranch(
        *("run-agent", *arguments, "--config", str(config)), OPENAI_API_KEY=KEY, OPENAI_BASE_URL=endpoint
    )
    assert result.exit_code == Exit.USAGE, result.output
    assert says in result.stderr


def test_a_kind_brings_its_own_tools_and_bounds(endpoint: str, tmp_path: Path) -> None:
    """As in a worker: without --tools those on its list are granted."""
    config = tmp_path / "anabranch.toml"
    config.write_text('[kinds.narrow]\ntools = ["noop"]\nturn_tokens = 90\n')
    result = anabranch(
        *("run-agent", "Do it", "--kind", "narrow", "--config", str(config), "--json"),
        OPENAI_API_KEY=KEY,
        OPENAI_BASE_URL=endpoint,
    )
    assert result.exit_code == Exit.FINE, result.output
    asked = printed(result)[0]
    assert (asked["tools"], asked["max_tokens"]) == (["noop"], 90)


async def test_ctrl_c_ends_it_cleanly(endpoint: str) -> None:
    """With the code of an interruption, and without a traceback."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "streams.cli", "run-agent", "Sum up [[hang]]", "--base-url", endpoint),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "OPENAI_API_KEY": KEY},
    )
    assert process.stderr is not None
    async with asyncio.timeout(60):
        said = await process.stderr.readuntil(b"call 1: ")
        process.send_signal(signal.SIGINT)
        out, rest = await process.communicate()
    assert process.returncode == Exit.INTERRUPTED
    assert out == b""
    assert b"Traceback" not in said + rest
