"""Claim checks on the log in memory: what was checked in is what comes out."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import orjson
import pytest

from streams.claims import CHUNK_BYTES, Resolver, ValueLost, check_in
from streams.core.commands import Answer, MakeAnswer, MakePlan, TaskResult
from streams.core.events import DeadlinePassed, SubTaskSucceeded
from streams.core.values import Inline, Json, Reference
from streams.delivery import Sender
from streams.log import LogUnavailable, Record
from streams.memory_log import Faults, MemoryCluster, MemoryLog
from streams.memory_log.virtual_time import run
from streams.wire.events import write_event

TOPICS = {"transcripts": 2, "job-events": 2}
Story = Callable[[MemoryCluster, MemoryLog], Coroutine[Any, Any, None]]


def on_the_log(story: Story, **faults: Any) -> None:
    """Run *story* on a log in memory, in virtual time."""

    async def told() -> None:
        cluster = MemoryCluster(TOPICS, faults=Faults(**faults))
        async with cluster.connect("w") as log:
            await story(cluster, log)

    run(told())


async def put(log: MemoryLog, value: Json) -> Reference:
    return await check_in(Sender(log.producer), orjson.dumps(value), key=b"a/b/t/1", partition=1, run="r1")


class Counted:
    """A log that counts its reads."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self.reads = 0
        self.records = 0

    async def read(self, *place: Any, **since: Any) -> AsyncIterator[Sequence[Record]]:
        self.reads += 1
        async for batch in self._log.read(*place, **since):
            self.records += len(batch)
            yield batch


@pytest.mark.parametrize(
    "value",
    [
        "small",
        "x" * (3 * CHUNK_BYTES),
        "a" + "é€😀" * 300_000,
        '"\\' * 500_000,
        [{"n": n, "text": "y" * 1000} for n in range(2_000)],
    ],
    ids=["small", "large", "characters of many bytes", "characters that are escaped", "list"],
)
def test_what_was_checked_in_comes_out(value: Json) -> None:
    async def story(cluster: MemoryCluster, log: MemoryLog) -> None:
        reference = await put(log, value)
        data = orjson.dumps(value)
        assert (reference.size, reference.digest) == (len(data), sha256(data).hexdigest())
        assert (reference.topic, reference.partition) == ("transcripts", 1)
        for record in cluster.records("transcripts"):
            assert record.value is not None
            assert len(record.value) < 1_000_000  # what Kafka takes by default
            assert record.key == b"a/b/t/1"
        assert await Resolver(log).resolve(reference) == value

    on_the_log(story)


def test_other_records_among_the_chunks_do_not_matter() -> None:
    async def story(cluster: MemoryCluster, log: MemoryLog) -> None:
        first, second = await asyncio.gather(put(log, "a" * 1_500_000), put(log, "b" * 1_500_000))
        for _ in range(3_000):
            await log.producer.send("transcripts", b"{}", key=b"k", partition=1)
        third = await put(log, "c")
        far = replace(first, offsets=(*first.offsets[:1], *third.offsets))
        resolver = Resolver(log)
        assert await resolver.resolve(first) == "a" * 1_500_000
        assert await resolver.resolve(second) == "b" * 1_500_000
        with pytest.raises(ValueLost, match="no chunk of it"):
            await resolver.resolve(far)

    on_the_log(story)


def test_a_read_ends_with_the_last_chunk() -> None:
    async def story(cluster: MemoryCluster, log: MemoryLog) -> None:
        reference = await put(log, "x" * 1_500_000)
        for _ in range(3_000):
            await log.producer.send("transcripts", b"{}", key=b"k", partition=1)
        await put(log, "y")
        counted = Counted(log)
        assert await Resolver(counted).resolve(reference) == "x" * 1_500_000
        with pytest.raises(ValueLost, match="gone"):
            await Resolver(counted).resolve(replace(reference, partition=0))
        assert counted.records < 1_000

    on_the_log(story)


def test_a_value_asked_for_by_many_is_read_once() -> None:
    async def story(cluster: MemoryCluster, log: MemoryLog) -> None:
        reference = await put(log, ["x" * 9_000])
        counted = Counted(log)
        resolver = Resolver(counted)
        values = await asyncio.gather(*(resolver.resolve(reference) for _ in range(50)))
        assert await resolver.resolve(reference) == ["x" * 9_000]
        assert len(values) == 50
        assert counted.reads == 1

    on_the_log(story)


def test_one_who_gives_up_leaves_the_read_to_the_others() -> None:
    async def story(cluster: MemoryCluster, log: MemoryLog) -> None:
        reference = await put(log, "x" * 9_000)
        resolver = Resolver(log)
        first = asyncio.create_task(resolver.resolve(reference))
        second = asyncio.create_task(resolver.resolve(reference))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == "x" * 9_000
        assert first.cancelled()

    on_the_log(story, delay_s=0.1)


def test_the_cache_keeps_the_newest_within_its_bound() -> None:
    async def story(cluster: MemoryCluster, log: MemoryLog) -> None:
        references = [await put(log, f"{n}" * 1_000) for n in range(4)]
        counted = Counted(log)
        resolver = Resolver(counted, cache_bytes=2_500)
        for reference in (references[0], references[1], references[0], references[2]):
            await resolver.resolve(reference)
        assert counted.reads == 3
        await resolver.resolve(references[0])  # asked for since references[1] was
        assert counted.reads == 3
        await resolver.resolve(references[1])
        assert counted.reads == 4

    on_the_log(story)


def test_a_value_of_another_digest_is_lost() -> None:
    async def story(cluster: MemoryCluster, log: MemoryLog) -> None:
        one, other = await put(log, "x"), await put(log, "y")
        resolver = Resolver(log)
        for wrong in (
            replace(one, digest=other.digest),
            replace(one, offsets=(99,)),
            replace(one, offsets=()),
            replace(one, topic="job-events"),
        ):
            with pytest.raises(ValueLost):
                await resolver.resolve(wrong)

    on_the_log(story)


def test_a_chunk_that_was_changed_is_noticed() -> None:
    async def story(cluster: MemoryCluster, log: MemoryLog) -> None:
        reference = await put(log, "xx")
        changed = cluster.records("transcripts")[0].value
        assert changed is not None
        landed = await log.producer.send("transcripts", changed.replace(b"xx", b"xy"), key=b"k", partition=1)
        with pytest.raises(ValueLost, match="digest"):
            await Resolver(log).resolve(replace(reference, offsets=(await landed,)))

    on_the_log(story)


def test_an_event_is_a_claim_check_for_its_result() -> None:
    async def story(cluster: MemoryCluster, log: MemoryLog) -> None:
        event = SubTaskSucceeded(job="a/b", task="t", attempt=1, result=Inline(value={"r": [1, 2.5]}))
        landed = await log.producer.send("job-events", write_event(event), key=b"a/b", partition=0)
        reference = Reference(topic="job-events", partition=0, offsets=(await landed,), size=13, digest="")
        resolver = Resolver(log)
        assert await resolver.resolve(reference) == {"r": [1, 2.5]}
        digest = sha256(b'{"r":[1,2.5]}').hexdigest()
        assert await resolver.resolve(replace(reference, digest=digest)) == {"r": [1, 2.5]}
        with pytest.raises(ValueLost, match="digest"):
            await resolver.resolve(replace(reference, digest="00" * 32))
        other = await log.producer.send(
            "job-events", write_event(DeadlinePassed(job="a/b")), key=b"a/b", partition=0
        )
        with pytest.raises(ValueLost, match="no result"):
            await resolver.resolve(replace(reference, offsets=(await other,)))

    on_the_log(story)


def test_an_outage_ends_the_wait() -> None:
    async def story(cluster: MemoryCluster, log: MemoryLog) -> None:
        reference = await put(log, "x")
        await asyncio.sleep(20)
        with pytest.raises(LogUnavailable):
            await Resolver(log, within_s=5).resolve(reference)

    on_the_log(story, outages=((10, 1_000),))


def test_commands_and_answers_come_with_their_values() -> None:
    async def story(cluster: MemoryCluster, log: MemoryLog) -> None:
        text, given, result = await put(log, "t"), await put(log, [1]), await put(log, {"r": 1})
        resolver = Resolver(log)
        attempt: dict[str, Any] = {"job": "a/b", "attempt": 1, "ordinal": 0, "timeout_s": 1.0}
        plan = MakePlan(**attempt, task="plan", text=text, input=given)
        assert await resolver.resolve_command(plan) == replace(
            plan, text=Inline(value="t"), input=Inline(value=[1])
        )
        done = TaskResult(task="t", goal="g", outcome="succeeded", result=result)
        failed = TaskResult(task="u", goal="g", outcome="failed", reason="r")
        join = MakeAnswer(**attempt, task="answer", text=Inline(value="t"), results=(done, failed))
        assert (await resolver.resolve_command(join)).results == (
            replace(done, result=Inline(value={"r": 1})),
            failed,
        )
        answer = Answer(job="a/b", id="b", tenant="a", outcome="succeeded", rule="all_done", answer=result)
        assert (await resolver.resolve_answer(answer)).answer == Inline(value={"r": 1})

    on_the_log(story)
