"""Help, settings and exit codes of all commands."""

import subprocess
import sys

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from streams.broker.failures import BrokerFailed
from streams.cli import app
from streams.cli.environment import VARIABLES, settings
from streams.cli.exits import Exit, Stop, code_of
from streams.cli.options import moment
from streams.client import NotAnswered
from streams.log import LogUnavailable, NoSuchTopic
from streams.replay.files import NotAnExport
from streams.settings import Settings
from streams.wire.goal_fields import BadFields
from tests.cli.conftest import NOWHERE, anabranch

COMMANDS = [
    [],
    ["worker"],
    ["model"],
    ["submit"],
    ["watch"],
    ["waiting"],
    ["approve"],
    ["reject"],
    ["cancel"],
    ["acls"],
    ["answers"],
    ["doctor"],
    ["replay"],
    ["run-agent"],
    ["export"],
    ["cost"],
    *([group] for group in ("broker", "topics", "dead-letters", "chaos")),
    *(["broker", name] for name in ("start", "stop", "status")),
    *(["topics", name] for name in ("create", "check")),
    *(["chaos", name] for name in ("run", "faults", "verify", "simulate")),
    *(["dead-letters", name] for name in ("list", "show", "redrive", "drop")),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(command: list[str]) -> None:
    """And so does each of its options."""
    result = anabranch(*command, "--help")
    assert result.exit_code == Exit.FINE
    assert "Usage" in result.stdout


def test_every_command_is_listed_here() -> None:
    """But those that tests of their own run."""
    group = typer.main.get_command(app)
    assert {words[0] for words in COMMANDS if words} == set(group.commands) - {"demo"}  # type: ignore[attr-defined]  # it is a group


def test_help_tells_settings_and_exit_codes() -> None:
    """What a script's author looks for first."""
    said = " ".join(anabranch("--help").stdout.split())
    assert all(variable in said for variable in VARIABLES.values())
    assert all(f"{code.value} " in said for code in Exit)


def test_help_imports_nothing_heavy() -> None:
    """``anabranch --help`` answers at once."""
    program = (
        "import sys\n"
        "import streams.cli\n"
        "heavy = {'aiokafka', 'faust', 'openai', 'pydantic', 'structlog', 'aiohttp', 'orjson'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_flags_go_before_the_environment_and_that_before_defaults() -> None:
    """Each source for itself, and an empty variable is none."""
    environment = {"ANABRANCH_LANES": "4", "ANABRANCH_PREFIX": "", "OPENAI_API_KEY": "k"}
    assert settings({}) == Settings()
    assert settings(environment) == Settings(lanes=4, api_key="k")
    assert settings(environment, lanes=6, prefix=None) == Settings(lanes=6, api_key="k")


@pytest.mark.parametrize("value", ["many", "-1", "0", "1.5"])
def test_a_number_that_is_none_is_a_usage_error(value: str) -> None:
    """The variable, or what it stands for, is named."""
    with pytest.raises(Stop, match=r"(?i)lanes") as caught:
        settings({"ANABRANCH_LANES": value})
    assert caught.value.code is Exit.USAGE


@pytest.mark.parametrize("value", ["soon", "-1", "0", "nan", "inf"])
def test_seconds_that_are_none_are_a_usage_error(value: str) -> None:
    """Half a second is a number of them; nothing, or no end, is none."""
    assert settings({"ANABRANCH_HEARTBEAT_S": "0.5"}) == Settings(heartbeat_s=0.5)
    with pytest.raises(Stop, match="ANABRANCH_HEARTBEAT_S") as caught:
        settings({"ANABRANCH_HEARTBEAT_S": value})
    assert caught.value.code is Exit.USAGE


def test_errors_have_exit_codes() -> None:
    """Of classes that know nothing of the command line; anything else is a bug, and shows as one."""
    cases = {
        NotAnswered("a/b", 1.0): Exit.LATE,
        LogUnavailable("away"): Exit.UNREACHABLE,
        NoSuchTopic("none"): Exit.UNREACHABLE,
        BadFields("no"): Exit.USAGE,
        NotAnExport("no"): Exit.USAGE,
        BrokerFailed("no"): Exit.FAILED,
    }
    assert {code_of(error): code for error, code in cases.items()} == {code: code for code in cases.values()}
    assert code_of(KeyError("bug")) is None


def test_a_word_that_is_none_is_a_usage_error_before_anything_is_sent() -> None:
    """By its field."""
    for words in (("approve", "g", "--what", "everything"), ("cancel", "a/b/c")):
        result = anabranch(*words)
        assert result.exit_code == Exit.USAGE, result.output
        assert "what" in result.stderr or "cancel" in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["topics", "check"],
        ["topics", "create"],
        ["worker", "--wait", "0", "--model", "m", "--base-url", "http://127.0.0.1:1/v1"],
    ],
    ids=" ".join,
)
def test_a_broker_that_is_not_there_is_code_3(command: list[str]) -> None:
    """With what to do."""
    result = anabranch(*command)
    assert result.exit_code == Exit.UNREACHABLE, result.output
    assert NOWHERE in result.stderr
    assert "anabranch broker start" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["submit"], "either a goal"),
        (["submit", "goal", "--file", "-"], "either a goal"),
        (["submit", "--file", "-", "--id", "x"], "of one goal"),
        (["submit", "--file", "-", "--plan", "x"], "of one goal"),
        (["submit", "goal", "--input", "/does/not/exist"], "cannot be read"),
        (["submit", "goal", "--plan", "/does/not/exist"], "cannot be read"),
        (["submit", "goal", "--max-subtasks", "101"], "max_subtasks"),
        (["submit", "goal", "--id", "no slashes/please"], "id"),
        (["dead-letters", "show", "here"], "PARTITION:OFFSET"),
        (["dead-letters", "redrive"], "say which"),
        (["dead-letters", "redrive", "0:1", "2"], "PARTITION:OFFSET"),
        (["dead-letters", "redrive", "0:1", "--topic", "goals"], "either places, or filters"),
        (["dead-letters", "redrive", "0:1", "--all"], "either places, or filters"),
        (["dead-letters", "redrive", "--until", "soon"], "--until"),
        (["dead-letters", "drop", "0:1"], "--why"),
        (["dead-letters", "list", "--state", "lost"], "--state"),
        (["replay", "nowhere.jsonl"], "no file"),
        (["model", "--latency", "soon"], "latency"),
        (["model", "--fail", "sometimes=1"], "sometimes"),
        (["answers", "--since", "yesterday"], "--since"),
    ],
)
def test_usage_errors_are_code_2_and_need_no_broker(command: list[str], says: str) -> None:
    """They come before anything is asked or sent."""
    result = anabranch(*command)
    assert result.exit_code == Exit.USAGE, result.output
    assert says in result.stderr


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        ("[{", "no JSON"),
        ("null", "a JSON list"),
        ('{"tasks": []}', "a JSON list"),
        ('[{"id": "a", "goal": "x", "dep": ["b"]}]', "`plan`: a depends on unknown b"),
    ],
)
def test_a_plan_that_is_none_is_a_usage_error(plan: str, says: str) -> None:
    """It is judged here, before anything is sent."""
    result = anabranch("submit", "goal", "--plan", "-", stdin=plan)
    assert result.exit_code == Exit.USAGE, result.output
    assert says in result.stderr


def test_goals_of_a_file_are_checked_before_any_is_sent() -> None:
    """The third of three is wrong: none is sent, and it is named by its number."""
    lines = 'one\n{"goal": "two", "tenant": "acme"}\n\n{"goal": "three", "deadlin_s": 3}\n'
    result = anabranch("submit", "--file", "-", "--tenant", "other", stdin=lines)
    assert result.exit_code == Exit.USAGE
    assert "goal 3" in result.stderr
    assert "did you mean `deadline_s`" in result.stderr


@given(st.integers(min_value=0, max_value=10_000), st.sampled_from("smhd"))
def test_moments_ago_go_back_in_time(number: int, unit: str) -> None:
    """The larger the further."""
    assert moment(f"{number + 1}{unit}") < moment(f"{number}{unit}") <= moment("0s")


def test_moments_are_iso_times_too() -> None:
    """With a zone, or in the local one."""
    assert moment("") == 0
    assert moment("1970-01-01T00:00:01+00:00") == 1_000
