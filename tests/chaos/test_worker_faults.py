"""Workers that strike themselves: killed at a point, with a clock of their own, on a full disk."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agents import simulator
from streams import app
from streams.broker.attached import die_with_parent
from streams.chaos import disk
from streams.chaos.fault_points import POINTS, Moment, told
from streams.topics import ANSWERS, DEAD_LETTERS, JOB_EVENTS, JOBS, SUBTASKS
from tests.acceptance.conftest import ROOT, Programs
from tests.acceptance.running import Running, running
from tests.conftest import NewSystem

APART_S = 600


async def test_a_worker_passes_every_point(new_system: NewSystem) -> None:
    """Before and after; none has lost its place in the code. Aborts are left to the rounds."""
    seen: set[str] = set()
    settings = await new_system(lanes=1)
    stop, thresholds = asyncio.Event(), gc.get_threshold()
    async with running(settings, Programs()) as here:
        ours = replace(settings, base_url=here.endpoint.url, api_key="simulated", model=simulator.MODEL)
        with told(seen.add):
            working = asyncio.create_task(app.work(ours, stop=stop))
            try:
                # What we send ourselves is told as well; no worker sends there.
                for goal in ({"id": "g", "goal": "[[plan 2]]"}, b"\xff", {"id": "g", "goal": "another"}):
                    await here.send(goal)
                await (await here.log.producer.send(SUBTASKS, b"poison", key=b"k", partition=0))
                await here.answers(1)
                await here.see(lambda letters: len(letters) >= 3, DEAD_LETTERS)
            finally:
                stop.set()
                await working
                gc.unfreeze()
                gc.set_threshold(*thresholds)
    ours_too = {"put.goals", "put.subtasks"}
    there = ({*POINTS} | ours_too) - {"abort"}
    assert seen == {f"{point}:{side}" for point in there for side in ("before", "after")}


def test_a_moment_is_written_as_it_is_read() -> None:
    """And what is none says what there is."""
    moment = Moment(point="send.jobs", side="after", count=17)
    assert Moment.parse(str(moment)) == moment
    for text in ("commit", "commit:after", "commit:after:x", "commit:during:1", "nowhere:after:1"):
        with pytest.raises(ValueError, match=r"deliver\.transcripts"):
            Moment.parse(text)


@asynccontextmanager
async def worker(here: Running, log: Path, *faults: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker that strikes itself; what it says goes to a file."""
    variables = {
        "ANABRANCH_BROKERS": here.settings.brokers,
        "ANABRANCH_PREFIX": here.settings.prefix,
        "ANABRANCH_LANES": str(here.settings.lanes),
        "ANABRANCH_WORKER_NAME": "worker-0",  # back without a wait
        "OPENAI_BASE_URL": here.endpoint.url,
        "OPENAI_API_KEY": "simulated",
    }
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "streams.chaos.worker", *faults, "--", "worker", "--json"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=os.environ | variables,
            cwd=ROOT,
            preexec_fn=die_with_parent(),
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_killed_at_a_point_with_clocks_apart_and_on_a_full_disk(
    new_system: NewSystem, tmp_path: Path
) -> None:
    """One dies with its answer not yet committed; another, twenty minutes behind it, gives the only one."""
    settings = await new_system(lanes=1)
    async with running(settings, Programs()) as here:
        began = time.time()
        await here.send({"id": "g", "goal": "[[plan 2]]"})
        first = f"--clock={APART_S}", "--kill-at=send.answers:after:1"
        async with worker(here, tmp_path / "first.log", *first) as process, asyncio.timeout(60):
            assert await process.wait() == -signal.SIGKILL, (tmp_path / "first.log").read_text()
        rows = await here.records(JOBS)
        assert await here.records(ANSWERS) == []
        async with worker(here, tmp_path / "second.log", f"--clock=-{APART_S}", "--disk-full"):
            assert (await here.answers(1))["g"].outcome == "succeeded"
        took = time.time() - began
        ahead = [record.timestamp / 1000 - began for record in rows]
        behind = [record.timestamp / 1000 - began for record in await here.records(ANSWERS)]
        in_time = [record.timestamp / 1000 - began for record in await here.records(JOB_EVENTS)]
        assert APART_S - 1 <= min(ahead) <= max(ahead) <= APART_S + took + 1
        assert -APART_S - 1 <= min(behind) <= max(behind) <= -APART_S + took + 1
        assert -1 <= min(in_time) <= max(in_time) <= took + 1, "the broker's clock is everybody's"
        assert not (tmp_path / "second.log").read_bytes()


def test_a_full_disk_can_be_cleared(tmp_path: Path) -> None:
    """Of a process under way, from outside."""
    program = """
import sys
for line in sys.stdin:
    try:
        with open(sys.argv[1], "a") as file:
            file.write(line)
        print("written", flush=True)
    except OSError as error:
        print(type(error).__name__, flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "file")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        said = []
        for change in (None, disk.fill, disk.clear):
            if change is not None:
                change(writer.pid)
            writer.stdin.write("x\n")
            writer.stdin.flush()
            said.append(writer.stdout.readline())
        writer.stdin.close()
    assert said == ["written\n", "OSError\n", "written\n"]
    assert (tmp_path / "file").read_text() == "x\nx\n"
