"""A system stopped for longer than its groups' offsets live goes on where it was."""

import asyncio

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import DeleteGroupsRequest

from streams.kafka.lag import lag
from streams.settings import Settings
from streams.topics import GOALS, JOB_EVENTS
from tests.acceptance.conftest import Programs
from tests.acceptance.running import WITHIN_S, Running, running

GOALS_BEFORE = (
    {"id": "planned", "goal": "[[plan 9]]"},
    {"id": "chain", "goal": "[[chain 3]]"},
    {"id": "planned", "goal": "[[plan 9]]"},
    {
        "id": "brought",
        "goal": "x",
        "plan": [{"id": "a", "goal": "do a"}, {"id": "b", "goal": "b", "dep": ["a"]}],
    },
    {"id": "failing", "goal": "[[plan 3]] [[fail @2]]"},
    {"id": "flaky", "goal": "[[plan 2]] [[flaky 1]]"},
)
ANSWERED = {"planned", "chain", "brought", "failing", "flaky", "other"}


async def test_without_any_offsets_nothing_is_answered_or_called_again(
    system: Settings, programs: Programs
) -> None:
    """All goals and commands are read again: the jobs know their goals, and the lanes their work."""
    async with running(system, programs) as here:
        worker = await here.worker()
        for number, goal in enumerate(GOALS_BEFORE):
            await here.send(goal, partition=number % 3)
        await here.send({"id": "other", "tenant": "acme", "goal": "[[plan 1]]"}, partition=7)
        before = await here.answers(len(ANSWERED))
        assert before.keys() == ANSWERED
        assert await worker.stop() == 0
        called = calls(here)
        accepted = await submitted(here)

        await forget_offsets(system)
        await here.worker()
        await here.send({"id": "fresh", "goal": "[[plan 16]]"}, partition=5)
        after = await here.answers(len(ANSWERED) + 2)  # "the-last" among them, of before
        assert after.keys() == {*ANSWERED, "fresh"}
        assert {name: after[name] for name in ANSWERED} == before
        async with asyncio.timeout(WITHIN_S):
            while (behind := await lag(system))[GOALS] or behind[JOB_EVENTS]:
                pass
        assert await submitted(here) == 2 * accepted + 2  # each goal was read again
        new = calls(here)[len(called) :]
        assert [call for call in new if not call.startswith("default/fresh/")] == []
        assert len(new) == 1 + 16 + 1  # the plan, its sub-tasks, the answer


def calls(here: Running) -> list[str]:
    """The attempts that the endpoint was called for, call by call."""
    log = here.endpoint.counters.log()
    assert log["dropped"] == 0
    return [call.call_id for call in log["calls"]]


async def submitted(here: Running) -> int:
    """How often intake has accepted a goal."""
    return sum(b'"JobSubmitted"' in (record.value or b"") for record in await here.records(JOB_EVENTS))


async def forget_offsets(settings: Settings) -> None:
    """What Kafka does with groups without members after ``offsets.retention.minutes``, a week by default."""
    client = AIOKafkaAdminClient(bootstrap_servers=settings.brokers)
    await client.start()
    try:
        for name in (f"{settings.prefix}agents", f"{settings.prefix}orchestrator"):
            assert await client.list_consumer_group_offsets(name)
            coordinator = await client.find_coordinator(name)
            answer = await client._send_request(DeleteGroupsRequest([name]), coordinator)
            assert [code for _, code in answer.results] == [0]
            assert not await client.list_consumer_group_offsets(name)
    finally:
        await client.close()
