"""The same scenarios on the log in memory and on a real Kafka end the same."""

import asyncio
from pathlib import Path

from streams.chaos.evidence import Evidence
from streams.chaos.scenarios import SHARED
from streams.chaos.simulation.living import answers_to, live
from streams.chaos.simulation.series import silence
from streams.chaos.staging import stage
from streams.chaos.verifier import verify
from streams.core.values import Json
from streams.topics import ANSWERS
from streams.wire.answers import read_answer

SCENARIOS = (
    "a named worker is killed and comes back in time",
    "a worker hands over",
    "a worker sleeps beyond its session",
)


def answers(evidence: Evidence) -> dict[str, tuple[str, str, Json, list[tuple[str, str]]]]:
    """By job: outcome, rule, value where its words are certain, and how each of its sub-tasks ended."""
    read = [read_answer(record) for record in evidence.records[ANSWERS]]
    assert len({answer.job for answer in read}) == len(read)
    return {
        answer.job: (
            answer.outcome,
            answer.rule,
            answer.value if evidence.expected[answer.job].exact else None,
            [(report.task, report.outcome) for report in answer.subtasks],
        )
        for answer in read
    }


async def on_both(name: str, servers: str, place: Path) -> None:
    scenario = SHARED[name]
    with silence():
        expected = await asyncio.to_thread(answers_to, scenario)
        in_memory = await asyncio.to_thread(live, scenario, expected)
    on_kafka = await stage(scenario, expected, servers=servers, place=place / name.replace(" ", "-"))
    assert verify(in_memory.evidence) == []
    assert verify(on_kafka) == [], name
    assert answers(on_kafka) == answers(in_memory.evidence), name


async def test_the_log_in_memory_and_kafka_agree(kafka_servers: str, tmp_path: Path) -> None:
    """The promise is kept here and there, and the answers are the same. Side by side: they mostly wait."""
    async with asyncio.TaskGroup() as group:
        for name in SCENARIOS:
            group.create_task(on_both(name, kafka_servers, tmp_path))
