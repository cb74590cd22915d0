"""Records of every past version stay readable for ever, and those of later ones are told apart."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest

from streams.core.events import JobBroken
from streams.core.states import Finished
from streams.log import Record
from streams.wire.envelope import VERSION, NewerVersion, Unreadable
from streams.wire.events import write_event
from streams.wire.rows import read_row, write_row
from tests.wire.row_samples import ROWS
from tests.wire.test_records import KINDS, READ, record

GOLDEN = Path(__file__).parent / "golden"
MANIFEST = GOLDEN / "manifest"
FILES = sorted(GOLDEN.rglob("*.json"))


def test_no_golden_file_is_changed_or_removed() -> None:
    """Logs hold such records. A new file gets a line: ``sha256sum``, and its path below this folder."""
    digests = {path: digest for digest, path in (line.split() for line in MANIFEST.read_text().splitlines())}
    there = {str(file.relative_to(GOLDEN)): sha256(file.read_bytes()).hexdigest() for file in FILES}
    assert there == digests


def test_there_is_a_folder_for_every_version() -> None:
    """With each kind of record that the version has, rows among them."""
    assert {folder.name for folder in GOLDEN.iterdir() if folder.is_dir()} == {
        f"v{version}" for version in range(1, VERSION + 1)
    }
    newest = GOLDEN / f"v{VERSION}"
    kinds = {cls.__name__ for kinds in KINDS.values() for cls in kinds.types}
    assert kinds <= {file.name.partition(".")[0].partition("-")[0] for file in newest.glob("*.json")}


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(GOLDEN)) for file in FILES])
def test_a_golden_file_reads(file: Path) -> None:
    """By whatever reads its kind today."""
    value = file.read_bytes()
    if file.parent.name == "rows":
        read_row(record(value))
        return
    kind = orjson.loads(value)["type"]
    (topic,) = [name for name, kinds in KINDS.items() if kind in {cls.__name__ for cls in kinds.types}]
    READ[topic](record(value))


@pytest.mark.parametrize("name", ROWS)
def test_a_row_reads_as_what_it_was(name: str) -> None:
    assert read_row(record((GOLDEN / "v1" / "rows" / f"{name}.json").read_bytes())) == ROWS[name]


@pytest.mark.parametrize("topic", [*READ, "jobs"])
@pytest.mark.parametrize("version", [2, 99, 2**63])
def test_a_later_version_is_named(topic: str, version: int) -> None:
    """With the version found and the one known, and what to do."""
    read: Callable[[Record], Any] = READ.get(topic, read_row)
    kind = "Finished" if topic == "jobs" else KINDS[topic].types[0].__name__
    with pytest.raises(
        NewerVersion, match=f"version {version} is newer than {VERSION}.*: upgrade it"
    ) as told:
        read(record(orjson.dumps({"v": version, "type": kind, "new": {}})))
    assert told.value.kind == (kind if topic != "jobs" else "Finished")


@pytest.mark.parametrize("version", [0, -1, 1.0, "1", True, None, [], {}])
def test_a_version_that_is_none_is_no_later_one(version: Any) -> None:
    event = orjson.loads(write_event(JobBroken(job="a/b", reason="x"))) | {"v": version}
    marker = orjson.loads(write_row(Finished(digest="", outcome="failed", offset=1, at=1))) | {"v": version}
    for read, written in ((READ["job-events"], event), (read_row, marker)):
        with pytest.raises(Unreadable) as told:
            read(record(orjson.dumps(written)))
        assert not isinstance(told.value, NewerVersion)
