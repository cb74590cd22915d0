"""``anabranch doctor`` against a simulated endpoint."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.configuration.problems import nearest
from agents.configuration.values import DEFAULT, Endpoint
from agents.ports import ModelError
from streams.cli.endpoint import advice, key_fault, wrong_endpoint
from streams.cli.exits import Exit
from tests.cli.conftest import KEY, NOWHERE, anabranch, printed


def findings(*args: str, **environment: str) -> dict[str, dict[str, str]]:
    """What the doctor found, by what it is about; the last one of each."""
    result = anabranch("doctor", "--json", *args, **environment)
    assert result.exit_code == Exit.POOR, result.output  # there is no broker in these tests
    if key := environment.get("OPENAI_API_KEY", "").strip():
        assert key not in result.output
    return {found["about"]: found for found in printed(result)}


def test_all_that_is_wrong_is_told_with_what_to_do() -> None:
    """Nothing there at all: each finding is a problem of its own."""
    found = findings()
    assert {about: each["level"] for about, each in found.items()} == {"brokers": "problem", "key": "problem"}
    assert NOWHERE in found["brokers"]["what"]
    assert "anabranch broker start" in found["brokers"]["to_do"]
    assert "anabranch model" in found["key"]["to_do"]


def test_an_endpoint_with_its_key_is_fine(endpoint: str) -> None:
    """Its models are listed, it is labelled, and its only model will be used."""
    found = findings(OPENAI_BASE_URL=endpoint, OPENAI_API_KEY=KEY)
    assert {found[about]["level"] for about in ("key", "endpoint", "model")} == {"fine"}
    assert "(simulated) has simulated" in found["endpoint"]["what"]
    assert "simulated" in found["model"]["what"]


def test_a_wrong_key_is_told_and_never_printed(endpoint: str) -> None:
    """A 401 says whose key is needed."""
    found = findings(OPENAI_BASE_URL=endpoint, OPENAI_API_KEY="a-key-of-somebody-else")
    assert found["endpoint"]["level"] == "problem"
    assert "401" in found["endpoint"]["what"]
    assert "OPENAI_API_KEY" in found["endpoint"]["to_do"]


def test_an_unknown_model_comes_with_the_nearest_name(endpoint: str) -> None:
    """Of those that the endpoint has."""
    found = findings(OPENAI_BASE_URL=endpoint, OPENAI_API_KEY=KEY, ANABRANCH_MODEL="Simulate")
    assert found["model"]["level"] == "problem"
    assert "did you mean simulated?" in found["model"]["to_do"]


def test_an_endpoint_that_is_not_there() -> None:
    """A local one is started by us."""
    found = findings("--base-url", "http://127.0.0.1:1/v1")
    assert found["key"]["level"] == "fine"
    assert "anabranch model" in found["endpoint"]["to_do"]


def test_tenants_and_entry_are_told(tmp_path: Path, endpoint: str) -> None:
    """And that sub-agents of such a system cannot submit goals."""
    file = tmp_path / "anabranch.toml"
    entry = "[entry.keys.ci]\nvariable = 'CI_KEY'\ntenants = ['acme']\n"
    file.write_text(f"[tenants.acme]\nweight = 2\n[tenant]\njobs = 3\n{entry}", encoding="utf-8")
    environment = {"OPENAI_BASE_URL": endpoint, "OPENAI_API_KEY": KEY, "CI_KEY": "a-key-of-22-characters"}
    found = findings("--config", str(file), **environment)
    assert found["tenants"]["what"] == "with rules of their own: acme; others have limits"
    assert (found["entry"]["level"], "entry.worker" in found["entry"]["to_do"]) == ("warning", True)


def test_a_default_that_no_goal_can_have_is_a_problem_with_its_line(tmp_path: Path) -> None:
    """As every other mistake of the file."""
    file = tmp_path / "anabranch.toml"
    file.write_text("[defaults]\npriority = 12\n", encoding="utf-8")
    result = anabranch("doctor", "--json", "--config", str(file))
    assert f"{file}:2: defaults.priority is no default" in result.output.replace("\\", "")


def test_people_read_the_same() -> None:
    """Without --json: a line a finding, and one for what to do."""
    result = anabranch("doctor")
    assert result.exit_code == Exit.POOR
    assert "problem brokers" in result.stdout
    assert "to do: set OPENAI_API_KEY" in result.stdout


@pytest.mark.parametrize(
    ("key", "fault"),
    [
        ("sk-proj-8hTqLm2VbN4c", ""),
        ("sk-...", "placeholder"),
        ("your-key", "placeholder"),
        ("YOUR_API_KEY_HERE", "placeholder"),
        ("sk-xxxxxxxxxxxxxxxxxxxx", "placeholder"),
        ("<insert key>", "blanks"),
        ("changeme", "placeholder"),
        ("${OPENAI_API_KEY}", "placeholder"),
        (" sk-proj-8hTqLm2VbN4c", "around"),
        ("sk-proj-8hTqLm2VbN4c\n", "around"),
        ("sk-proj 8hTqLm2VbN4c", "blanks"),
        ("Bearer sk-proj-8hTqLm2VbN4c", "Bearer"),
        ('"sk-proj-8hTqLm2VbN4c"', "quotes"),
        ("sk-prój-8hTqLm2VbN4c", "letters"),
        ("sk-1", "short"),
    ],
)
def test_keys_are_judged_by_their_looks(key: str, fault: str) -> None:
    """What people paste by mistake."""
    found = key_fault(key)
    assert fault in found
    assert bool(found) == bool(fault)


@given(st.text(max_size=60))
def test_no_verdict_quotes_the_key(key: str) -> None:
    """Whatever it is, its words are ours."""
    found = key_fault(key)
    assert len(key) < 12 or key not in found


@pytest.mark.parametrize(
    ("url", "key", "address"),
    [
        ("", "sk-or-v1-abc", "https://openrouter.ai/api/v1"),
        ("https://api.moonshot.ai/v1", "sk-kimi-abc", "https://api.kimi.com/coding/v1"),
        ("https://openrouter.ai/api/v1", "sk-or-v1-abc", ""),
        ("https://api.moonshot.ai/v1", "sk-abc", ""),
    ],
)
def test_a_key_that_names_its_endpoint(url: str, key: str, address: str) -> None:
    """By its first letters."""
    found = wrong_endpoint(url, key)
    assert address in found
    assert bool(found) == bool(address)


def test_moonshots_two_platforms_are_told_apart() -> None:
    """Their keys look alike, so only the refusal tells: it names the other one."""
    refused = ModelError("bad_key", "401", retry=False)
    global_ = advice(
        Endpoint(
            name=DEFAULT, base_url="https://api.moonshot.ai/v1", key_variables=("KEY",), keys=("sk-abc",)
        ),
        refused,
    )
    chinese = advice(
        Endpoint(
            name=DEFAULT, base_url="https://api.moonshot.cn/v1", key_variables=("KEY",), keys=("sk-abc",)
        ),
        refused,
    )
    assert "OPENAI_BASE_URL=https://api.moonshot.cn/v1" in global_
    assert "OPENAI_BASE_URL=https://api.moonshot.ai/v1" in chinese


def test_nearest_names() -> None:
    """By likeness, whatever the case; else what there is."""
    models = ("kimi-k2.5", "kimi-k2.6", "gpt-6")
    assert nearest("Kimi-K2.7", models) in {"did you mean kimi-k2.5?", "did you mean kimi-k2.6?"}
    assert nearest("claude", models) == "there are: kimi-k2.5, kimi-k2.6, gpt-6"
