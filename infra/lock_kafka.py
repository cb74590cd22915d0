"""Print ``streams/broker/kafka.lock`` for a version of Kafka: its jars with their SHA-256.

Every jar's SHA-1 is compared with the one that the repository publishes.
"""

import hashlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import requests
from jgo.maven import Artifact, MavenContext

KAFKA = "4.3.0"
SLF4J_SIMPLE = "1.7.36"  # Kafka asks for slf4j-api 1.7 and brings nothing that would print its errors


def artifacts(context: MavenContext) -> Iterator[Artifact]:
    """The class path of a Kafka server, in the resolver's order."""
    # Kafka alone: resolved together with a logging binding, older clients are chosen that do not start.
    kafka = context.create_dependency(f"org.apache.kafka:kafka_2.13:{KAFKA}")
    inputs, transitive = context.resolver.resolve([kafka])
    for dependency in (*inputs, *transitive):
        if dependency is inputs[0] or dependency.scope in {"compile", "runtime"}:
            yield dependency.artifact
    yield context.project("org.slf4j", "slf4j-simple").at_version(SLF4J_SIMPLE).artifact()


def digest(artifact: Artifact) -> str:
    """The SHA-256 of an artifact whose SHA-1 is the published one."""
    content = artifact.resolve().read_bytes()
    address = f"{artifact.context.remote_repos['central']}/{artifact.component.path_prefix.as_posix()}"
    published = requests.get(f"{address}/{artifact.filename}.sha1", timeout=30)
    published.raise_for_status()
    if hashlib.sha1(content, usedforsecurity=False).hexdigest() != published.text.split()[0]:
        sys.exit(f"{artifact} is not what its repository says it is.")
    return hashlib.sha256(content).hexdigest()


with tempfile.TemporaryDirectory() as repository:
    print(f"# Apache Kafka {KAFKA} and all it needs to run as one process, with SHA-256 of each jar.")
    print("# `make lock` writes this file anew; infra/lock_kafka.py says which version.")
    for each in artifacts(MavenContext(repo_cache=Path(repository), timeout=30)):
        print(f"{digest(each)}  {each.groupId}:{each.artifactId}:{each.version}")
