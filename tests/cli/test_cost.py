"""``anabranch cost``: recorded tokens by today's prices; what is unknown is said to be unknown."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from agents.models.prices import find_price
from agents.ports import ModelReply, ModelRequest
from streams.cli.exits import Exit
from streams.core.commands import Answer
from streams.core.values import Usage
from streams.log import Record
from streams.replay.files import write_lines
from streams.replay.recording import Recording
from streams.topics import ANSWERS, TRANSCRIPTS
from streams.transcript import ModelCalled, ModelFailed
from streams.wire.answers import write_answer
from streams.wire.transcripts import asked, request_hash, write_transcript
from tests.cli.conftest import anabranch, printed

JOB = "default/order-17"
KNOWN, OTHER = "kimi-k2.5", "kimi-k2.6"
USAGE = Usage(calls=1, tokens_in=1_000_000, tokens_cached=400_000, tokens_out=100_000, usd=9.0)
REQUEST = ModelRequest(messages=({"role": "user", "content": "u"},))
PLACE: dict[str, Any] = {"job": JOB, "task": "t", "attempt": 1, "run": "r"}
CONFIG = """
[endpoints.own]
base_url = "http://127.0.0.1:1/v1"

[models.house]
endpoint = "own"
id = "house-7b"
prices = { tokens_in = 1.0, tokens_out = 10.0, tokens_cached = 0.5 }
"""


def called(n: int, model: str = KNOWN, usage: Usage = USAGE, **reply: Any) -> ModelCalled:
    return ModelCalled(
        **PLACE,
        n=n,
        request=asked(REQUEST, 0),
        request_hash=request_hash(REQUEST),
        reply=ModelReply(
            message={"role": "assistant", "content": "ok"},
            finish_reason="stop",
            usage=usage,
            model=model,
            **reply,
        ),
    )


def export(path: Path, entries: Sequence[ModelCalled | ModelFailed], answers: Sequence[Answer] = ()) -> str:
    """A file as `anabranch export` writes it."""
    records = [
        Record(
            topic=TRANSCRIPTS,
            partition=0,
            offset=offset,
            timestamp=offset,
            key=f"{JOB}/t/1".encode(),
            value=write_transcript(entry),
        )
        for offset, entry in enumerate(entries)
    ]
    told = [
        Record(
            topic=ANSWERS, partition=0, offset=0, timestamp=0, key=JOB.encode(), value=write_answer(each)[0]
        )
        for each in answers
    ]
    recording = Recording(job=JOB, transcripts=tuple(records), answers=tuple(told))
    path.write_bytes(b"".join(write_lines(recording)))
    return str(path)


def listed(model: str, usage: Usage = USAGE) -> float:
    """What genai-prices says of it."""
    price = find_price(model, "")
    assert price is not None
    return price(usage)


def row(said: str, model: str) -> list[str]:
    """The cells of a row."""
    (line,) = [line for line in said.splitlines() if line.strip().startswith(model)]
    return line.split(model, 1)[1].split()


def test_what_a_goal_costs_a_day_and_a_month(tmp_path: Path) -> None:
    """By the models used and by others, from the tokens of the calls, whatever they cost at the time."""
    file = export(tmp_path / "job.jsonl", [called(1), called(2), called(3, OTHER)])
    result = anabranch("cost", file, "--per-day", "1000", "--model", OTHER, ANABRANCH_MODEL=KNOWN)
    assert result.exit_code == Exit.FINE, result.output
    each = listed(KNOWN)
    assert row(result.stdout, KNOWN) == [
        "2", "2,000,000", "800,000", "200,000",
        f"${2 * each:,.2f}", f"${2_000 * each:,.2f}", f"${60_000 * each:,.2f}",
    ]  # fmt: skip
    together = 2 * each + listed(OTHER)
    assert row(result.stdout, "all of them")[-3] == f"${together:,.2f}"
    assert row(result.stdout, f"all at {OTHER}")[-3] == f"${3 * listed(OTHER):,.2f}"
    assert row(result.stdout, f"all at {KNOWN}")[-3] == f"${3 * each:,.2f}"
    assert "genai-prices" in result.stdout


def test_a_price_that_nobody_knows_is_unknown_and_not_0(tmp_path: Path) -> None:
    """And so is the sum."""
    file = export(tmp_path / "job.jsonl", [called(1), called(2, "house-7b")])
    lines = printed(anabranch("cost", file, "--json", "--model", "nobody-knows-it", ANABRANCH_MODEL=KNOWN))
    costs = {(line["of"], line["model"]): line["usd_a_goal"] for line in lines[:-1]}
    assert costs == {
        ("recorded", KNOWN): pytest.approx(listed(KNOWN)),
        ("recorded", "house-7b"): None,
        ("alternative", "nobody-knows-it"): None,
        ("alternative", KNOWN): pytest.approx(2 * listed(KNOWN)),
    }
    total = lines[-1]
    assert (total["type"], total["usd_a_goal"], total["unknown_prices"]) == ("Total", None, ["house-7b"])
    said = anabranch("cost", file, "--per-day", "3").stdout
    assert row(said, "house-7b")[-3:] == ["unknown"] * 3
    assert "Nobody knows the price of house-7b" in said


def test_own_prices_come_first(tmp_path: Path) -> None:
    """Those of anabranch.toml, by the model's name or by what its endpoint calls it."""
    file = export(tmp_path / "job.jsonl", [called(1, "house-7b", endpoint="own"), called(2)])
    config = tmp_path / "anabranch.toml"
    config.write_text(CONFIG)
    lines = printed(anabranch("cost", file, "--json", "--config", str(config)))
    costs = {(line["of"], line["model"]): line["usd_a_goal"] for line in lines[:-1]}
    own = 0.6 + 0.2 + 1.0
    assert costs["recorded", "house-7b"] == pytest.approx(own)
    assert costs["alternative", "house"] == pytest.approx(2 * own)


def test_simulated_tokens_are_said_to_be_simulated(tmp_path: Path) -> None:
    """They cost nothing, and what they would cost elsewhere is no model's count."""
    file = export(tmp_path / "job.jsonl", [called(1, "simulated", simulated=True)])
    said = anabranch("cost", file, "--per-day", "10", ANABRANCH_MODEL=KNOWN).stdout
    assert row(said, "simulated (simulated)")[-3:] == ["nothing"] * 3
    assert "The simulated endpoint answered" in said
    assert row(said, f"all at {KNOWN}")[-3].startswith("$")


def test_estimates_are_marked(tmp_path: Path) -> None:
    """Tokens that the endpoint did not tell, and those of tries without a reply."""
    guessed = replace(USAGE, estimated=1)
    lost = ModelFailed(
        **PLACE, n=1, tried=1, kind="timeout", reason="late", decision="retry", model=KNOWN, usage=guessed
    )
    file = export(tmp_path / "job.jsonl", [lost, called(1, usage=guessed), called(2)])
    said = anabranch("cost", file).stdout
    assert row(said, f"{KNOWN}, tries without a reply")[:2] == ["1", "~1,000,000"]
    assert "tokens of 2 of 3 calls" in said


def answer(job: str, **fields: Any) -> Answer:
    told: dict[str, Any] = {
        "job": job, "id": job.rpartition("/")[2], "tenant": "default",
        "outcome": "succeeded", "rule": "all_done", "usage": replace(USAGE, calls=4),
    }  # fmt: skip
    return Answer(**(told | fields))


def test_answers_tell_sums(tmp_path: Path) -> None:
    """The average of many; models are compared, those used are not known."""
    path = tmp_path / "answers.jsonl"
    answers = [
        answer("default/a"),
        answer("default/b", usage=Usage(calls=2, tokens_in=10)),
        answer("default/a"),
    ]
    path.write_bytes(b"".join(write_answer(each)[0] + b"\n" for each in answers))
    lines = printed(anabranch("cost", str(path), "--json", "--model", KNOWN))
    assert (lines[0]["model"], lines[0]["goals"], lines[0]["calls"]) == (None, 2, 6)
    assert lines[0]["usd_a_goal"] == pytest.approx(4.5)
    summed = listed(KNOWN) + listed(KNOWN, Usage(tokens_in=10))
    assert lines[1]["usd_a_goal"] == pytest.approx(summed / 2)
    assert "not which models" in anabranch("cost", str(path)).stdout


def test_a_job_without_a_journal_has_its_answer(tmp_path: Path) -> None:
    """Its transcripts may be past their retention."""
    file = export(tmp_path / "job.jsonl", [], [answer(JOB)])
    lines = printed(anabranch("cost", file, "--json"))
    assert (lines[0]["model"], lines[0]["calls"]) == (None, 4)
    assert [line["type"] for line in lines] == ["Cost", "Total"]  # no model is configured to compare with


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("hello\n", Exit.USAGE, "line 1"),
        ("", Exit.USAGE, "empty"),
        ('{"usage": {}}\n', Exit.USAGE, "line 1"),
        (orjson.dumps({"v": 1, "type": "AnabranchExport", "job": JOB}).decode(), Exit.POOR, "no model call"),
    ],
)
def test_files_that_tell_nothing(tmp_path: Path, text: str, code: Exit, words: str) -> None:
    """With what is wrong."""
    path = tmp_path / "file"
    path.write_text(text)
    result = anabranch("cost", str(path))
    assert (result.exit_code, words in result.stderr) == (code, True), result.output


@pytest.mark.parametrize("arguments", [[], ["file", "--like", "job"]])
def test_one_of_a_file_and_a_job(arguments: list[str]) -> None:
    """Not none, not both."""
    assert anabranch("cost", *arguments).exit_code == Exit.USAGE
