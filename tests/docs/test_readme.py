"""The README's commands and its Python example, run as one session in the order of the page."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from agents.simulator import MODEL
from streams import broker
from tests.docs.pages import README, ROOT, blocks, commands

SESSION_S: Final = 180.0

BASH, MAKE = (shutil.which(name) or name for name in ("bash", "make"))

ELSEWHERE: Final = frozenset(
    {
        "make demo",  # tests/acceptance/test_demo.py runs it, and `test_make_has_both_commands` looks at make
        "make test",  # this is it
        "source .anabranch/venv/bin/activate",  # the tests have an environment of their own
    }
)
"""Commands that are not run here."""


def free_port(ports: range) -> int:
    """A port that nobody listens on."""
    for port in ports:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError(f"no free port in {ports}")


def session(left_out: frozenset[str] = frozenset()) -> list[str]:
    """Every command of the page but these, and its example as one."""
    found: list[str] = []
    for language, text in blocks(README):
        if language == "console":
            found += [command for command in commands(text) if command not in left_out]
        elif language == "python":
            found.append("python example.py")
    return found


@pytest.fixture(scope="module")
def said(kafka_home: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each command of the session printed, on ports and in a directory of its own."""
    place = tmp_path_factory.mktemp("readme")
    asyncio.run(broker.install(kafka_home))
    (place / ".anabranch").mkdir()
    (place / ".anabranch" / "kafka").symlink_to(kafka_home.absolute() / "kafka")
    kafka, model = free_port(range(24_000, 26_000)), free_port(range(26_000, 28_000))
    ours = {
        "127.0.0.1:9092": f"127.0.0.1:{kafka}",
        "anabranch broker start": f"anabranch broker start --port {kafka}",
        "anabranch model": f"anabranch model --port {model}",
        "http://127.0.0.1:8765/v1": f"http://127.0.0.1:{model}/v1",
        "https://api.moonshot.ai/v1": f"http://127.0.0.1:{model}/v1",  # nobody pays for a test
        "kimi-k2.6": MODEL,
    }

    def in_our_place(text: str) -> str:
        for theirs, our in ours.items():
            assert theirs not in text or our not in text
            text = text.replace(theirs, our)
        return text

    example = next(text for language, text in blocks(README) if language == "python")
    (place / "example.py").write_text(in_our_place(example), encoding="utf-8")
    lines = ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT"]
    for number, command in enumerate(session(ELSEWHERE)):
        lines += [f"exec >{number}.out", in_our_place(command)]
    (place / "session.sh").write_text("\n".join(lines), encoding="utf-8")
    _run(place, kafka)
    return {command: _read(place / f"{number}.out") for number, command in enumerate(session(ELSEWHERE))}


def _run(place: Path, kafka: int) -> None:
    """Run the session; whatever becomes of it, nothing of it runs on."""
    programs = place / "bin"
    programs.mkdir()
    for name, start in (
        ("anabranch", f"{sys.executable} -m streams.cli"),
        ("python", sys.executable),
        *(() if shutil.which("kcat") else (("kcat", f"{sys.executable} {ROOT}/tests/docs/kcat.py"),)),
    ):
        (programs / name).write_text(f'#!/bin/sh\nexec {start} "$@"\n', encoding="utf-8")
        (programs / name).chmod(0o755)
    clean = {n: value for n, value in os.environ.items() if not n.startswith(("ANABRANCH_", "OPENAI_"))}
    clean |= {
        "ANABRANCH_BROKERS": f"127.0.0.1:{kafka}",
        "NO_COLOR": "1",
        "PATH": f"{programs}:{clean['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    with (place / "stderr").open("wb") as told:
        shell = subprocess.Popen(
            [BASH, "session.sh"],
            cwd=place,
            env=clean,
            stdin=subprocess.DEVNULL,
            stderr=told,
            start_new_session=True,
        )
    try:
        code = shell.wait(SESSION_S)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        asyncio.run(broker.stop_in_background(place / ".anabranch"))
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
    if code != 0:
        reached = max((int(file.stem) for file in place.glob("*.out")), default=0)
        both = f"{_read(place / f'{reached}.out')}\n{_read(place / 'stderr')}"
        pytest.fail(f"`{session(ELSEWHERE)[reached]}` ended with {code}:\n{both}")


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


@pytest.mark.xdist_group("kafka")
def test_from_nothing_to_an_answer(said: dict[str, str]) -> None:
    """A broker, topics, a model, a worker: the answer names every package."""
    submitted = next(text for command, text in said.items() if command.startswith("anabranch submit"))
    assert all(f"| {name} |" in submitted for name in ("attrs", "rich", "orjson"))


@pytest.mark.xdist_group("kafka")
def test_doctor_finds_nothing_wrong_with_what_the_page_sets(said: dict[str, str]) -> None:
    """But that `...` is no key."""
    told = said["anabranch doctor"]
    assert "problem" not in told
    assert "fine    topics" in told
    assert "placeholder" in told


@pytest.mark.xdist_group("kafka")
def test_goals_and_answers_by_kcat(said: dict[str, str]) -> None:
    """What was sent by one line is answered in another."""
    answers = next(text for command, text in said.items() if command.startswith("kcat -C"))
    assert '"id":"order-17"' in answers
    assert '"outcome":"succeeded"' in answers


@pytest.mark.xdist_group("kafka")
def test_the_python_example(said: dict[str, str]) -> None:
    """An answer, then the events of a job, then its answer."""
    told = said["python example.py"]
    assert told.startswith("succeeded ")
    assert "| orjson |" in told
    assert "JobSubmitted\n" in told
    assert "NATS" in told


@pytest.mark.xdist_group("kafka")
def test_replay_from_the_log_and_from_a_file(said: dict[str, str]) -> None:
    """Both lead to the answer that was published."""
    assert "the same answer was published" in said["anabranch replay order-17 --calls"]


@pytest.mark.parametrize(
    ("target", "program", "arguments"),
    [
        ("demo", "/bin/anabranch", ["demo"]),  # the entry point that tests/acceptance/test_demo.py starts
        ("test", "/bin/python", ["-m", "pytest", "-n", "2", "--dist", "loadgroup"]),
    ],
)
def test_make_has_both_commands(target: str, program: str, arguments: list[str]) -> None:
    """What they come to in the end."""
    # A make that runs these tests tells those below it of itself.
    above = {"MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "ARGS"}
    planned = subprocess.run(
        [MAKE, "--dry-run", target],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in above},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    started, *rest = planned.strip().splitlines()[-1].split()
    assert started.endswith(program)
    assert rest == arguments
    assert f"make {target}" in session()
    assert 'anabranch = "streams.cli:main"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
