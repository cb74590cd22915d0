"""Readers of answers: what somebody else put on the topic is no answer, and keeps nobody from theirs."""

import asyncio

import pytest

from streams.client import Swarm
from streams.core.commands import Answer
from streams.memory_log.virtual_time import run
from streams.settings import Settings
from streams.topics import ANSWERS, partition_of
from streams.wire.answers import write_answer
from tests.hostile.large import Large, large
from tests.streams.swarm_in_memory import SwarmInMemory

JUNK = [
    b"",
    b"\xff",
    b"{}",
    b'{"v":2,"type":"Answer"}',
    b'{"v":1,"type":"Answer","job":"default/g"}',
    write_answer(Answer(job="default/other", id="g", tenant="default", outcome="failed", rule="broken"))[0],
    None,
]


@pytest.mark.parametrize("late", [False, True], ids=["while waiting", "looking back"])
def test_junk_under_a_jobs_key_is_no_answer_to_it(late: bool) -> None:
    """Before the answer, behind it, and where it is looked for afterwards."""

    async def story() -> None:
        system = SwarmInMemory(script=Large(work=large), settings=Settings(lanes=2))
        log = system.worker()
        partition = system.cluster.partition(ANSWERS, partition_of("default/g", 2))

        def junk() -> None:
            for value in JUNK:
                partition.append(b"default/g", value, (), system.cluster.now_ms())

        async with Swarm(log=log) as swarm:
            junk()
            if late:
                await system.submit({"id": "g", "goal": "2"})
                await asyncio.sleep(60)
                junk()
                answer = await swarm.wait("default/g")
            else:
                waiting = asyncio.create_task(swarm.answer("2", id="g"))
                await asyncio.sleep(0.05)
                junk()
                answer = await waiting
            assert answer.outcome == "succeeded"
            published = await swarm.published()
            assert [each.job for each in published] == ["default/g"]

    run(story())
