"""All that answering goals needs, started in order, and ended whatever happens: nothing stays behind."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agents.simulator import MODEL, Behaviour
from agents.simulator import start as start_simulator
from streams import broker
from streams.access import Access
from streams.demo.worker import Worker, start_worker
from streams.kafka import admin
from streams.log import LogUnavailable
from streams.settings import Settings

DELETE_S: Final = 5.0
"""Seconds that deleting the topics on somebody else's cluster may take at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A running system.

    Attributes:
        settings: Where it is, and which model it uses.
    """

    settings: Settings
    worker: Worker


@asynccontextmanager
async def stage(
    settings: Settings,
    *,
    home: Path,
    own_broker: bool,
    simulated: Behaviour | None,
    say: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[Stage]:
    """A system of its own for one run: broker, topics, model endpoint, worker.

    Args:
        settings: As configured; its prefix, and where they are started here, its brokers and its
            endpoint, are replaced.
        home: Where all files are.
        own_broker: Start a broker, instead of using *settings*' own.
        simulated: Start a model endpoint that behaves so; None uses *settings*' own.
        say: Takes a line on each step.

    Raises:
        BrokerFailed, LogUnavailable, TopicRefused: with what to do.
    """
    run = secrets.token_hex(4)
    ours = replace(settings, prefix=f"anabranch-demo-{run}.")
    async with AsyncExitStack() as stack:
        if own_broker:
            say("Starting Apache Kafka; the first time it is downloaded, 45 MB.")
            own = await broker.start(home)
            stack.push_async_callback(own.stop)
            ours = replace(ours, brokers=own.servers, access=Access())
        say(f"Making the topics {ours.prefix}* on Kafka at {ours.brokers}.")
        if not own_broker:
            await stack.enter_async_context(_deleted(ours, say))
        await admin.create(ours)
        if simulated is not None:
            simulator = await start_simulator(simulated)
            stack.push_async_callback(simulator.close)
            ours = replace(ours, base_url=simulator.url, model=MODEL)
            say(f"A simulated model listens on {ours.base_url}; it invents nothing and costs nothing.")
        say("Starting a worker.")
        log = home / "demo" / f"worker-{run}.log"
        stack.push(_unless_failed(log))
        worker = await start_worker(ours, log)
        stack.push_async_callback(worker.stop)
        yield Stage(settings=ours, worker=worker)


def _unless_failed(log: Path) -> Callable[..., None]:
    """Removes the worker's log, which is only of interest where something went wrong."""

    def remove(kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or not issubclass(kind, Exception):
            log.unlink(missing_ok=True)

    return remove


@asynccontextmanager
async def _deleted(settings: Settings, say: Callable[[str], None]) -> AsyncIterator[None]:
    """Deletes the topics at the end; of the groups, empty by then, Kafka rids itself in ten minutes."""
    reached = True
    try:
        yield
    except LogUnavailable:
        reached = False  # it says itself what is wrong with the cluster
        raise
    finally:
        try:
            async with asyncio.timeout(DELETE_S):
                await admin.delete(settings)
        except (LogUnavailable, TimeoutError) as error:
            if reached:
                say(f"The topics {settings.prefix}* may be left at {settings.brokers}: {error}")
