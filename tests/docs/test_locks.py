"""The locks pin every package by its hashes for every platform, and CI looks them up."""

import importlib.util
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
LOCKS = (
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-tools.txt",
    "infra/servers/requirements.txt",
)
SHA256 = re.compile(r"--hash=sha256:[0-9a-f]{64}")
HASH = "    --hash=sha256:" + 64 * "0"

VULNERABILITY = {
    "id": "PYSEC-2026-1",
    "aliases": ["CVE-2026-1"],
    "summary": "",
    "affected": [
        {
            "package": {"name": "leaky", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.0"}]}],
            "versions": ["1.0"],
        }
    ],
}


def entries(lock: str) -> dict[str, str]:
    """Name and version, and all that belongs to it, of each entry of a lock."""
    found: dict[str, str] = {}
    for entry in re.split(r"^(?=[^\s#])", (ROOT / lock).read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        pinned = re.match(r"([a-z0-9-]+(?:\[[a-z,]+\])?==[^\s;\\]+)", entry)
        assert pinned is not None, entry
        found[pinned[1]] = entry
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_is_pinned_by_hashes(lock: str) -> None:
    """And by nothing that says where it comes from: that is each machine's own matter."""
    for name, entry in entries(lock).items():
        assert SHA256.search(entry), name
        assert "://" not in entry, name
        assert " @ " not in entry, name
        assert "--index" not in entry, name


def test_development_uses_what_users_use() -> None:
    """The same versions, and more beside."""
    assert entries("requirements.txt").keys() <= entries("requirements-dev.txt").keys()


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    """The program that CI runs."""
    spec = importlib.util.spec_from_file_location("audit", ROOT / "infra" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def osv(answer: Callable[[str], dict[str, Any]]) -> Iterator[str]:
    """An advisory service that speaks as OSV does; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(answer(asked["package"]["name"])).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_vulnerable_package_fails_the_audit(
    audit: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named, with its vulnerability and where that is fixed."""
    lock = tmp_path / "lock.txt"
    lock.write_text(f"# a lock\nfine==1.0 \\\n{HASH}\nleaky==1.0 \\\n{HASH} \\\n{HASH}\n", encoding="utf-8")
    with osv(lambda name: {"vulns": [VULNERABILITY]} if name == "leaky" else {}) as url:
        assert audit.main([str(lock), "--osv-url", url]) == 1
    said = capsys.readouterr().out
    assert re.search(r"leaky 1\.0: .*2026-1.*fixed in 2\.0", said)
    assert "2 of 2 locked packages looked up, 1 with known vulnerabilities." in said


def test_a_service_that_is_not_there_answers_nothing(audit: ModuleType) -> None:
    """Then the next one is asked; without any CI says so, and goes on."""
    nobody = ["--vulnerability-service=osv", "--osv-url=http://127.0.0.1:1/v1/query"]
    assert not audit.answers(ROOT / "requirements-tools.txt", nobody)
