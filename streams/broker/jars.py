"""The files of the Kafka distribution: which they are, and how they get here."""

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from streams.broker.failures import BrokerFailed

_ATTEMPTS: Final = 3
_TIMEOUT_S: Final = 30
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One file of the distribution, by its Maven coordinate and content."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def filename(self) -> str:
        """Its file name, as in any Maven repository."""
        return f"{self.artifact}-{self.version}.jar"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """What ``kafka.lock`` says.

    Attributes:
        version: Kafka's own.
        jars: All of the class path.
    """

    version: str
    jars: tuple[Jar, ...]


def read_lock() -> Lock:
    """The lock that comes with this package.

    The files are locked, not resolved: reading 80 project descriptions one by one takes 10 s, and
    a repository's checksums vouch only for the way here, ours for the content.
    """
    jars = []
    for line in files(__package__).joinpath("kafka.lock").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            sha256, coordinate = line.split()
            group, artifact, version = coordinate.split(":")
            jars.append(Jar(group=group, artifact=artifact, version=version, sha256=sha256))
    kafka = next(jar.version for jar in jars if jar.artifact == "kafka-clients")
    return Lock(version=kafka, jars=tuple(jars))


def missing(jars: Sequence[Jar], directory: Path) -> tuple[Jar, ...]:
    """Those of *jars* that are not in *directory* with the right content."""

    def is_right(jar: Jar) -> bool:
        path = directory / jar.filename
        return path.exists() and _sha256(path) == jar.sha256

    return tuple(jar for jar in jars if not is_right(jar))


def download(jars: Sequence[Jar], directory: Path, *, source: str | None = None) -> None:
    """Fetch *jars* into *directory*; a file there is always whole and right.

    Args:
        source: The Maven repository's address; None means Maven Central.

    Raises:
        BrokerFailed: one cannot be had.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with _repository(directory) as repository, ThreadPoolExecutor(_AT_ONCE, "kafka-jars") as pool:
        fetched = [pool.submit(_fetch, jar, repository, directory, source) for jar in jars]
        try:
            for jar in fetched:
                jar.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _repository(directory: Path) -> Iterator[Path]:
    """A Maven repository for the time of a download; the one in the user's home is left alone."""
    repository = directory / "download"
    shutil.rmtree(repository, ignore_errors=True)  # an interrupted one may hold half a file
    try:
        yield repository
    finally:
        shutil.rmtree(repository, ignore_errors=True)


def _fetch(jar: Jar, repository: Path, directory: Path, source: str | None) -> None:
    try:
        import requests  # noqa: PLC0415 - what jgo raises; both come with the extra `broker`
        from jgo.maven import MavenContext  # noqa: PLC0415 - half a second, and needed once
    except ImportError as error:
        raise BrokerFailed("Kafka cannot be downloaded: pip install 'anabranch[broker]'.") from error
    remotes = {"source": source} if source else None
    context = MavenContext(repo_cache=repository, remote_repos=remotes, timeout=_TIMEOUT_S)
    artifact = context.project(jar.group, jar.artifact).at_version(jar.version).artifact()
    reason: Exception | None = None
    for _ in range(_ATTEMPTS):
        try:
            path = Path(artifact.resolve())
        except (requests.RequestException, OSError, RuntimeError) as error:
            reason = error
            if artifact.cached_path is not None:
                artifact.cached_path.unlink(missing_ok=True)  # half a file would pass for a whole one
            continue
        if (found := _sha256(path)) == jar.sha256:
            path.replace(directory / jar.filename)
            return
        reason = ValueError(f"its SHA-256 is {found}, not {jar.sha256}")
        path.unlink()
    raise BrokerFailed(
        f"Kafka's {jar.group}:{jar.artifact}:{jar.version} cannot be downloaded: {reason}. Is the Maven "
        f"repository reachable? Behind a proxy set HTTPS_PROXY, and REQUESTS_CA_BUNDLE where it has "
        f"certificates of its own; or name another cluster with ANABRANCH_BROKERS."
    ) from reason


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
