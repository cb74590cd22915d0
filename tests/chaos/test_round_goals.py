"""Goals for rounds: repeatable, of every kind, and answered by the system as they are without it."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from agents.simulator.behaviour import Behaviour
from agents.tools.shipped import shipped_tools
from streams.chaos.evidence import Evidence, Expected
from streams.chaos.goals import Submission, expected_of, submissions, with_answers
from streams.chaos.simulation.crew import crew
from streams.chaos.simulation.endpoint import MemoryEndpoint
from streams.chaos.simulation.series import silence
from streams.chaos.simulation.worker import Worker
from streams.chaos.verifier import judge
from streams.core.values import JobId
from streams.log import Record
from streams.memory_log import MemoryCluster
from streams.memory_log.virtual_time import run
from streams.settings import Settings
from streams.topics import ANSWERS, DEAD_LETTERS, GOALS, JOB_EVENTS, JOBS, SUBTASKS, TRANSCRIPTS
from streams.wire.goals import BadGoal, read_goal

TOPICS = (GOALS, JOB_EVENTS, SUBTASKS, TRANSCRIPTS, JOBS, ANSWERS, DEAD_LETTERS)
URL = "http://127.0.0.1:1/v1"


def test_a_seed_gives_the_same_records() -> None:
    """And another one others."""
    assert submissions(1, 40, lanes=4) == submissions(1, 40, lanes=4)
    assert submissions(1, 40, lanes=4) != submissions(2, 40, lanes=4)


def test_there_is_everything_among_many() -> None:
    """What is sent twice, shares an id, comes in an envelope, without a name, or as poison."""
    many = submissions(1, 400, lanes=4)
    places = {each.partition for each in many}
    assert places == {0, 1, 2, 3}
    twice = Counter((each.job, each.value) for each in many if each.job)
    values = [each.value or b"" for each in many]
    assert max(twice.values()) == 2
    assert len({value for value in values if b'"id":"clash' in value}) >= 4
    assert any(b"[[plan 100]]" in value for value in values)
    assert any(b"[[join 99]]" in value for value in values)
    assert any(each.derived for each in many)
    assert any(name == "ce_id" for each in many for name, _ in each.headers)
    assert any(value.startswith(b'{"specversion":"1.0"') for value in values)
    poison = [each for each in many if each.job is None and not each.derived]
    assert {None, b""} < {each.value for each in poison}
    assert all(isinstance(read_goal(record(each, n), lanes=4), BadGoal) for n, each in enumerate(poison))


def record(each: Submission, offset: int) -> Record:
    """As it stands on its topic."""
    return Record(GOALS, each.partition, offset, 0, each.key, each.value, each.headers)


def test_each_record_names_its_job() -> None:
    """As intake reads it; one without a name has it from its place."""
    for offset, each in enumerate(submissions(3, 200, lanes=2)):
        read = read_goal(record(each, offset), lanes=2)
        assert read.job == each.job_at(each.partition, offset)


def test_the_system_answers_them_as_a_run_without_it() -> None:
    """Whatever stands on the topic; and the verifier agrees that nothing is missing or wrong."""
    sent = with_answers(submissions(5, 30, lanes=2), base_url=URL)
    with silence():
        evidence = run(answered(sent))
    assert len(evidence.expected) > 20
    assert {each.outcome for each in evidence.expected.values()} >= {"succeeded", "failed", "rejected"}
    verdict = judge(evidence)
    assert verdict.findings == ()
    assert verdict.figures.goals == len(sent)
    assert verdict.figures.jobs > len(evidence.expected)
    first = next(iter(evidence.expected))
    other: dict[JobId, Expected] = {**evidence.expected, first: Expected(outcome="partial", answer=None)}
    assert [each.kind for each in judge(replace(evidence, expected=other)).findings] == ["wrong"]


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
