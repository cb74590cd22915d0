"""``anabranch replay`` of a file, without any broker."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.ports import ToolCall
from streams.cli.exits import Exit
from streams.core.values import Inline
from streams.memory_log.virtual_time import run
from streams.replay.files import write_lines
from streams.replay.recording import Recording, record_job
from streams.transcript import ModelFailed, ToolCalled, TranscriptRecord
from streams.wire.answers import read_answer, write_answer
from streams.wire.transcripts import write_transcript
from tests.cli.conftest import anabranch, printed
from tests.streams.scripted import Script, flat
from tests.streams.swarm_in_memory import SwarmInMemory

GOAL = "\x1b[31mtwo"


@pytest.fixture(scope="module")
def recording() -> Recording:
    """A job of two sub-tasks."""

    async def story() -> Recording:
        system = SwarmInMemory(script=Script({GOAL: flat(2)}))
        system.worker()
        await system.submit({"id": "job", "goal": GOAL})
        await system.answers(1)
        return await record_job(system.cluster.connect("reader"), "default/job")

    return run(story())


@pytest.fixture
def file(recording: Recording, tmp_path: Path) -> str:
    """The job, exported."""
    path = tmp_path / "job.jsonl"
    path.write_bytes(b"".join(write_lines(recording)))
    return str(path)


def test_a_file_is_replayed_offline(file: str, recording: Recording) -> None:
    """Events, what they changed, commands, and the verdict; nothing in them commands the terminal."""
    result = anabranch("replay", file)
    assert result.exit_code == Exit.FINE, result.output
    said = result.stdout
    assert f"default/job: {len(recording.events)} events" in said
    assert "JobSubmitted \N{REPLACEMENT CHARACTER}[31mtwo" in said
    assert "\x1b" not in said
    assert "job: new -> planning" in said
    assert "MakePlan plan/1" in said
    assert "t0: Released 1 -> Running 1" in said
    assert "the same answer was published" in said
    assert "model 1" not in said


def test_calls_and_kcat_lines_on_demand(file: str) -> None:
    """Every model call with its reply; and how to look at a record oneself."""
    result = anabranch("replay", file, "--calls", "--kcat", "--brokers", "kafka:9092")
    assert "calls of t0/1" in result.stdout
    assert "model 1, scripted" in result.stdout
    assert "kcat -C -b kafka:9092 -t anabranch.job-events" in result.stdout


def test_what_failed_and_what_was_shared_is_told_of_calls(recording: Recording, tmp_path: Path) -> None:
    """A failed try with model, endpoint and decision; a shared result without a time of its own."""
    place: dict[str, Any] = {"job": "default/job", "task": "t0", "attempt": 1, "run": "r"}
    failed = ModelFailed(
        **place,
        n=1,
        tried=1,
        kind="timeout",
        reason="late",
        decision="elsewhere",
        endpoint="moon",
        model="k2",
    )
    call = ToolCall(id="c1", name="look", arguments="{}")
    shared = ToolCalled(**place, call=call, output=Inline(value="seen"), shared=True)
    last = recording.transcripts[-1]
    entries: tuple[TranscriptRecord, ...] = (failed, shared)
    more = tuple(
        replace(last, offset=last.offset + number, value=write_transcript(entry))
        for number, entry in enumerate(entries, 1)
    )
    path = tmp_path / "more.jsonl"
    path.write_bytes(b"".join(write_lines(replace(recording, transcripts=(*recording.transcripts, *more)))))
    said = anabranch("replay", str(path), "--calls").stdout
    assert "model 1, try 1: k2 at moon, timeout, late (elsewhere)" in said
    assert "tool look, shared with an equal call: {}" in said


def test_a_program_gets_steps_calls_and_a_verdict(file: str, recording: Recording) -> None:
    """One JSON object a line."""
    lines = printed(anabranch("replay", file, "--json", "--calls"))
    steps = [line for line in lines if line["type"] == "Step"]
    assert [step["event"]["type"] for step in steps][:2] == ["JobSubmitted", "Planned"]
    assert len(steps) == len(recording.events)
    assert [order["task"] for step in steps for order in step["orders"]] == ["plan", "t0", "t1", "answer"]
    assert any(line["type"] == "ModelCalled" for line in lines)
    verdict = lines[-1]
    assert verdict["type"] == "Verdict"
    assert verdict["agrees"] is True
    assert set(verdict["answer"]["answer"]) == {"t0", "t1"}


def test_another_answer_is_code_1(recording: Recording, tmp_path: Path) -> None:
    """With the field and both values."""
    (record,) = recording.answers
    value, _ = write_answer(replace(read_answer(record), rule="forged"))
    path = tmp_path / "forged.jsonl"
    forged = replace(recording, answers=(replace(record, value=value),))
    path.write_bytes(b"".join(write_lines(forged)))
    result = anabranch("replay", str(path))
    assert result.exit_code == Exit.POOR
    assert "rule: folded 'all_done', published" in result.stdout


def test_a_file_that_is_none_of_ours_is_code_2(tmp_path: Path) -> None:
    """It says which line, and what writes such files."""
    path = tmp_path / "other.jsonl"
    path.write_text("hello\n")
    result = anabranch("replay", str(path))
    assert result.exit_code == Exit.USAGE
    assert "line 1" in result.stderr
