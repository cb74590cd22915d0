"""The promise on a real Kafka, with workers that are killed, stopped and left without a broker."""

import orjson

from agents.simulator import Behaviour, Fixed
from streams import dead_letters
from streams.core.events import SubTaskFailed, SubTaskStarted, SubTaskSucceeded
from streams.kafka import admin
from streams.settings import Settings
from streams.topics import DEAD_LETTERS
from tests.acceptance.conftest import OwnKafka, Programs
from tests.acceptance.running import running
from tests.conftest import NewSystem

SLOW = Behaviour(latency=Fixed(seconds=0.3))


async def test_the_only_worker_killed_in_the_middle(new_system: NewSystem, programs: Programs) -> None:
    """Killed (kill -9) in a job of 100 sub-tasks, and a start again: one answer, all results."""
    settings = await new_system(concurrency=20)
    async with running(settings, programs, SLOW) as here:
        first = await here.worker("worker-0")
        await here.send({"id": "g", "goal": "[[plan 100]]"})
        await here.see_events(SubTaskSucceeded, 30)
        await first.kill()
        await here.worker("worker-0")
        answer = (await here.answers(1))["g"]
        assert answer.outcome == "succeeded"
        assert {report.outcome for report in answer.subtasks} == {"succeeded"}
        assert len(answer.subtasks) == 100


async def test_one_worker_killed_and_one_stopped_under_twenty_jobs(
    new_system: NewSystem, programs: Programs
) -> None:
    """What two workers leave behind, a third finishes: 20 answers, one each."""
    settings = await new_system(concurrency=40)
    async with running(settings, programs, SLOW) as here:
        killed, stopped = await here.worker(), await here.worker()
        for n in range(20):
            await here.send(
                {"id": f"g{n}", "goal": "[[plan 20]]" if n % 2 else "[[chain 5]]"}, partition=n % 8
            )
        await here.see_events(SubTaskSucceeded, 30)
        await killed.kill()
        await here.worker()
        await here.see_events(SubTaskSucceeded, 80)
        assert await stopped.stop() == 0
        answers = await here.answers(20)
        assert {answer.outcome for answer in answers.values()} == {"succeeded"}
        assert len(answers) == 20


async def test_bad_records_among_good_ones(system: Settings, programs: Programs) -> None:
    """A redelivered goal is one job, a poison record and a tombstone are dead letters."""
    async with running(system, programs) as here:
        await here.worker()
        for record in (
            {"id": "a", "goal": "[[plan 2]]"},
            None,
            b"\xff\xfe\x00",
            {"id": "a", "goal": "[[plan 2]]"},
            b"Compare three message brokers",
            {"id": "b", "goal": "[[plan 3]]"},
        ):
            await here.send(record)
        answers = await here.answers(3)
        assert answers.keys() == {"a", "b", "goals-0-4"}
        assert {answer.outcome for answer in answers.values()} == {"succeeded"}
        letters = [dead_letters.read(record) for record in await here.records(DEAD_LETTERS)]
        assert sorted((letter.place.partition, letter.place.offset) for letter in letters) == [(0, 1), (0, 2)]


async def test_sub_agents_that_always_fail_or_always_hang(system: Settings, programs: Programs) -> None:
    """Partial or failed as the join rule says, and in time."""
    async with running(system, programs) as here:
        await here.worker()
        limits = {"timeout_s": 1}
        strict = {"min_success_ratio": 0.9}
        await here.send({"id": "fails", "goal": "[[plan 3]] [[fail @2]]"})
        await here.send({"id": "hangs", "goal": "[[plan 3]] [[hang @2]]", "limits": limits})
        await here.send({"id": "strict", "goal": "[[plan 3]] [[fail @2]]", "join": strict})
        await here.send({"id": "late", "goal": "[[plan 3]] [[hang @2]]", "deadline_s": 5})
        answers = await here.answers(4)
        assert {name: answer.outcome for name, answer in answers.items()} == {
            "fails": "partial",
            "hangs": "partial",
            "strict": "failed",
            "late": "partial",
        }
        assert "content_filter" in {r.task: r.reason for r in answers["fails"].subtasks}["t2"]
        assert "timeout" in {r.task: r.reason for r in answers["hangs"].subtasks}["t2"]
        assert answers["late"].rule == "deadline"
        assert answers["late"].answered_at - answers["late"].submitted_at < 10_000
        await here.see_events(SubTaskFailed, 5)  # one of each failing job, three attempts of the hanging one


async def test_a_broker_away_in_the_middle(own_kafka: OwnKafka, programs: Programs) -> None:
    """Everything finishes, and the outage is two lines in the worker's log, not thousands."""
    settings = Settings(brokers=own_kafka.servers, prefix="outage.", concurrency=10)
    await admin.create(settings)
    async with running(settings, programs, SLOW) as here:
        worker = await here.worker()
        for n in range(5):
            await here.send({"id": f"g{n}", "goal": "[[plan 20]]"}, partition=n)
        await here.see_events(SubTaskStarted, 20)
        await own_kafka.stop()
        await worker.says("kafka_unreachable")
        await own_kafka.start()
        answers = await here.answers(5)
        assert {answer.outcome for answer in answers.values()} == {"succeeded"}
        told = [orjson.loads(line)["event"] for line in worker.lines if line.startswith("{")]
        assert told.count("kafka_unreachable") == told.count("kafka_back") == 1
        assert len(worker.lines) < 100
