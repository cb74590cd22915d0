"""The Kafka distribution's files: only whole and right ones ever get where the broker looks."""

import hashlib
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streams.broker import BrokerFailed
from streams.broker.jars import Jar, download, missing, read_lock

CONTENT = b"a jar, as far as anyone here can tell" * 100
GOOD = Jar(group="org.example", artifact="thing", version="1.0", sha256=hashlib.sha256(CONTENT).hexdigest())


@contextmanager
def repository(*replies: bytes | None) -> Iterator[tuple[str, list[str]]]:
    """A Maven repository that gives these replies in turn, None for half of the promised bytes.

    Yields its address and the paths asked for; checksum files are not there.
    """
    asked: list[str] = []
    left = list(replies)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.endswith(".sha1"):
                self.send_error(404)
                return
            asked.append(self.path)
            reply = left.pop(0)
            body = CONTENT if reply is None else reply
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if reply is None else body)

        def log_message(self, *args: object) -> None:
            """Nothing to say."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def test_the_lock_names_a_whole_kafka() -> None:
    """Each jar once, each with a digest; the logging that shows errors among them."""
    lock = read_lock()
    names = [jar.filename for jar in lock.jars]
    assert len(set(names)) == len(names)
    assert all(len(jar.sha256) == 64 for jar in lock.jars)
    assert {f"kafka_2.13-{lock.version}.jar", f"kafka-clients-{lock.version}.jar"} <= set(names)
    assert any(name.startswith("slf4j-simple-") for name in names)


def test_a_jar_comes_from_its_place_in_the_repository(tmp_path: Path) -> None:
    """And is found there afterwards."""
    with repository(CONTENT) as (source, asked):
        download([GOOD], tmp_path, source=source)
    assert asked == ["/org/example/thing/1.0/thing-1.0.jar"]
    assert [path.name for path in tmp_path.iterdir()] == ["thing-1.0.jar"]
    assert missing([GOOD], tmp_path) == ()


def test_a_damaged_jar_counts_as_missing(tmp_path: Path) -> None:
    """A power cut in the middle of an older installation, for example."""
    (tmp_path / GOOD.filename).write_bytes(CONTENT[:-1])
    assert missing([GOOD], tmp_path) == (GOOD,)


@pytest.mark.parametrize("first", [None, b"a sign-in page of the hotel's network"])
def test_a_bad_download_is_made_again(tmp_path: Path, first: bytes | None) -> None:
    """Half a file, or something else altogether."""
    with repository(first, CONTENT) as (source, asked):
        download([GOOD], tmp_path, source=source)
    assert len(asked) == 2
    assert missing([GOOD], tmp_path) == ()


def test_what_stays_bad_is_refused_and_left_nowhere(tmp_path: Path) -> None:
    """Another content under the same name never reaches the class path."""
    with repository(b"evil", b"evil", b"evil") as (source, _), pytest.raises(BrokerFailed, match="SHA-256"):
        download([GOOD], tmp_path, source=source)
    assert list(tmp_path.iterdir()) == []


def test_an_unreachable_repository_says_what_to_do(tmp_path: Path) -> None:
    """Nothing listens on port 1."""
    with pytest.raises(BrokerFailed, match=r"thing:1\.0 cannot be downloaded.*HTTPS_PROXY"):
        download([GOOD], tmp_path, source="http://127.0.0.1:1")
