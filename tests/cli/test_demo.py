"""The demo without its Kafka: goals it reads, what it shows, what it says where something is wrong."""

import asyncio
import io
import re
import sys
from dataclasses import replace
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import orjson
import pytest
from packaging.utils import canonicalize_name
from rich.console import Console

from streams.cli import picture
from streams.cli.demo_view import DemoJobs, show
from streams.cli.exits import Exit
from streams.core.commands import Answer
from streams.core.events import Event, JobSubmitted, Planned, SubTaskStarted, SubTaskSucceeded
from streams.core.goal import Goal, Source
from streams.core.plan import SubTask
from streams.core.values import ANSWER, PLAN, Inline, Json, Usage
from streams.demo.goals import AUDIT_TOOLS, BadGoals, licence_audit, read_goals
from streams.demo.worker import Worker, WorkerDied
from streams.report import report
from streams.wire.goal_writing import write_goal
from tests.cli.conftest import NOWHERE, anabranch

JOB = "default/boats"


def test_the_audit_is_about_every_package_installed_here() -> None:
    """With its version, and with the tools that read its licence."""
    audit = licence_audit()
    packages: Any = audit.options["input"]
    told = {canonicalize_name(one["name"]): one["version"] for one in packages}
    assert told == {canonicalize_name(one.metadata["Name"]): one.version for one in distributions()}
    assert audit.options["tools"] == AUDIT_TOOLS
    assert write_goal(audit.text, **audit.options)[0] == audit.job == "default/licence-audit"


def test_two_goals_come_with_the_package() -> None:
    """Other jobs than the audit."""
    goals = read_goals()
    assert len({goal.job for goal in goals} | {licence_audit().job}) == 3


def test_goals_are_read_line_by_line(tmp_path: Path) -> None:
    """Strings and objects; who has no id is named after its line."""
    file = tmp_path / "goals.jsonl"
    file.write_text(
        '"Compare a and b"\n\n{"goal": "Sum", "input": [1, 2], "deadline_s": 60, "model": null}\n'
        '{"goal": "Name", "id": "own", "tenant": "acme"}\n'
    )
    assert [(goal.job, goal.text, goal.options) for goal in read_goals(file)] == [
        ("default/goal-1", "Compare a and b", {"id": "goal-1"}),
        ("default/goal-3", "Sum", {"id": "goal-3", "input": [1, 2], "deadline_s": 60}),
        ("acme/own", "Name", {"id": "own", "tenant": "acme"}),
    ]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("plain words", "line 1: no JSON"),
        ('"fine"\n[1]', "line 2: neither a JSON string nor a JSON object"),
        ('{"goal": "x", "dedline_s": 3}', "line 1: `dedline_s` is unknown, did you mean `deadline_s`?"),
        ('{"id": "a"}', "line 1: `goal`: is empty"),
        ('{"goal": 7}', "line 1: `goal`: should be a valid string"),
        ('"a"\n{"goal": "b", "id": "goal-1"}', "line 2: its id is that of line 1"),
        ("1\n2\n3\n4\n5\n6\n7", "and 2 more"),
        ("\n \n", "has no goals"),
    ],
)
def test_bad_lines_are_told_with_their_numbers(tmp_path: Path, lines: str, told: str) -> None:
    """All of them, the first five in full."""
    file = tmp_path / "goals.jsonl"
    file.write_text(lines)
    with pytest.raises(BadGoals) as refused:
        read_goals(file)
    assert told in str(refused.value)
    assert str(file) in str(refused.value)


def test_demo_explains_itself() -> None:
    """What it does, with which model, and where."""
    said = " ".join(anabranch("demo", "--help").stdout.split())
    assert all(
        word in said for word in ("--goals", "--json", "--latency", "OPENAI_API_KEY", "ANABRANCH_BROKERS")
    )


def test_what_is_wrong_is_said_before_anything_starts(tmp_path: Path, endpoint: str) -> None:
    """Goals, latency, endpoint; each with what to do."""
    bad = tmp_path / "goals.jsonl"
    bad.write_text("[]")
    taken = tmp_path / "taken.jsonl"
    taken.write_text('{"goal": "x", "id": "licence-audit"}')
    for arguments, environment, code, told in (
        (["--goals", str(bad)], {}, Exit.USAGE, "line 1: neither"),
        (["--goals", str(taken)], {}, Exit.USAGE, "give it another"),
        (["--goals", str(tmp_path / "none")], {}, Exit.USAGE, "cannot be read"),
        (["--latency", "fast"], {}, Exit.USAGE, "'fast' is no number"),
        ([], {"OPENAI_BASE_URL": f"http://{NOWHERE}/v1"}, Exit.POOR, "anabranch model"),
        (
            [],
            {"OPENAI_BASE_URL": endpoint, "OPENAI_API_KEY": "the-wrong-key"},
            Exit.POOR,
            "set OPENAI_API_KEY",
        ),
    ):
        result = anabranch("demo", "--home", str(tmp_path / "home"), *arguments, **environment)
        assert (result.exit_code, told in result.stderr) == (code, True), result.stderr
        assert result.stdout == ""
    assert not (tmp_path / "home").exists()


def test_a_cluster_that_is_away_is_told_once(tmp_path: Path) -> None:
    """And no word of topics that may be left there."""
    result = anabranch("demo", "--home", str(tmp_path), "--json", ANABRANCH_BROKERS=NOWHERE)
    assert result.exit_code == Exit.UNREACHABLE
    assert result.stderr.count("does not answer") == 1
    assert "may be left" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("program", "how"), [("exit(3)", "exit code 3"), ("import os; os.kill(os.getpid(), 9)", "by SIGKILL")]
)
async def test_a_worker_that_ends_is_told_with_the_end_of_its_log(
    tmp_path: Path, program: str, how: str
) -> None:
    """And with its exit code, or the signal."""
    log = tmp_path / "worker.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", f"print('what went wrong', flush=True); {program}", stdout=output
        )
    worker = Worker(process=process, log=log)
    with pytest.raises(WorkerDied, match=rf"(?s){how}.*{log}.*what went wrong"):
        await worker.died()
    await worker.stop()  # it has ended: nothing to do
    log.write_bytes(b"")
    assert worker.told() == f" Its log, {log}, is empty."


def _happened() -> list[Event]:
    source = Source(topic="goals", partition=0, offset=0)
    plan = tuple(SubTask(id=f"t{n}", goal="Look", kind="analyze") for n in range(2))
    usage = Usage(calls=1, tokens_in=1_000, tokens_out=234)
    events: list[Event] = [
        JobSubmitted(job=JOB, goal=Goal(text=Inline(value="Count the [boats]")), source=source, lanes=8),
        SubTaskStarted(job=JOB, task=PLAN, attempt=1, run="r"),
        Planned(job=JOB, task=PLAN, attempt=1, plan=plan, usage=usage),
    ]
    for task in ("t0", "t1", ANSWER):
        events += [
            SubTaskStarted(job=JOB, task=task, attempt=1, run="r"),
            SubTaskSucceeded(job=JOB, task=task, attempt=1, result=Inline(value="two"), usage=usage),
        ]
    return [replace(event, at=1_000 * n, offset=n) for n, event in enumerate(events)]


def _console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=120, highlight=False)


def _said(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def test_without_a_terminal_progress_comes_in_lines() -> None:
    """One for each phase, not for each event; what is simulated says so."""
    console = _console(terminal=False)
    live = DemoJobs([JOB], console, simulated=True)
    with live:
        for event in _happened():
            live.feed(event)
        live.feed(replace(_happened()[0], job="default/another"))
    assert live.finished.is_set()
    assert _said(console).splitlines() == [
        f"{JOB}: planning",
        f"{JOB}: running, 0 of 2 sub-tasks finished, 0 running, 0 failed, 1,234 tokens, simulated",
        f"{JOB}: answering, 2 of 2 sub-tasks finished, 0 running, 0 failed, 3,702 tokens, simulated",
        f"{JOB}: succeeded, 2 of 2 sub-tasks finished, 0 running, 0 failed, 4,936 tokens, simulated",
    ]


async def test_on_a_terminal_the_last_picture_stays() -> None:
    """With money where it is real."""
    console = _console(terminal=True)
    live = DemoJobs([JOB], console, simulated=False)
    with live:
        for event in _happened():
            live.feed(event)
    said = _said(console)
    assert "Count the" in said
    assert "4,936" in said
    assert "0.0000" in said
    assert "succeeded" in said


def _answer(value: Json, **fields: object) -> Answer:
    answer = Answer(
        job=JOB,
        id="boats",
        tenant="default",
        outcome="succeeded",
        rule="all_done",
        answer=Inline(value=value),
    )
    return replace(answer, **fields)  # type: ignore[arg-type]  # as given


def test_answers_stay_as_they_are_where_they_go_to_a_program() -> None:
    """Markdown is rendered on a terminal only; nothing in it is taken for the console's own markup."""
    made = report({JOB: _happened()}, simulated=True)
    answers = [_answer("# Boats\n\n| a |\n| --- |\n| [red]1[/red] |"), _answer({"boats": 2}), _answer(None)]
    plain, terminal = _console(terminal=False), _console(terminal=True)
    show(plain, [*answers, _answer(None, outcome="failed", reason="no [time]")], made)
    assert "| [red]1[/red] |\n" in _said(plain)
    assert '"boats": 2' in _said(plain)
    assert "failed\nno [time]" in _said(plain)
    assert "Run report" in _said(plain)
    show(terminal, answers, made)
    assert "| --- |" not in _said(terminal)
    assert "[red]1[/red]" in _said(terminal)


async def test_the_picture_shows_the_middle_a_part_of_the_answer_and_the_report(tmp_path: Path) -> None:
    """As an SVG that makes nobody fetch anything."""
    live = DemoJobs([JOB], _console(terminal=False), simulated=True)
    for event in _happened():
        live.feed(event)
    rows = "\n".join(f"| boat {n} |" for n in range(100))
    file = tmp_path / "demo.svg"
    picture.save(file, live, [_answer(f"| name |\n| --- |\n{rows}\n")], report(live.events, simulated=True))
    drawn = file.read_text().replace("&#160;", " ")
    assert "1/2" in drawn  # half of the sub-tasks
    assert "boat 12" in drawn
    assert "boat 13" not in drawn
    assert "87 more rows" in drawn
    assert "critical path" in drawn
    assert re.findall(r"url\([^#]", drawn) == []


def test_the_goals_that_come_along_are_good_records() -> None:
    """Lines that can be sent to the topic as they are."""
    import streams.demo  # noqa: PLC0415 - only its place matters

    lines = (Path(streams.demo.__file__).parent / "goals.jsonl").read_bytes().splitlines()
    assert [type(orjson.loads(line)) for line in lines] == [str, dict]
