"""What tests of the command line share: a clean environment, and a simulated endpoint to ask."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
import structlog
from typer.testing import CliRunner, Result

from agents.simulator import Behaviour, start
from streams.cli import app
from streams.cli.environment import CONFIG, VARIABLES

KEY = "the-right-key-of-this-endpoint"
NOWHERE = "127.0.0.1:1"
"""Where nothing listens."""


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of whoever runs the tests, and no broker that happens to be there."""
    for variable in (CONFIG, *VARIABLES.values()):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("ANABRANCH_BROKERS", NOWHERE)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Commands configure the logging of their process, which here is that of the tests."""
    root, kafka = logging.getLogger(), logging.getLogger("aiokafka")
    before = root.handlers[:], root.level, kafka.level
    yield
    root.handlers[:], level, kafka_level = before
    root.setLevel(level)
    kafka.setLevel(kafka_level)
    structlog.reset_defaults()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The address of a simulated endpoint that takes one key."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        simulator = asyncio.run_coroutine_threadsafe(start(Behaviour(keys=(KEY,))), loop).result(30)
        yield simulator.url
        asyncio.run_coroutine_threadsafe(simulator.close(), loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def anabranch(*args: str, stdin: str = "", **environment: str) -> Result:
    """Run a command as a shell would."""
    return CliRunner().invoke(app, list(args), input=stdin, env=environment)


def printed(result: Result) -> list[dict[str, Any]]:
    """The JSON lines of a command's stdout."""
    return [orjson.loads(line) for line in result.stdout.splitlines()]
