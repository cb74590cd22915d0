"""One worker on the log in memory, with the real agents, and records as they are given to it."""

import asyncio
from collections.abc import Sequence

from agents.simulator.behaviour import Behaviour
from agents.tools.shipped import shipped_tools
from streams.chaos.evidence import Evidence
from streams.chaos.goals import Submission, expected_of
from streams.chaos.simulation.crew import crew
from streams.chaos.simulation.endpoint import MemoryEndpoint
from streams.chaos.simulation.worker import Worker
from streams.memory_log import MemoryCluster
from streams.settings import Settings
from streams.topics import ANSWERS, DEAD_LETTERS, GOALS, JOB_EVENTS, JOBS, SUBTASKS, TRANSCRIPTS

TOPICS = (GOALS, JOB_EVENTS, SUBTASKS, TRANSCRIPTS, JOBS, ANSWERS, DEAD_LETTERS)
URL = "http://127.0.0.1:1/v1"


async def answered(sent: Sequence[Submission]) -> Evidence:
    """What is left once one worker has answered all of them."""
    settings = Settings(lanes=2, concurrency=20)
    cluster = MemoryCluster(dict.fromkeys(TOPICS, settings.lanes))
    endpoint = MemoryEndpoint(Behaviour(), cluster.now_ms, url=URL)
    tools = shipped_tools()
    Worker("worker", cluster, settings, lambda: crew(endpoint, tools), static=False).start()
    outside = cluster.connect("outside")
    stand: list[tuple[Submission, int]] = []
    for each in sent:
        await asyncio.sleep(0.01)
        delivery = await outside.producer.send(
            GOALS, each.value, key=each.key, partition=each.partition, headers=each.headers
        )
        stand.append((each, await delivery))
    await asyncio.sleep(300)
    return Evidence(
        lanes=settings.lanes,
        concurrency=settings.concurrency,
        records={topic: cluster.records(topic) for topic in TOPICS},
        seen=cluster.records(ANSWERS),
        expected=expected_of(stand),
        calls=endpoint.calls(),
    )
