"""The only place where the parts meet: a worker, with all its parts on one log."""

import asyncio
import gc
import secrets
import time
from collections.abc import Awaitable, Callable

import structlog

from agents.crew import assemble
from agents.ports import Crew
from streams.delivery import Sender
from streams.hedges import repeatable
from streams.intake import Intake
from streams.kafka.faust_agents import FaustAgents
from streams.kafka.log import KafkaLog
from streams.kafka.outage import watch_broker
from streams.lanes import JOURNALED_S, Lanes
from streams.orchestrator import Orchestrator
from streams.redaction import redactor
from streams.settings import Settings
from streams.topics import GOALS, SUBTASKS

COMMIT_S, LEAVE_S, END_S, CLOSE_S = 2.0, 6.0, 5.0, 5.0
"""Seconds to commit, to leave the group, for the parts to end, and for tool servers and connections to be
closed: with the lanes' drain less than the 30 s that Kubernetes gives by default, also when no broker
answers any more. The mcp package kills a tool server 4.5 s after it was told to end."""


COLLECT_AFTER = 20_000
"""Objects made and not yet freed between two runs of the garbage collector (Python's default: 700)."""


class WorkerFailed(Exception):
    """A part of the worker ended by itself; start the worker again."""


def new_run() -> str:
    """A name for this life of the process, new at every start."""
    return secrets.token_hex(4)


async def work(settings: Settings, *, stop: asyncio.Event, ready: Callable[[], None] = lambda: None) -> None:
    """Run a worker until *stop* is set: intake, orchestrator and lanes of the partitions it is given.

    Args:
        ready: Called once the parts run.

    Raises:
        WorkerFailed: a part ended by itself, with the reason.
        LogUnavailable: no broker could be reached at the start.
    """
    crew = await assemble(settings.configuration)
    try:
        async with KafkaLog(settings) as log:
            await run_parts(settings, log, crew, stop=stop, ready=ready)
    finally:
        await within(CLOSE_S, crew.close())


async def run_parts(
    settings: Settings, log: KafkaLog, crew: Crew, *, stop: asyncio.Event, ready: Callable[[], None]
) -> None:
    """The parts, side by side, until *stop* is set or one of them ends."""
    run = new_run()
    logger = structlog.get_logger().bind(run=run)
    orchestrator = Orchestrator(log, settings, may_repeat=repeatable(crew.tools))
    sender = Sender(log.producer, log.outage.suspect)
    lanes = Lanes(log, sender, settings, crew, run=run, monotonic=time.monotonic)
    intake = Intake(
        sender,
        lanes=settings.lanes,
        run=run,
        redactor=redactor(settings.secrets),
        configured=settings.configuration,
    )
    agents = FaustAgents(settings, {GOALS: intake.agent, SUBTASKS: lanes.lane}, {SUBTASKS: lanes})
    parts = {
        asyncio.create_task(orchestrator.run(), name="orchestrator"),
        asyncio.create_task(lanes.watch(), name="watchdog"),
        asyncio.create_task(agents.run(), name="agents"),
        asyncio.create_task(watch_broker(log), name="broker watch"),
    }
    stopped = asyncio.create_task(stop.wait(), name="stop")
    logger.info("worker_started", brokers=settings.brokers, prefix=settings.prefix, lanes=settings.lanes)
    quieten_collector()
    ready()
    try:
        done, _ = await asyncio.wait({*parts, stopped}, return_when=asyncio.FIRST_COMPLETED)
        for part in done - {stopped}:
            raise WorkerFailed(f"{part.get_name()} ended: {part.exception()!r}") from part.exception()
    finally:
        stopped.cancel()
        await within(settings.drain_s + JOURNALED_S + 1, lanes.drain())
        await within(COMMIT_S, agents.commit())
        await within(LEAVE_S, agents.stop())
        for part in parts:
            part.cancel()
        await asyncio.wait(parts, timeout=END_S)
        logger.info("worker_stopped")


def quieten_collector() -> None:
    """Let the garbage collector leave alone what lives as long as the process, and come less often.

    A busy worker makes thousands of short-lived objects a second that are no garbage in cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 20, 50)


async def within(seconds: float, step: Awaitable[None]) -> None:
    """A step of the way down: it must not keep the others from theirs."""
    try:
        async with asyncio.timeout(seconds):
            await step
    except Exception as error:  # noqa: BLE001 - whatever it is, the next step matters more
        structlog.get_logger().warning("stopping_hampered", error=repr(error))
