"""The demo as users run it: the audit against the installed metadata, and Ctrl-C in the middle of it."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any, Final

import orjson
import psutil
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.acceptance.conftest import ROOT

RUN_S: Final = 150.0
STOP_S: Final = 30.0

SAID: Final = {
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: ISC License (ISCL)": "ISC",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
    "License :: OSI Approved :: GNU General Public License v2 (GPLv2)": "GPL-2.0-only",
}
"""Classifiers that, where they stand alone, leave no doubt about the licence."""


@pytest.fixture
def clean_variables() -> dict[str, str]:
    """The environment without what whoever runs the tests has configured."""
    kept = {n: value for n, value in os.environ.items() if not n.startswith(("ANABRANCH_", "OPENAI_"))}
    return kept | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1"}


async def demo(stdout: Path, *arguments: str, clean: dict[str, str], **variables: str) -> Process:
    """``anabranch demo`` with these arguments; its progress is to be read."""
    with stdout.open("wb") as output:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "streams.cli", "demo", *arguments),
            stdin=DEVNULL,
            stdout=output,
            stderr=PIPE,
            env=clean | variables,
            cwd=ROOT,
        )


async def until(text: str, process: Process, told: list[str]) -> None:
    """Read what it says on stderr until a line holds *text*."""
    assert process.stderr is not None
    async with asyncio.timeout(RUN_S):
        while text not in (line := (await process.stderr.readline()).decode()):
            assert line, f"it ended before it said {text!r}:\n{''.join(told)}"
            told.append(line)


async def test_the_audit_agrees_with_the_installed_metadata(
    kafka_servers: str, clean_variables: dict[str, str], tmp_path: Path
) -> None:
    """Every package with its version, licence, verdict and needs; one JSON document; no topic left behind."""
    out = tmp_path / "stdout"
    arguments = ("--json", "--latency", "0.05", "--home", str(tmp_path / "home"))
    process = await demo(out, *arguments, clean=clean_variables, ANABRANCH_BROKERS=kafka_servers)
    async with asyncio.timeout(RUN_S):
        _, told = await process.communicate()
    assert process.returncode == 0, told.decode()
    document = orjson.loads(out.read_bytes())
    assert set(document) == {"simulated", "answers", "report"}
    assert document["simulated"] is True
    assert [(a["job"], a["outcome"]) for a in document["answers"]] == [
        ("default/licence-audit", "succeeded"),
        ("default/goal-1", "succeeded"),
        ("default/incident", "succeeded"),
    ]
    check_report(document["report"], document["answers"])
    check_audit(document["answers"][0]["answer"])
    assert not [name for name in await topics(kafka_servers) if name.startswith("anabranch-demo-")]
    assert [path for path in (tmp_path / "home").rglob("*") if path.is_file()] == []


def check_report(report: dict[str, Any], answers: list[dict[str, Any]]) -> None:
    """Its figures are those of the answers."""
    subtasks = sum(len(answer["subtasks"]) for answer in answers)
    assert report["subtasks"] == {
        **dict.fromkeys(("total", "succeeded"), subtasks),
        **dict.fromkeys(("failed", "skipped", "unfinished"), 0),
        "rate": 1.0,
    }
    assert report["simulated"] is True
    for name in ("calls", "tokens_in", "tokens_cached", "tokens_out", "tool_calls"):
        assert report["usage"][name] == sum(answer["usage"][name] for answer in answers) > 0
    assert report["queue"]["count"] == report["run"]["count"] == subtasks
    assert report["critical_path"]["steps"][-1]["task"] == "answer"


def check_audit(answer: str) -> None:
    """Against importlib.metadata, read here by other means than the tools'."""
    rows = table(answer)
    by_name = {canonicalize_name(row["name"]): row for row in rows}
    installed = {canonicalize_name(one.metadata["Name"]): one for one in distributions()}
    assert len(rows) == len(by_name)
    assert set(by_name) == set(installed)
    known = 0
    for name, one in installed.items():
        row = by_name[name]
        assert row["version"] == one.version
        assert re.fullmatch(r"[\d.,]+ (B|kB|MB|GB)", row["size"]) or one.files is None
        if row["requires"][-1:] != "…":
            assert set(row["requires"].split(", ")) - {""} == required(one)
        licence = declared(one)
        if licence is not None and row["verdict"] != "contradictory":
            known += 1
            assert row["spdx"] == licence
            weak = re.search(r"GPL|MPL|EPL|EUPL", licence) is not None
            assert row["verdict"] == ("copyleft" if weak else "permissive") or " OR " in licence
    assert known >= len(rows) * 0.7
    for verdict in ("copyleft", "unknown", "contradictory"):
        named = {canonicalize_name(row["name"]) for row in rows if row["verdict"] == verdict}
        finding = re.search(rf"verdict \*\*{verdict}\*\*, (\d+) of {len(rows)}: (.*)", answer)
        found = set() if finding is None else {canonicalize_name(name) for name in finding[2].split(", ")}
        assert found == named


def table(answer: str) -> list[dict[str, str]]:
    """The rows of the answer's one table."""
    lines = [line for line in answer.splitlines() if line.startswith("|")]
    head, _, *rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    assert head == ["name", "version", "spdx", "verdict", "why", "requires", "size"]
    return [dict(zip(head, row, strict=True)) for row in rows]


def declared(one: Distribution) -> str | None:
    """The licence as an SPDX expression, where the metadata leave no doubt."""
    for field in ("License-Expression", "License"):
        try:
            return str(canonicalize_license_expression(one.metadata[field] or ""))
        except InvalidLicenseExpression:
            continue
    classifiers = [c for c in one.metadata.get_all("Classifier") or [] if c.startswith("License ::")]
    return SAID.get(classifiers[0]) if len(classifiers) == 1 and not one.metadata["License"] else None


def required(one: Distribution) -> set[str]:
    """What it needs here, without extras."""
    needs = [Requirement(line) for line in one.requires or []]
    return {
        canonicalize_name(need.name)
        for need in needs
        if need.marker is None or need.marker.evaluate({"extra": ""})
    }


async def topics(servers: str) -> list[str]:
    """All topics of a cluster."""
    client = AIOKafkaAdminClient(bootstrap_servers=servers)
    await client.start()
    try:
        return list(await client.list_topics())
    finally:
        await client.close()


@pytest.mark.xdist_group("kafka")
async def test_ctrl_c_in_the_middle_leaves_nothing_behind(
    kafka_home: Path, clean_variables: dict[str, str], tmp_path: Path
) -> None:
    """No process, no data, no answer; exit code 130. The broker is the demo's own."""
    out, told = tmp_path / "stdout", list[str]()
    process = await demo(out, "--home", str(kafka_home), "--latency", "1", clean=clean_variables)
    try:
        await until("licence-audit: running", process, told)
        children = psutil.Process(process.pid).children(recursive=True)
        commands = [" ".join(child.cmdline()) for child in children]
        assert [sum(word in command for command in commands) for word in ("kafka.Kafka", " worker ")] == [
            1,
            1,
        ]
        found = (re.search(r"(\S+)/server\.properties", command) for command in commands)
        data = [Path(place[1]) for place in found if place]
        logs = [path for child in children for path in child.open_files() if "/demo/worker-" in path.path]
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(STOP_S):
            _, rest = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 130, rest.decode()
    assert [child for child in children if child.is_running()] == []
    assert len(data) == len({log.path for log in logs}) == 1
    assert not any(place.exists() for place in data)
    assert not any(Path(log.path).exists() for log in logs)
    assert out.read_bytes() == b""
