"""Intake on the log in memory: every record becomes a job or a dead letter before it is acknowledged."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from zlib import crc32

import orjson
import pytest
import structlog

from agents.configuration.values import Configuration
from streams import dead_letters
from streams.claims import Resolver
from streams.core.events import ChildAnswered, Event, GoalRejected, JobSubmitted
from streams.core.goal import Source
from streams.core.values import Inline, Reference
from streams.dead_letters import DeadLetter
from streams.delivery import Sender
from streams.intake import Intake
from streams.log import Headers, Record, RecordRefused
from streams.memory_log import NO_FAULTS, Faults, MemoryCluster, MemoryLog
from streams.memory_log.connection import Limits
from streams.memory_log.virtual_time import run
from streams.wire.events import read_event

LANES = 4
TOPICS = ("goals", "job-events", "transcripts", "dead-letters")


@dataclass(kw_only=True)
class Town:
    """A broker and one worker that takes goals in."""

    faults: Faults = NO_FAULTS
    limits: Limits | None = None
    in_flight: int = 256
    configured: Configuration | None = None
    cluster: MemoryCluster = field(init=False)
    worker: MemoryLog = field(init=False)

    def __post_init__(self) -> None:
        self.cluster = MemoryCluster(dict.fromkeys(TOPICS, LANES), faults=self.faults, limits=self.limits)

    def start(self) -> MemoryLog:
        """Start a worker."""
        self.worker = self.cluster.connect("worker")
        intake = Intake(
            Sender(self.worker.producer),
            lanes=LANES,
            run="r1",
            in_flight=self.in_flight,
            configured=self.configured,
        )
        self.worker.start(self.worker.deliveries("goals", "agents", intake.agent))
        return self.worker

    def send(self, *goals: Any, headers: Headers = ()) -> None:
        """Goals land on partition 1: bytes and None as they are, anything else as JSON."""
        for goal in goals:
            value = goal if isinstance(goal, bytes | None) else orjson.dumps(goal)
            self.cluster.partition("goals", 1).append(b"k", value, headers, self.cluster.now_ms())

    def taken(self) -> int:
        """Goals acknowledged and committed."""
        return self.cluster.committed("agents", "goals").get(1, 0)

    def events(self) -> list[Event]:
        for partition in range(LANES):
            for record in self.cluster.records("job-events", partition):
                assert record.key is not None
                assert crc32(record.key) % LANES == partition
                assert read_event(record).job.encode() == record.key
        return [read_event(record) for record in self.cluster.records("job-events")]

    def buried(self) -> list[DeadLetter]:
        return [dead_letters.read(record) for record in self.cluster.records("dead-letters")]


def told(story: Callable[[Town], Coroutine[Any, Any, None]], **town: Any) -> None:
    """Run *story* in virtual time; its goals may be sent before the worker is there."""

    async def begin() -> None:
        there = Town(**town)
        await story(there)
        await there.worker.close()

    run(begin())


def one_goal(value: Any, headers: Headers = ()) -> tuple[list[Event], list[DeadLetter]]:
    """What comes of a goal, between two good ones that become jobs whatever it is."""
    found: list[Any] = []

    async def story(town: Town) -> None:
        town.send({"id": "before", "goal": "x"})
        town.send(value, headers=headers)
        town.send({"id": "behind", "goal": "x"})
        town.start()
        await asyncio.sleep(5)
        assert town.taken() == 3
        others = {"default/before", "default/behind"}
        assert others <= {event.job for event in town.events()}
        found.extend([[event for event in town.events() if event.job not in others], town.buried()])

    told(story)
    return found[0], found[1]


def test_plain_text_becomes_a_job() -> None:
    events, buried = one_goal(b"Compare three message brokers", headers=(("trace", b"7"),))
    (submitted,) = events
    assert isinstance(submitted, JobSubmitted)
    assert submitted.goal.text == Inline(value="Compare three message brokers")
    assert submitted.job == "default/goals-1-1"
    assert submitted.source == Source(topic="goals", partition=1, offset=1)
    assert submitted.lanes == LANES
    assert submitted.headers[0].name == "trace"
    assert submitted.at > 0
    assert buried == []


@pytest.mark.parametrize(
    ("value", "reason"), [(None, "tombstone"), (b"\xff\xfe\x00", "not UTF-8"), (b"[]", "not a list")]
)
def test_what_cannot_be_read_is_a_dead_letter(value: bytes | None, reason: str) -> None:
    headers = (("trace", b"\xff"),)
    events, (letter,) = one_goal(value, headers)
    assert events == []
    assert reason in letter.reason
    assert letter.place == Source(topic="goals", partition=1, offset=1)
    assert (letter.key, letter.value, letter.headers) == (b"k", value, headers)


def test_a_bad_goal_with_an_id_is_rejected_too() -> None:
    (event,), (letter,) = one_goal({"id": "g1", "text": "x"}, headers=(("trace", b"7"),))
    assert isinstance(event, GoalRejected)
    assert event.job == "default/g1"
    assert event.reason == letter.reason
    assert "`goal` is missing" in event.reason
    assert event.headers[0].value == "7"


def test_whoever_waits_for_a_goal_that_is_none_is_told() -> None:
    """It would wait for ever: a child's goal may be of a later version than the worker that reads it."""
    parent = {"job": "acme/whole", "task": "a", "attempt": 2, "call": "call-1", "depth": 1}
    events, letters = one_goal(
        {"goal": "x", "id": "child-1", "tenant": "acme", "parent": parent, "colour": "red"}
    )
    assert len(letters) == 1
    told = [event for event in events if isinstance(event, ChildAnswered)]
    assert [(e.job, e.task, e.attempt, e.call, e.child, e.outcome) for e in told] == [
        ("acme/whole", "a", 2, "call-1", "acme/child-1", "rejected")
    ]
    assert "colour" in told[0].reason


def test_the_same_goal_twice_names_one_job_with_one_meaning() -> None:
    async def story(town: Town) -> None:
        town.send({"id": "g2", "goal": "x"}, {"id": "g2", "goal": "x"}, {"id": "g2", "goal": "y"})
        town.start()
        await asyncio.sleep(5)
        first, again, other = town.events()
        assert isinstance(first, JobSubmitted)
        assert isinstance(again, JobSubmitted)
        assert isinstance(other, JobSubmitted)
        assert first.job == again.job == other.job == "default/g2"
        assert first.goal.digest == again.goal.digest != other.goal.digest

    told(story)


def test_large_values_go_by_claim_check() -> None:
    """Two megabytes of input: the event stays small, and the job's partition holds the value."""

    async def story(town: Town) -> None:
        packages = [{"name": f"p{n}", "text": "y" * 1_000} for n in range(2_000)]
        town.send({"id": "big", "goal": "z" * 10_000, "input": packages})
        town.start()
        await asyncio.sleep(5)
        (event,) = town.events()
        assert isinstance(event, JobSubmitted)
        text, given = event.goal.text, event.goal.input
        assert isinstance(text, Reference)
        assert isinstance(given, Reference)
        assert event.goal.items == 2_000
        assert text.partition == given.partition == crc32(b"default/big") % LANES
        resolver = Resolver(town.worker)
        assert await resolver.resolve(text) == "z" * 10_000
        assert await resolver.resolve(given) == packages
        assert {record.key for record in town.cluster.records("transcripts")} == {b"default/big/plan/0"}

    told(story, limits=Limits(record_bytes=4_000_000))


def test_a_dead_letter_too_large_for_the_log_tells_what_was_lost() -> None:
    async def story(town: Town) -> None:
        value = b"\xff" * 3_990
        town.send(value, {"goal": "x"})
        town.cluster.limits = Limits(record_bytes=2_000)
        town.start()
        await asyncio.sleep(5)
        (letter,) = town.buried()
        assert (letter.value, letter.lost_bytes) == (None, 3_990)
        assert letter.lost_digest == sha256(value).hexdigest()
        assert "not UTF-8" in letter.reason
        assert town.taken() == 2

    told(story, limits=Limits(record_bytes=4_000))


def test_a_goal_that_the_log_refuses_is_rejected() -> None:
    async def story(town: Town) -> None:
        town.send({"id": "g1", "goal": "x", "tools": ["t" * 100] * 15 + ["u" * n for n in range(9, 99)]})
        town.cluster.limits = Limits(record_bytes=3_000)
        town.start()
        await asyncio.sleep(5)
        (event,) = town.events()
        assert isinstance(event, GoalRejected)
        assert "does not fit" in event.reason
        assert len(town.buried()) == 1
        assert town.taken() == 1

    told(story)


def test_an_outage_drops_nothing_and_shows_as_two_lines() -> None:
    async def story(town: Town) -> None:
        town.start()
        with structlog.testing.capture_logs() as lines:
            await asyncio.sleep(9)
            for n in range(50):
                town.send({"id": f"g{n}", "goal": "x"}, b"\xff")
                await asyncio.sleep(0.04)
            await asyncio.sleep(400)
        assert {event.job for event in town.events()} == {f"default/g{n}" for n in range(50)}
        assert {letter.place.offset for letter in town.buried()} == set(range(1, 100, 2))
        assert town.taken() == 100
        told_of = [line["event"] for line in lines if line["event"].startswith("log_")]
        assert told_of == ["log_unavailable", "log_available_again"]

    told(story, faults=Faults(outages=((10.0, 200.0),), delay_s=0.05))


def test_lost_sends_and_replies_lose_no_goal() -> None:
    async def story(town: Town) -> None:
        town.send(*({"id": f"g{n}", "goal": "x"} for n in range(40)))
        town.start()
        await asyncio.sleep(3_000)
        assert {event.job for event in town.events()} == {f"default/g{n}" for n in range(40)}
        assert town.taken() == 40

    told(story, faults=Faults(lost_sends=0.2, lost_replies=0.2, delay_s=0.01))


def test_a_killed_worker_leaves_nothing_out() -> None:
    async def story(town: Town) -> None:
        town.send(*({"id": f"g{n}", "goal": "x"} for n in range(200)))
        for _ in range(6):
            worker = town.start()
            await asyncio.sleep(6.6)
            worker.kill()
        town.start()
        await asyncio.sleep(60)
        assert {event.job for event in town.events()} == {f"default/g{n}" for n in range(200)}
        assert town.taken() == 200

    told(story, faults=Faults(delay_s=0.3))


@dataclass(frozen=True, slots=True)
class Handed:
    """A delivery that notes its acknowledgement."""

    record: Record
    acked: list[int]

    def ack(self) -> None:
        self.acked.append(self.record.offset)


class Held:
    """A producer whose records land when the test says so, by key."""

    def __init__(self) -> None:
        self.sent: dict[bytes | None, asyncio.Future[int]] = {}

    async def send(
        self, topic: str, value: bytes | None, *, key: bytes | None, partition: int, headers: Headers = ()
    ) -> "asyncio.Future[int]":
        self.sent[key] = asyncio.get_running_loop().create_future()
        return self.sent[key]


class Stream:
    """Deliveries that a test feeds."""

    def __init__(self) -> None:
        self.acked: list[int] = []
        self._queue: asyncio.Queue[Handed] = asyncio.Queue()
        self._fed = 0

    def feed(self, *ids: str) -> None:
        for name in ids:
            value = orjson.dumps({"id": name, "goal": "x"})
            self._queue.put_nowait(Handed(Record("goals", 0, self._fed, 0, b"", value), self.acked))
            self._fed += 1

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> Handed:
        return await self._queue.get()


async def settle() -> None:
    """Let everything that can go on do so."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_goals_are_acknowledged_in_order_and_only_when_done() -> None:
    async def story() -> None:
        producer, stream = Held(), Stream()
        intake = Intake(Sender(producer), lanes=1, run="r", in_flight=3)
        task = asyncio.create_task(intake.run(stream))
        stream.feed("a", "b", "c", "d")
        await settle()
        assert set(producer.sent) == {b"default/a", b"default/b", b"default/c"}  # and d waits
        producer.sent[b"default/b"].set_result(1)
        await settle()
        assert stream.acked == []
        assert b"default/d" not in producer.sent
        producer.sent[b"default/a"].set_result(0)
        await settle()
        assert stream.acked == [0, 1]
        assert b"default/d" in producer.sent
        task.cancel()
        await asyncio.wait([task], timeout=1)
        assert task.cancelled()
        assert stream.acked == [0, 1]
        assert all(sent.done() for sent in producer.sent.values())

    run(story())


class Refusing:
    """A producer that takes nothing for some topics, for some seconds."""

    def __init__(self, *topics: str, seconds: float) -> None:
        self.topics = topics
        self._until = asyncio.get_running_loop().time() + seconds
        self.landed: list[str] = []

    async def send(
        self, topic: str, value: bytes | None, *, key: bytes | None, partition: int, headers: Headers = ()
    ) -> "asyncio.Future[int]":
        if topic in self.topics and asyncio.get_running_loop().time() < self._until:
            raise RecordRefused(f"{topic}: not allowed")
        self.landed.append(topic)
        sent: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        sent.set_result(0)
        return sent


@pytest.mark.parametrize(
    ("refused", "landed"),
    [
        (("job-events",), ["dead-letters", "dead-letters"]),
        (("dead-letters",), ["dead-letters", "job-events"]),
        (("job-events", "dead-letters"), ["dead-letters", "job-events"]),
    ],
)
def test_a_record_is_taken_in_once_it_is_somewhere(refused: tuple[str, ...], landed: list[str]) -> None:
    """A log that takes nothing from us is an error that names the record, and is asked until it does."""

    async def story() -> None:
        producer = Refusing(*refused, seconds=100)
        record = Record("goals", 0, 7, 0, None, b'{"id": "a", "goal": 5}')
        with structlog.testing.capture_logs() as lines:
            await Intake(Sender(producer), lanes=1, run="r").take_in(record)
        assert producer.landed == landed
        assert any(line["log_level"] == "error" and line["offset"] == 7 for line in lines)
        waited = asyncio.get_running_loop().time() >= 100
        assert waited == ("dead-letters" in refused)

    run(story())
