"""Records that nobody should have written: each is a dead letter, and disturbs no good goal beside it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from streams import dead_letters
from streams.core.commands import Answer, StopAttempt
from streams.core.events import (
    Event,
    JobBroken,
    JobReopened,
    JobSubmitted,
    Planned,
    SubTaskFailed,
    SubTaskSucceeded,
)
from streams.core.goal import Goal, Header, Limits, Source
from streams.core.plan import SubTask
from streams.core.results import partition_of
from streams.core.values import PLAN, Inline
from streams.dead_letters import DeadLetter
from streams.log import Headers, RecordRefused
from streams.memory_log import Limits as LogLimits
from streams.memory_log import MemoryCluster, MemoryLog
from streams.memory_log.virtual_time import run
from streams.orchestrator import Orchestrator
from streams.settings import Settings
from streams.topics import (
    ANSWERS,
    DEAD_LETTERS,
    JOB_EVENTS,
    JOBS,
    MAX_LETTER_BYTES,
    MAX_RECORD_BYTES,
    SUBTASKS,
)
from streams.wire.answers import read_answer
from streams.wire.commands import read_command
from streams.wire.events import write_event

TOPICS = (JOB_EVENTS, JOBS, SUBTASKS, ANSWERS, DEAD_LETTERS)
SOURCE = Source(topic="goals", partition=0, offset=0)
LANES = 2
LETTERS = {DEAD_LETTERS: MAX_LETTER_BYTES}
AS_ON_KAFKA = LogLimits(record_bytes=MAX_RECORD_BYTES - 1_024, topic_bytes=LETTERS)


def job(name: str) -> str:
    """A job of this name on partition 0."""
    return next(each for n in range(99) if partition_of(each := f"default/{name}-{n}", LANES) == 0)


class Orchestrated:
    """One orchestrator on two partitions, of which the tests use the first; no lane works.

    Args:
        late: It begins when it is told to, and finds what is there by then as the past of a lost table.
    """

    def __init__(self, *, late: bool = False) -> None:
        limits = LogLimits(
            record_bytes=MAX_RECORD_BYTES - 1_024, topic_bytes={DEAD_LETTERS: MAX_LETTER_BYTES}
        )
        self.cluster = MemoryCluster(dict.fromkeys(TOPICS, LANES), limits=limits)
        self.outside = self.cluster.connect("outside")
        self.log = self.cluster.connect("worker")
        self._late = late

    async def begin(self) -> None:
        """Let the orchestrator begin, unless it is to be late."""
        if not self._late:
            await self.begin_late()

    async def begin_late(self) -> None:
        """Let the orchestrator begin."""
        self.log.start(Orchestrator(self.log, Settings(lanes=LANES), chance=lambda: 0.5).run())
        await asyncio.sleep(5)

    def append(self, value: bytes | None, *, key: bytes | None = b"k", headers: Headers = ()) -> None:
        """Put anything on the log, as somebody else would."""
        self.cluster.partition(JOB_EVENTS, 0).append(key, value, headers, self.cluster.now_ms())

    async def put(self, *events: Event, partition: int = 0) -> None:
        for event in events:
            sent = self.outside.producer.send(
                JOB_EVENTS, write_event(event), key=event.job.encode(), partition=partition
            )
            await (await sent)

    async def good_goal(self) -> None:
        """A goal goes its way, whatever came before it.

        Raises:
            AssertionError: it does not.
        """
        if self._late:
            await self.begin_late()
        name = job(f"good{len(self.cluster.records(ANSWERS))}")
        await self.put(submitted(name))
        await asyncio.sleep(60)
        assert name in {read_command(record).job for record in self.cluster.records(SUBTASKS)}
        await self.put(Planned(job=name, task=PLAN, attempt=1, plan=(SubTask(id="t", goal="do it"),)))
        await self.put(SubTaskSucceeded(job=name, task="t", attempt=1, result=Inline(value=1)))
        await asyncio.sleep(60)
        assert self.answers()[name].outcome == "succeeded"

    def answers(self) -> dict[str, Answer]:
        answers = [read_answer(record) for record in self.cluster.records(ANSWERS)]
        assert len({answer.job for answer in answers}) == len(answers)
        return {answer.job: answer for answer in answers}

    def buried(self) -> list[DeadLetter]:
        return [dead_letters.read(record) for record in self.cluster.records(DEAD_LETTERS)]


def submitted(name: str, **goal: Any) -> JobSubmitted:
    return JobSubmitted(job=name, goal=Goal(text=Inline(value="x"), **goal), source=SOURCE, lanes=LANES)


def planned(name: str, plan: Sequence[SubTask]) -> Planned:
    return Planned(job=name, task=PLAN, attempt=1, plan=tuple(plan))


def written(event: Event, **changed: Any) -> bytes:
    return orjson.dumps(orjson.loads(write_event(event)) | changed)


@pytest.mark.parametrize("late", [False, True])
def test_an_event_of_a_later_version_ends_its_job_with_the_reason(late: bool) -> None:
    """It is buried whole, to be redriven once this program is upgraded; its goal is answered."""

    async def story() -> None:
        here = Orchestrated(late=late)
        await here.begin()
        open_, unknown = job("open"), job("unknown")
        await here.put(submitted(open_), planned(open_, [SubTask(id="a", goal="a")]))
        newer = written(SubTaskSucceeded(job=open_, task="a", attempt=1, result=Inline(value=1)), v=2)
        goal = written(submitted(unknown), v=3)
        here.append(newer, key=open_.encode())
        here.append(goal, key=unknown.encode())
        here.append(written(submitted(unknown), v=2), key=b"no job")
        await asyncio.sleep(5)
        await here.good_goal()
        assert [letter.value for letter in here.buried()][:2] == [newer, goal]
        reasons = [letter.reason for letter in here.buried()]
        assert "schema version 2 is newer than 1" in reasons[0]
        assert "schema version 3 is newer than 1" in reasons[1]
        answers = here.answers()
        assert (answers[open_].outcome, answers[open_].rule) == ("failed", "broken")
        assert "SubTaskSucceeded: v: schema version 2" in answers[open_].reason
        assert (answers[unknown].outcome, answers[unknown].rule) == ("rejected", "rejected")
        assert "schema version 3" in answers[unknown].reason

    run(story())


@pytest.mark.parametrize("late", [False, True])
def test_an_event_on_another_partition_than_its_jobs_is_buried(late: bool) -> None:
    """It would open the job a second time, and answer it twice."""

    async def story() -> None:
        here = Orchestrated(late=late)
        await here.begin()
        name = job("g")
        await here.put(submitted(name))
        await here.put(submitted(name), partition=1)
        await here.good_goal()
        keys = [record.key for record in here.cluster.records(SUBTASKS)]
        assert keys.count(f"{name}/plan/1".encode()) == 1
        (letter,) = here.buried()
        assert letter.reason == f"stands on partition 1, events of {name} on 0"

    run(story())


NAMES = ["@position", "a/@position", "a/b/@goal", "a/b/t0", "a", "", "a/", "/b", "a/b\n", "a/" + "b" * 129]


@pytest.mark.parametrize("name", NAMES, ids=[repr(name[:12]) for name in NAMES])
def test_a_job_of_an_impossible_name_is_buried(name: str) -> None:
    """Its rows would be those of others: of the position, of a goal, of a sub-task."""

    async def story() -> None:
        here = Orchestrated()
        await here.begin()
        here.append(write_event(replace(submitted("a/b"), job=name)), key=name.encode())
        await asyncio.sleep(5)
        assert [letter.reason.partition(" ")[0] for letter in here.buried()] == ["JobSubmitted:"]
        await here.good_goal()

    run(story())


PLANS: dict[str, tuple[SubTask, ...]] = {
    "an id twice": (SubTask(id="a", goal="x"), SubTask(id="a", goal="y")),
    "a cycle": (SubTask(id="a", goal="x", dep=("b",)), SubTask(id="b", goal="y", dep=("a",))),
    "nobody": (SubTask(id="a", goal="x", dep=("none",)),),
    "the goal's row": (SubTask(id="@goal", goal="x"),),
    "another job's row": (SubTask(id="b/c", goal="x"),),
    "the synthesis": (SubTask(id="answer", goal="x"),),
    "too many": tuple(SubTask(id=f"t{n}", goal="x") for n in range(101)),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_job_is_not_opened_again_with_a_plan_that_breaks_the_rules(plan: tuple[SubTask, ...]) -> None:
    """Nobody admitted it; its rows would be those of others, or never all be there."""

    async def story() -> None:
        here = Orchestrated()
        await here.begin()
        name = job("g")
        await here.put(JobReopened(job=name, revision=2, submitted=submitted(name), plan=plan))
        await asyncio.sleep(5)
        assert len(here.buried()) == 1
        assert all(not (record.key or b"").startswith(name.encode()) for record in here.cluster.records(JOBS))
        await here.good_goal()

    run(story())


IMPOSSIBLE: dict[str, dict[str, Any]] = {
    "nothing may run at once": {"limits": Limits(concurrency=0)},
    "less than nothing": {"limits": Limits(concurrency=-3)},
    "no attempt": {"limits": Limits(max_attempts=0)},
    "a time without an end": {"limits": Limits(timeout_s=1e308)},
    "no time": {"limits": Limits(timeout_s=0.0)},
    "a deadline in the past": {"deadline_s": -1.0},
    "a deadline without an end": {"deadline_s": 1e300},
    "a priority of its own": {"priority": 10**18},
    "a tenant with a slash": {"tenant": "a/b"},
}


@pytest.mark.parametrize("goal", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_goal_within_no_bounds_is_buried(goal: dict[str, Any]) -> None:
    """Intake writes none; one would never be answered, or break whoever reckons with it."""

    async def story() -> None:
        here = Orchestrated()
        await here.begin()
        await here.put(submitted(job("bad"), **goal))
        await asyncio.sleep(5)
        assert len(here.buried()) == 1
        await here.good_goal()

    run(story())


def test_results_that_say_a_wrong_size_are_buried() -> None:
    """Together they would make a command that no record can hold."""

    async def story() -> None:
        here = Orchestrated()
        await here.begin()
        name = job("g")
        await here.put(submitted(name), planned(name, [SubTask(id=f"t{n}", goal="x") for n in range(9)]))
        lies = SubTaskSucceeded(job=name, task="t0", attempt=1, result=Inline(value="x" * 900_000), size=5)
        await here.put(lies, replace(lies, size=2**40 * -1))
        await asyncio.sleep(5)
        assert [letter.reason.partition(":")[0] for letter in here.buried()] == ["size", "SubTaskSucceeded"]
        await here.good_goal()

    run(story())


def test_a_command_that_no_record_can_hold_ends_its_job_alone() -> None:
    """No event is at fault, so none is buried for it."""

    async def story() -> None:
        here = Orchestrated()
        await here.begin()
        name = job("wide")
        text = "\x01" * 250_000  # six bytes each in JSON: what a plan weighs does not show it
        plan = [SubTask(id=f"t{n}", goal="x" if n else text) for n in range(100)]
        goal = replace(submitted(name).goal, text=Inline(value=text))
        await here.put(replace(submitted(name), goal=goal), planned(name, plan))
        await asyncio.sleep(5)
        await here.put(SubTaskSucceeded(job=name, task="t0", attempt=1, result=Inline(value=1)))
        failed = SubTaskFailed(job=name, task="", attempt=1, kind="x", reason="\x01" * 4_000, final=True)
        for n in range(1, 100):
            await here.put(replace(failed, task=f"t{n}"))
        await asyncio.sleep(60)
        orders = [read_command(record) for record in here.cluster.records(SUBTASKS)]
        assert "answer" not in {each.task for each in orders if not isinstance(each, StopAttempt)}
        assert here.answers()[name].rule == "broken"
        await here.good_goal()
        assert here.buried() == []

    run(story())


HEADERS: dict[str, tuple[Header, ...]] = {
    "4 MB of headers": tuple(Header(name=f"h{n}", value="v" * 1_000) for n in range(3_900)),
    "base64 that is none": (Header(name="h", value="!!", base64=True),),
}


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS)
def test_an_answer_that_its_headers_keep_from_the_log_comes_without_them(headers: tuple[Header, ...]) -> None:
    """And says so. Before, its job was broken for it, and so was the next answer, without an end."""

    async def story() -> None:
        here = Orchestrated()
        await here.begin()
        name = job("g")
        await here.put(replace(submitted(name), headers=headers))
        await here.put(planned(name, [SubTask(id="t", goal="x")]))
        text = "x" * 200_000
        result = SubTaskSucceeded(job=name, task="t", attempt=1, result=Inline(value=text), size=200_002)
        await here.put(result)
        await asyncio.sleep(60)
        answer = here.answers()[name]
        assert (answer.outcome, answer.value, answer.headers) == ("succeeded", text, ())
        assert answer.reason.startswith("the goal's headers are left out: ")
        await here.good_goal()

    run(story())


def test_the_largest_event_is_a_dead_letter_whole() -> None:
    """By its value, by its key, by its headers: as large as the log takes it."""

    async def story() -> None:
        here = Orchestrated()
        await here.begin()
        large = b"\xff" * (MAX_RECORD_BYTES - 2_048)
        here.append(large)
        here.append(b"", key=large)
        here.append(None, key=None, headers=(("h", large),))
        await asyncio.sleep(60)
        first, second, third = here.buried()
        assert (first.value, second.key, third.headers) == (large, large, (("h", large),))
        await here.good_goal()

    run(story())


class Deaf:
    """A producer to which the log says no for one topic."""

    def __init__(self, log: MemoryLog) -> None:
        self._send = log.producer.send
        self.refused = 0

    async def send(self, topic: str, value: bytes | None, **options: Any) -> "asyncio.Future[int]":
        if topic == JOB_EVENTS:
            self.refused += 1
            raise RecordRefused(f"{topic}: not allowed")
        return await self._send(topic, value, **options)


def test_timers_that_the_log_refuses_break_nothing_and_are_told_once() -> None:
    """They come again each second; the batch they stood beside is not at fault, nor is its owner."""

    async def story() -> None:
        here = Orchestrated()
        deaf = Deaf(here.log)
        here.log._producer = deaf  # type: ignore[assignment]  # what an ACL does to it
        await here.begin()
        with capture_logs() as lines:
            await here.put(submitted(job("late"), deadline_s=1.0), submitted(job("late2"), deadline_s=1.0))
            await asyncio.sleep(120)
            await here.good_goal()
        assert deaf.refused > 100
        assert [line["event"] for line in lines if line["log_level"] == "error"] == ["timers_refused"]
        assert here.buried() == []

    run(story())


def test_a_last_word_has_no_last_word() -> None:
    """Else one that cannot be committed would bring forth the next, without an end."""

    async def story() -> None:
        here = Orchestrated()
        await here.begin()
        name = job("g")
        await here.put(submitted(name))
        await asyncio.sleep(5)
        here.cluster.limits = LogLimits(record_bytes=250, topic_bytes=LETTERS)
        with capture_logs():
            here.append(write_event(JobBroken(job=name, reason="x")), key=name.encode())
            await asyncio.sleep(600)
        assert len(here.cluster.records(JOB_EVENTS)) < 5
        here.cluster.limits = AS_ON_KAFKA
        await here.good_goal()

    run(story())
