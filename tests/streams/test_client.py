"""The Python client, on the log in memory."""

import asyncio
import subprocess
import sys
from contextlib import aclosing

import pytest

from agents.ports import Attempt, Done, GaveUp
from streams.client import NotAnswered, Swarm
from streams.core.commands import Answer, RunSubTask
from streams.core.events import JobSubmitted, SubTaskSucceeded
from streams.core.goal import Header
from streams.core.values import INLINE_BYTES, Inline
from streams.log import NoSuchTopic
from streams.memory_log import MemoryCluster
from streams.memory_log.virtual_time import run
from streams.topics import ANSWERS, GOALS, partition_of
from streams.wire.answers import write_answer
from streams.wire.goal_fields import BadFields, GoalFields
from streams.wire.goal_writing import BudgetOptions, GoalOptions, JoinOptions, LimitOptions
from tests.streams.scripted import Script
from tests.streams.swarm_in_memory import SwarmInMemory


def swarm_of(system: SwarmInMemory) -> Swarm:
    """A client of its own connection."""
    return Swarm(log=system.cluster.connect("client"))


def test_a_goal_is_answered() -> None:
    """The client knows the number of lanes by itself, and headers come back."""

    async def story() -> None:
        system = SwarmInMemory()
        system.worker()
        async with swarm_of(system) as swarm:
            assert swarm.lanes == system.settings.lanes
            answer = await swarm.answer("2", headers={"trace": "17"}, limits={"concurrency": 1})
        assert answer.outcome == "succeeded"
        assert answer.value == {name: {"did": name, "with": []} for name in ("t0", "t1")}
        assert answer.headers == (Header(name="trace", value="17"),)

    run(story())


def test_many_answers_share_one_reader() -> None:
    """Fifty goals at once: each gets its own answer, and the log sees one follower."""

    async def story() -> None:
        system = SwarmInMemory()
        system.worker()
        log = system.cluster.connect("client")
        followed: list[str] = []

        class Counting:
            """The same connection, with an eye on what it follows."""

            def __getattr__(self, name: str) -> object:
                if name == "follow":
                    followed.append(name)
                return getattr(log, name)

        async with Swarm(log=Counting()) as swarm:  # type: ignore[arg-type]  # it has every method
            answers = await asyncio.gather(*(swarm.answer("1", id=f"g{n}") for n in range(50)))
        assert [answer.id for answer in answers] == [f"g{n}" for n in range(50)]
        assert len(followed) == 1

    run(story())


def test_the_same_goal_again_gets_the_answer_that_is_there() -> None:
    """A program that was restarted asks again with its id: no second job, the same answer."""

    async def story() -> None:
        system = SwarmInMemory()
        system.worker()
        async with swarm_of(system) as swarm:
            first = await swarm.answer("3", id="order-17", tenant="acme")
        async with swarm_of(system) as swarm:
            again = await swarm.answer("3", id="order-17", tenant="acme")
            waited, other = await asyncio.gather(
                swarm.wait("acme/order-17"), swarm.wait("acme/order-17", within_s=5.0)
            )
        assert first == again == waited == other
        assert len(system.script.ran) == 3

    run(story())


def test_no_answer_in_time_says_what_to_do() -> None:
    """Without a worker: the error names the job, and how to go on."""

    async def story() -> None:
        system = SwarmInMemory()
        async with swarm_of(system) as swarm:
            with pytest.raises(NotAnswered, match="anabranch watch acme/late") as caught:
                await swarm.answer("1", id="late", tenant="acme", within_s=3.0)
            assert caught.value.job == "acme/late"
            waiting = asyncio.create_task(swarm.wait("acme/late", within_s=60.0))
            system.worker()
            assert (await waiting).outcome == "succeeded"

    run(story())


def test_goals_are_checked_before_they_are_sent() -> None:
    """A mistyped limit costs nothing: no record leaves."""

    async def story() -> None:
        system = SwarmInMemory()
        async with swarm_of(system) as swarm:
            with pytest.raises(BadFields, match="did you mean `deadline_s`"):
                await swarm.submit("1", deadline=3)  # type: ignore[call-arg]
            with pytest.raises(BadFields, match="max_subtasks"):
                await swarm.submit("1", limits={"max_subtasks": 101})
            with pytest.raises(BadFields, match="`plan`: cycle a -> a"):
                await swarm.submit("1", plan=[{"id": "a", "goal": "x", "dep": ["a"]}])
        assert await system.records(GOALS) == []

    run(story())


def test_a_goal_may_bring_its_plan() -> None:
    """Tuples are as good as lists; what it brings is what runs."""

    async def story() -> None:
        system = SwarmInMemory()
        system.worker()
        async with swarm_of(system) as swarm:
            plan = ({"id": "a", "goal": "x", "input": "each"}, {"id": "b", "goal": "y", "dep": ("a",)})
            answer = await swarm.answer("no number", input=("one", "two"), plan=plan)
        assert [report.task for report in answer.subtasks] == ["a-1", "a-2", "b"]
        assert answer.outcome == "succeeded"

    run(story())


def test_a_goal_without_an_id_keeps_one_over_its_retries() -> None:
    """The id is chosen before the first try, so what is sent twice is one job."""

    async def story() -> None:
        system = SwarmInMemory()
        async with swarm_of(system) as swarm:
            jobs = [await swarm.submit("1") for _ in range(2)]
        assert len(set(jobs)) == 2
        by_key = {record.key: record for record in await system.records(GOALS)}
        assert set(by_key) == {job.encode() for job in jobs}
        assert {record.partition for record in by_key.values()} == {
            partition_of(job, system.settings.lanes) for job in jobs
        }

    run(story())


def test_options_are_those_that_intake_reads() -> None:
    """The typed options and the model of goals name the same fields."""
    fields = GoalFields.model_fields
    assert set(GoalOptions.__annotations__) | {"goal"} == set(fields)
    nested = {"limits": LimitOptions, "join": JoinOptions, "budget": BudgetOptions}
    for name, options in nested.items():
        assert set(options.__annotations__) == set(type(fields[name].default).model_fields)


async def _verbose(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
    return Done(result="x" * (2 * INLINE_BYTES))


def test_events_of_a_job_from_its_goal_to_its_end() -> None:
    """They begin with the goal and stop with the event that ends the job, large values in place."""

    async def story() -> None:
        system = SwarmInMemory(script=Script(work=_verbose))
        system.worker()
        async with swarm_of(system) as swarm:
            job = await swarm.submit("2", input=["y" * INLINE_BYTES, "z"])
            seen = [event async for event in swarm.events(job)]
            assert isinstance(seen[0], JobSubmitted)
            assert seen[0].goal.input == Inline(value=["y" * INLINE_BYTES, "z"])
            assert isinstance(seen[-1], SubTaskSucceeded)
            assert seen[-1].task == "answer"
            results = [e.result for e in seen if isinstance(e, SubTaskSucceeded) and e.task != "answer"]
            assert results == [Inline(value="x" * (2 * INLINE_BYTES))] * 2
            # The same again for whoever comes late, and for whoever leaves early.
            assert [event async for event in swarm.events(job)] == seen
            async with aclosing(swarm.events(job)) as events:
                assert await anext(events) == seen[0]

    run(story())


def test_events_of_an_unknown_job_end_in_time() -> None:
    """Nobody waits for ever for a job whose id was mistyped."""

    async def story() -> None:
        system = SwarmInMemory()
        async with swarm_of(system) as swarm:
            with pytest.raises(NotAnswered):
                _ = [event async for event in swarm.events("default/typo", within_s=5.0)]

    run(story())


def test_a_timeout_does_not_hit_the_callers_own_work() -> None:
    """The time of ``events`` is over while the caller works on one: what is there still comes."""

    async def story() -> None:
        system = SwarmInMemory()
        system.worker()
        async with swarm_of(system) as swarm:
            job = (await swarm.answer("1")).job
            seen = []
            async for event in swarm.events(job, within_s=2.0):
                await asyncio.sleep(10.0)
                seen.append(event)
            assert isinstance(seen[-1], SubTaskSucceeded)

    run(story())


def test_answers_come_once_and_newer_revisions_again() -> None:
    """A repeated record is dropped, a newer revision is not."""

    async def story() -> None:
        system = SwarmInMemory()
        producer = system.cluster.connect("other").producer

        async def publish(*revisions: int) -> None:
            for revision in revisions:
                answer = Answer(
                    job="a/b", id="b", tenant="a", outcome="failed", rule="broken", revision=revision
                )
                value, headers = write_answer(answer)
                await (await producer.send(ANSWERS, value, key=b"a/b", partition=0, headers=headers))

        await publish(1, 1)
        await (await producer.send(ANSWERS, b"no answer", key=b"a/b", partition=0))
        await publish(2, 1)
        async with swarm_of(system) as swarm:
            async with aclosing(swarm.answers(since=0)) as answers:
                assert [(await anext(answers)).revision for _ in range(2)] == [1, 2]
            assert [answer.revision for answer in await swarm.published()] == [2]
            coming = swarm.answers()
            first = asyncio.ensure_future(anext(coming))
            await asyncio.sleep(1.0)
            await publish(3)
            assert (await first).revision == 3
            # Left open on purpose, one of them while it waits: they end with the swarm.
            waiting = asyncio.ensure_future(anext(swarm.answers(), None))
            await asyncio.sleep(1.0)
        assert await anext(coming, None) is None
        assert await waiting is None

    run(story())


def test_a_system_without_topics_says_so() -> None:
    """On entering, not at the first goal."""

    async def story() -> None:
        with pytest.raises(NoSuchTopic, match="job-events"):
            async with Swarm(log=MemoryCluster({}).connect("client")):
                pass

    run(story())


def test_importing_streams_is_cheap_and_the_core_stays_pure() -> None:
    """`from streams import Swarm` works, but nobody pays for it who does not ask."""
    program = (
        "import sys, streams.core.job\n"
        "heavy = {'aiokafka', 'pydantic', 'openai', 'structlog', 'orjson', 'streams.client'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "from streams import Swarm\n"
        "assert not {'aiokafka', 'openai', 'faust'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
