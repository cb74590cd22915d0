"""What all tests share: deterministic properties, one real Kafka a run, and a system of its own a test.

A Kafka that cannot be had fails the tests that need it; nothing is skipped.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
import pytest_asyncio
from hypothesis import configuration
from hypothesis import settings as hypothesis_settings
from hypothesis.database import DirectoryBasedExampleDatabase

from streams import broker
from streams.kafka import admin
from streams.settings import Settings

HOME = Path(__file__).parent.parent / ".anabranch"

configuration.set_hypothesis_home_dir(HOME / "hypothesis")

# A run is the same on every machine. `pytest --hypothesis-profile=search` looks further.
hypothesis_settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
hypothesis_settings.register_profile(
    "search",
    deadline=None,
    max_examples=2_000,
    database=DirectoryBasedExampleDatabase(HOME / "hypothesis" / "examples"),
)
hypothesis_settings.load_profile("ci")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests on Kafka run one after another, in one process with one broker (``--dist loadgroup``)."""
    if {"kafka_servers", "own_kafka"}.intersection(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.xdist_group("kafka"))


@pytest.fixture(scope="session")
def kafka_home() -> Path:
    """Where Kafka is installed for the tests."""
    return HOME


@pytest.fixture(scope="session")
def kafka_servers(kafka_home: Path) -> Iterator[str]:
    """Bootstrap servers of a real Kafka, the same for the whole run. Never stop it."""
    started = asyncio.run(broker.start(kafka_home))
    try:
        yield started.servers
    finally:
        asyncio.run(started.stop())


class NewSystem(Protocol):
    """Makes the topics of a system that no other test sees."""

    def __call__(self, **settings: Any) -> Awaitable[Settings]:
        """Settings that differ from the defaults; the prefix is the test's own."""


@pytest_asyncio.fixture
async def new_system(kafka_servers: str) -> AsyncIterator[NewSystem]:
    """Systems on the real Kafka, each with topics of its own."""
    made: list[Settings] = []

    async def make(**settings: Any) -> Settings:
        own = Settings(brokers=kafka_servers, **{"prefix": f"test-{uuid.uuid4().hex[:12]}.", **settings})
        made.append(own)
        await admin.create(own)
        return own

    yield make
    for own in made:
        await admin.delete(own)


@pytest_asyncio.fixture
async def system(new_system: NewSystem) -> Settings:
    """A system on the real Kafka with default settings."""
    return await new_system()
