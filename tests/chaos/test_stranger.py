"""A stranger on a real Kafka: the owner is fenced, takes its identity back, and nothing is lost or added."""

import asyncio
import contextlib

import pytest

from streams.chaos.open_transactions import open_transactions
from streams.chaos.stranger import take_over
from streams.core.events import GoalRejected
from streams.core.goal import Source
from streams.kafka.log import KafkaLog
from streams.orchestrator import Orchestrator
from streams.topics import ANSWERS, JOB_EVENTS, JOBS
from streams.wire.answers import read_answer
from streams.wire.events import write_event
from tests.conftest import NewSystem


@pytest.mark.parametrize("abort", [True, False])
async def test_the_owner_takes_its_identity_back(new_system: NewSystem, abort: bool) -> None:
    """Whether the stranger ends its transaction or leaves it open; what it wrote is seen by nobody."""
    settings = await new_system(lanes=1, heartbeat_s=0.2)
    async with KafkaLog(settings) as log, KafkaLog(settings) as own:
        working = asyncio.create_task(Orchestrator(own, settings).run())
        try:
            async with asyncio.timeout(60), log.follow(ANSWERS, [0], since=0) as coming:
                seen: list[str] = []
                for number in range(3):
                    source = Source(topic="goals", partition=0, offset=number)
                    event = GoalRejected(job=f"default/g{number}", reason="none", source=source)
                    await log.producer.send(
                        JOB_EVENTS, write_event(event), key=event.job.encode(), partition=0
                    )
                    seen += [read_answer(record).id for record in await anext(coming)]
                    if number < 2:
                        assert await take_over(settings, 0, abort=abort)
                        open_now = await open_transactions(settings, within_s=10.0 if abort else 0.0)
                        assert bool(open_now) is not abort, open_now
            assert seen == ["g0", "g1", "g2"]
            keys = {record.key async for batch in log.read(JOBS, 0) for record in batch}
            assert keys == {b"default/g0", b"default/g1", b"default/g2", b"@position"}
            assert await open_transactions(settings, within_s=10.0) == ()
        finally:
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working
