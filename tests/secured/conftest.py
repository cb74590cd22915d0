"""One Kafka with users, passwords, certificates and ACLs for all tests here."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.acceptance.conftest import programs
from tests.secured.kafka import Secured, start
from tests.secured.token_endpoint import TokenEndpoint, token_endpoint

__all__ = ["programs"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """They run one after another, in one process with one broker (``--dist loadgroup``)."""
    if "secured" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.xdist_group("secured"))


@pytest.fixture(scope="session")
def secured(kafka_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A running Kafka; nobody stops it."""
    running = asyncio.run(start(kafka_home, tmp_path_factory.mktemp("secured")))
    try:
        yield running
    finally:
        asyncio.run(_stop(running))


async def _stop(running: Secured) -> None:
    await running.stop()


@pytest_asyncio.fixture
async def tokens() -> AsyncIterator[TokenEndpoint]:
    """An endpoint that gives tokens."""
    async with token_endpoint() as endpoint:
        yield endpoint
