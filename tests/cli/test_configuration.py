"""``anabranch.toml`` on the command line: which file is read, what the doctor and a worker say of it."""

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import structlog

from agents.configuration.problems import BadConfiguration
from streams.cli.environment import CONFIG, configured, stray_variables
from streams.cli.exits import Exit, Stop, code_of
from streams.cli.worker_start import with_models
from streams.settings import Settings
from tests.cli.conftest import KEY, anabranch, printed

STDIO = Path(__file__).parents[1] / "agents" / "tool_servers" / "stdio_server.py"
AWAY = "http://127.0.0.1:1/v1"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands are run, with no file in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def two(endpoint: str, other: str = AWAY) -> str:
    """A file with two endpoints, the first with two keys."""
    return f"""
[endpoints.here]
base_url = "{endpoint}"
key_variables = ["KEY_1", "KEY_2"]

[endpoints.there]
base_url = "{other}"

[models.main]
endpoint = "here"
id = "simulated"

[models.lost]
endpoint = "here"
id = "Simulate"

[models.spare]
endpoint = "there"

[kinds.default]
models = ["main", "spare"]
"""


def test_without_a_file_all_is_as_the_variables_say() -> None:
    """One endpoint, and any model."""
    ours = Settings(base_url="http://here/v1", api_key="k" * 12, model="m")
    assert configured(ours, environment={}) is ours
    assert ours.configuration.endpoints["default"].keys == ("k" * 12,)
    assert ours.configuration.open_models


def test_which_file_is_read(folder: Path) -> None:
    """The flag goes before the variable, and that before the file that happens to be there."""
    for name in ("anabranch", "variable", "flag"):
        written(folder / f"{name}.toml", f"[models.{name}]")

    def found(flag: str | None = None, **environment: str) -> list[str]:
        file = None if flag is None else Path(flag)
        return list(configured(Settings(), config=file, environment=environment).configuration.models)

    assert found() == ["anabranch"]
    assert found(ANABRANCH_CONFIG="variable.toml") == ["variable"]
    assert found("flag.toml", ANABRANCH_CONFIG="variable.toml") == ["flag"]
    assert configured(Settings(), base_url="http://h/v1", environment={}).configured is None
    with pytest.raises(Stop, match="--base-url is for one endpoint"):
        configured(Settings(), config=Path("flag.toml"), base_url="http://h/v1", environment={})


@pytest.mark.parametrize(
    ("flag", "environment"),
    [(Path("gone.toml"), {}), (None, {CONFIG: "gone.toml"})],
    ids=["flag", "variable"],
)
def test_a_file_that_is_named_and_not_there(flag: Path | None, environment: dict[str, str]) -> None:
    """It is not passed over."""
    with pytest.raises(Stop, match=r"gone\.toml cannot be read") as caught:
        configured(Settings(), config=flag, environment=environment)
    assert caught.value.code is Exit.USAGE


def test_the_model_flag_is_one_of_the_files_models(folder: Path) -> None:
    """It goes before the models of ``default``, and those stay to fall back on."""
    written(folder / "anabranch.toml", "[models.a]\n[models.b]\n[kinds.default]\nmodels = ['a', 'b']")
    assert configured(Settings(), model="b", environment={}).configuration.kind("x").models == ("b", "a")
    with pytest.raises(Stop, match=r"no model of anabranch\.toml has that name"):
        configured(Settings(), model="c", environment={})


def test_what_is_secret_in_the_file_is_hidden(folder: Path) -> None:
    """In logs, errors and records, as the key of the environment is."""
    written(folder / "anabranch.toml", two(AWAY))
    ours = configured(Settings(), environment={"KEY_1": "first-key-0", "KEY_2": "second-key-0"})
    assert set(ours.secrets) == {"first-key-0", "second-key-0"}
    assert "first-key-0" not in repr(ours)


def test_variables_without_a_meaning_are_told(folder: Path) -> None:
    """By the doctor."""
    written(folder / "anabranch.toml", two(AWAY))
    environment = {"ANABRANCH_ENDPOINT_HERE_BASE_ULR": "x"}
    ours = configured(Settings(), environment=environment)
    assert stray_variables(ours, environment) == ("ANABRANCH_ENDPOINT_HERE_BASE_ULR",)


@pytest.mark.parametrize("command", [["worker"], ["doctor", "--json"]], ids=" ".join)
def test_a_broken_file_is_refused_with_all_its_problems(command: list[str], folder: Path) -> None:
    """Each with its line; the worker does not start, the doctor goes on to the next finding."""
    written(folder / "anabranch.toml", "[model.a]\n\n[endpoints.a]\nbase_ulr = 'x'\n")
    result = anabranch(*command)
    told = result.stdout if command[0] == "doctor" else result.stderr
    assert "anabranch.toml:1: model is no table" in told
    assert "anabranch.toml:4: endpoints.a.base_ulr is no key" in told
    assert "did you mean base_url?" in told
    assert result.exit_code == (Exit.POOR if command[0] == "doctor" else Exit.USAGE)


def test_a_broken_file_is_a_usage_error() -> None:
    """For whoever starts a worker."""
    assert code_of(BadConfiguration(())) is Exit.USAGE


def test_the_doctor_looks_at_every_endpoint_key_and_model(folder: Path, endpoint: str) -> None:
    """One that is away is a warning as long as another is there; a refused key is a problem."""
    written(folder / "anabranch.toml", two(endpoint))
    result = anabranch("doctor", "--json", KEY_1=KEY, KEY_2="another-key-of-mine", KEY_3="x")
    assert KEY not in result.output
    assert "another-key-of-mine" not in result.output
    found = [(each["about"], each["level"], each["what"], each["to_do"]) for each in printed(result)]

    def told(about: str, level: str, what: str, to_do: str = "") -> bool:
        return any(
            about == each[0] and level == each[1] and what in each[2] and to_do in each[3] for each in found
        )

    assert told("configuration", "fine", "anabranch.toml has 2 endpoints, 3 models, 1 kind, 0 tool servers")
    assert told("key", "fine", "here: 2 are set, and look like keys")
    assert told("key", "fine", "there: none, and a local endpoint needs none")
    assert told("endpoint", "fine", f"here: {endpoint} (simulated) has simulated")
    assert told("endpoint", "problem", "401", "KEY_2")
    assert told("endpoint", "warning", AWAY, "start it")
    assert told("model", "fine", "simulated is there")
    assert told("model", "problem", "Simulate is not there", "set id of models.lost; did you mean simulated?")


def test_an_endpoint_whose_keys_are_not_set(folder: Path) -> None:
    """The variables are named, also where it is a local one; and that no endpoint is there is a problem."""
    written(folder / "anabranch.toml", two(AWAY))
    found = [(each["about"], each["level"], each["what"]) for each in printed(anabranch("doctor", "--json"))]
    assert ("key", "warning", "here: KEY_1 or KEY_2 are not set, none of them") in found
    assert [each[:2] for each in found].count(("endpoint", "problem")) == 2


def test_the_doctor_starts_tool_servers_and_looks_for_their_tools(folder: Path, endpoint: str) -> None:
    """Names that no tool has are told with the nearest one; what does not start is told with why."""
    text = f"""
[servers.here]
command = ["{sys.executable}", "-S", "{STDIO}", "broken"]
tools = ["echo", "cuont"]
[servers.away]
command = ["{folder}/nowhere"]
[kinds.default]
tools = ["noop", "noob", "here.echo", "away.x"]
[kinds.analyze]
rounds = 1
[tools]
modules = ["nowhere.at_all:tools"]
"""
    written(folder / "anabranch.toml", text)
    result = anabranch("doctor", "--json", OPENAI_BASE_URL=endpoint, OPENAI_API_KEY=KEY)
    found = [
        (each["level"], each["what"], each["to_do"]) for each in printed(result) if each["about"] == "tools"
    ]
    assert [level for level, _, _ in found] == ["problem", "fine", "warning", "warning", "problem", "problem"]
    assert "nowhere.at_all" in found[0][1]
    assert found[1][1].startswith("servers.here has cancelled, count, crash, echo")
    assert found[4][1:] == ("servers.here.tools names cuont, which it does not have", "did you mean count?")
    assert found[5][1].startswith("servers.away: ")
    written(
        folder / "anabranch.toml", text.replace("nowhere.at_all:tools", "tests.agents.brought_tools:factors")
    )
    result = anabranch("doctor", "--json", OPENAI_BASE_URL=endpoint, OPENAI_API_KEY=KEY)
    told = [(each["what"], each["to_do"]) for each in printed(result) if each["level"] == "problem"]
    assert ("kinds.default names noob, and there is no such tool", "did you mean noop?") in told


def test_the_doctor_prints_no_secret_of_a_tool_server(folder: Path) -> None:
    """Not even where the server's own last words have it."""
    secret = "the-token-of-this-server"
    text = """
[servers.here]
command = ["sh", "-c", "echo bad token: $TOKEN >&2; exit 1"]
environment = { TOKEN = "${SERVER_TOKEN}" }
[servers.there]
url = "http://127.0.0.1:1/mcp"
"""
    written(folder / "anabranch.toml", text)
    address = f"http://127.0.0.1:1/mcp?key={secret}"
    for flags in (["--json"], []):
        result = anabranch("doctor", *flags, SERVER_TOKEN=secret, ANABRANCH_SERVER_THERE_URL=address)
        assert "its last words: bad token: " in result.stdout
        assert "servers.there; try http://127.0.0.1:1/mcp" in result.stdout
        assert secret not in result.output


class Logged:
    """What was logged, by event."""

    def __init__(self, events: list[structlog.typing.EventDict]) -> None:
        self.events = events

    def __getitem__(self, event: str) -> list[structlog.typing.EventDict]:
        return [each for each in self.events if each["event"] == event]


@pytest.fixture
def logged() -> Iterator[Logged]:
    with structlog.testing.capture_logs() as events:
        yield Logged(events)


def start(ours: Settings, *, wait_s: float = 0.0) -> Settings:
    """What a worker looks at before it takes goals, once Kafka is there."""

    async def look() -> Settings:
        return await with_models(ours, asyncio.get_running_loop().time() + wait_s)

    return asyncio.run(look())


def test_a_worker_tells_what_its_endpoints_have(folder: Path, endpoint: str, logged: Logged) -> None:
    """And starts, though one is away, a key is refused and a model is missing."""
    written(folder / "anabranch.toml", two(endpoint))
    environment = {"KEY_1": "another-key-of-mine", "KEY_2": KEY}
    ours = configured(Settings(), environment=environment)
    assert start(ours) == ours
    assert [each["endpoint"] for each in logged["models_listed"]] == ["here"]
    assert [each["endpoint"] for each in logged["models_unknown"]] == ["there"]
    assert [(each["model"], each["hint"]) for each in logged["model_not_listed"]] == [
        ("Simulate", "did you mean simulated?")
    ]
    assert [each["to_do"] for each in logged["key_refused"]] == ["set KEY_1 to a key of 127.0.0.1"]
    assert not any(secret in str(logged.events) for secret in environment.values())


def test_a_worker_whose_only_endpoint_refuses_its_keys_does_not_start(folder: Path, endpoint: str) -> None:
    """Nobody would answer a single goal."""
    text = f'[endpoints.a]\nbase_url = "{endpoint}"\nkey_variables = ["KEY_1"]\n[models.m]'
    written(folder / "anabranch.toml", text)
    ours = configured(Settings(), environment={"KEY_1": "another-key-of-mine"})
    with pytest.raises(Stop, match="to do: set KEY_1 to a key") as caught:
        start(ours)
    assert caught.value.code is Exit.POOR


def test_a_worker_without_any_key_does_not_start(folder: Path, logged: Logged) -> None:
    """The variables that would hold them are named."""
    written(folder / "anabranch.toml", "[endpoints.mine]\nkey_variables = ['MY_KEY']\n[models.m]")
    with pytest.raises(Stop, match="set MY_KEY") as caught:
        start(configured(Settings(), environment={}))
    assert caught.value.code is Exit.USAGE
    with pytest.raises(Stop, match="set OPENAI_API_KEY"):
        start(Settings())


@pytest.mark.parametrize("file", [True, False])
def test_the_only_model_of_the_only_endpoint_is_used(folder: Path, endpoint: str, file: bool) -> None:
    """With nothing said of models, in a file or without one."""
    ours = Settings(base_url=endpoint, api_key=KEY)
    if file:
        written(folder / "anabranch.toml", "[kinds.default]\nrounds = 2\n[kinds.planner]\nthinking = false")
        environment = {"OPENAI_BASE_URL": endpoint, "OPENAI_API_KEY": KEY}
        ours = configured(ours, environment=environment)
    found = start(ours).configuration
    assert list(found.models) == ["simulated"]
    assert {found.kind(kind).models for kind in ("x", "planner", "synthesis")} == {("simulated",)}


def test_an_endpoint_that_is_away_may_come_back(logged: Logged) -> None:
    """With a model it is a warning; without one nobody knows which to use."""
    ours = Settings(base_url=AWAY, model="m")
    assert start(ours) == ours
    assert len(logged["models_unknown"]) == 1
    with pytest.raises(Stop, match="anabranch model"):
        start(replace(ours, model=""))
