"""Signals: programs as users start them."""

import signal
import subprocess
import sys

import orjson
import pytest

MODEL = "from streams.cli import main; main()"
STUBBORN = """
import asyncio
from streams.cli.exits import run
from streams.cli.stopping import stopped_by_signal

async def work():
    stop = stopped_by_signal()
    print("ready", flush=True)
    await stop.wait()
    print("asked", flush=True)
    await asyncio.sleep(600)

run(work(), uvloop=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_model_in_order(number: signal.Signals) -> None:
    """It says where it listens, and ends with code 0."""
    command = [sys.executable, "-c", MODEL, "model", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout is not None
            assert orjson.loads(program.stdout.readline())["url"].startswith("http://127.0.0.1:")
            program.send_signal(number)
            assert program.wait(60) == 0
        finally:
            program.kill()


def test_a_second_signal_ends_at_once() -> None:
    """Whatever still runs."""
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout is not None
            for word in (b"ready\n", b"asked\n"):
                assert program.stdout.readline() == word
                program.send_signal(signal.SIGTERM)
            assert program.wait(60) == -signal.SIGTERM
        finally:
            program.kill()
