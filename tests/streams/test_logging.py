"""Logging: one JSON object a line, and no secret in any of them."""

import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog

from streams.chaos import disk
from streams.logging import configure
from streams.redaction import HIDDEN


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    """The lines as what they are."""
    return [orjson.loads(line) for line in stream.getvalue().splitlines()]


def test_events_are_json_lines() -> None:
    """Ours and the libraries', with level, time and exception."""
    stream = io.StringIO()
    configure(stream=stream)
    structlog.get_logger().info("lane_owned", lane=3)
    logging.getLogger("somebody").warning("says %s", "hello")
    structlog.get_logger().error("failed", exc_info=ValueError("broken"))
    ours, theirs, failed = lines(stream)
    assert (ours["event"], ours["lane"], ours["level"]) == ("lane_owned", 3, "info")
    assert (theirs["event"], theirs["logger"], theirs["level"]) == ("says hello", "somebody", "warning")
    assert "ValueError: broken" in failed["exception"]
    assert all(line["timestamp"].endswith("Z") for line in (ours, theirs, failed))


@pytest.mark.parametrize("json", [True, False])
def test_secrets_do_not_get_out(json: bool) -> None:
    """Not as a value, in a text, in an exception, nor by way of another logger."""
    secret = 'my"odd key'
    stream = io.StringIO()
    configure(stream=stream, secrets=[secret, ""], json=json)
    log = structlog.get_logger()
    log.info("started", key=secret, nested={"list": [secret]}, url="http://me:hunter2@host/")
    log.error("failed", exc_info=ValueError(f"refused {secret} and sk-abcdefghijklmnop"))
    logging.getLogger("httpx2").warning("Authorization: Bearer %s", "abc.def")
    said = stream.getvalue()
    for hidden in ("odd key", "hunter2", "abcdefghijklmnop", "abc.def"):
        assert hidden not in said
    assert HIDDEN in said


def test_a_log_that_cannot_be_written_fails_nobody(tmp_path: Path) -> None:
    """On a full disk: who logs goes on, and once there is room the log says that it was cut."""
    with (tmp_path / "log").open("w", encoding="utf-8") as stream:
        configure(stream=stream)
        log = structlog.get_logger()
        log.info("before")
        disk.fill()
        try:
            for number in range(1_000):
                log.info("meanwhile", number=number)
                logging.getLogger("somebody").warning("says %s", number)
        finally:
            disk.clear()
        log.info("after")
    said = [orjson.loads(line) for line in (tmp_path / "log").read_bytes().splitlines() if line]
    assert said[0]["event"] == "before"
    assert [each["event"] for each in said[-2:]] == ["log_cut", "after"]
    assert "File too large" in said[-2]["reason"]
    assert len(said) < 1_000
