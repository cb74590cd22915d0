"""Hostile records on the topics of a whole system in memory: each is accounted for, and none disturbs others.

Many records go into one life of a system, on virtual time, with good goals among them: sentinels, whose
answers must be what they would be alone.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

import orjson
import structlog

from agents.ports import (
    Attempt,
    Done,
    GaveUp,
    ModelReply,
    ModelRequest,
    PlanMade,
    PlanRefused,
    ToolCall,
    ToolReply,
)
from streams import dead_letters
from streams.core.commands import MakePlan, RunSubTask, StopAttempt
from streams.core.events import Event, GoalRejected, JobCancelled, JobSubmitted, SubTaskFailed
from streams.core.job import absorb
from streams.core.results import partition_of
from streams.core.states import Job, New
from streams.damage import misplaced
from streams.dead_letters import DeadLetter
from streams.effects import read_here
from streams.log import Headers, Record
from streams.memory_log import Limits
from streams.memory_log.virtual_time import run
from streams.settings import Settings
from streams.table import Table
from streams.topics import (
    ANSWERS,
    DEAD_LETTERS,
    GOALS,
    JOB_EVENTS,
    JOBS,
    MAX_LETTER_BYTES,
    MAX_RECORD_BYTES,
    SUBTASKS,
    TRANSCRIPTS,
)
from streams.wire.answers import read_answer
from streams.wire.commands import read_command
from streams.wire.envelope import NewerVersion, Unreadable
from streams.wire.events import write_event
from streams.wire.goal_fields import NAME
from streams.wire.rows import parse_row
from streams.wire.transcripts import read_transcript
from tests.agents.scripted_model import said
from tests.hostile import samples
from tests.hostile.mutating import Mutator
from tests.hostile.tally import Tally
from tests.streams.lanes_in_memory import LanesInMemory, sub_task
from tests.streams.scripted import Script, flat
from tests.streams.swarm_in_memory import SwarmInMemory

LIFE: Final = 150
"""Inputs of one life of a system."""

LIFE_S: Final = 240
"""Seconds one life may take, on a machine that does other things as well."""

AS_ON_KAFKA: Final = Limits(
    record_bytes=MAX_RECORD_BYTES - 1_024, topic_bytes={DEAD_LETTERS: MAX_LETTER_BYTES}
)
LANES: Final = 3
PATIENCE_S: Final = 200_000.0
"""Virtual seconds in which all is answered: the longest waits that events can ask for, one by one."""

FAULTS_OF_OURS: Final = frozenset({"goal_broke_intake", "owner_failed", "attempt_broken", "lane_broken"})
"""What the parts log where something happened that nobody thought of."""


class Obliging(Script):
    """Plans anything, and does at once whatever it is told."""

    async def plan(self, command: MakePlan, attempt: Attempt) -> PlanMade | PlanRefused | GaveUp:
        """One to three sub-tasks, by the length of the text."""
        return PlanMade(plan=flat(len(str(command.text)) % 3 + 1))


async def obey(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
    """A moment's work."""
    await asyncio.sleep(0.05)
    return Done(result={"did": command.task})


class System:
    """A swarm in memory of which every record can be asked for."""

    def __init__(self) -> None:
        settings = Settings(lanes=LANES, concurrency=50)
        self.swarm = SwarmInMemory(script=Obliging(work=obey), settings=settings)
        self.cluster = self.swarm.cluster
        self.cluster.limits = AS_ON_KAFKA
        self.worker = self.swarm.worker()

    def put(
        self, topic: str, partition: int, key: bytes | None, value: bytes | None, headers: Headers = ()
    ) -> int:
        """A record that somebody sent."""
        return self.cluster.partition(topic, partition).append(key, value, headers, self.cluster.now_ms())

    def events(self) -> list[tuple[Record, Event | None]]:
        """What is on the log; None for what is no event, or stands on another partition than its job's."""
        return [(record, event_of(record)) for record in self.cluster.records(JOB_EVENTS)]

    def letters(self) -> list[DeadLetter]:
        return [dead_letters.read(record) for record in self.cluster.records(DEAD_LETTERS)]

    def answered(self) -> Counter[tuple[str, int]]:
        """How many answers there are, by job and revision."""
        answers = [read_answer(record) for record in self.cluster.records(ANSWERS)]
        return Counter((answer.job, answer.revision) for answer in answers)

    def opened(self) -> set[str]:
        """Jobs that must be answered."""
        return {e.job for _, e in self.events() if isinstance(e, JobSubmitted | GoalRejected)}

    async def settled(self) -> None:
        """Wait until every record is done and every job answered, once a revision.

        Raises:
            TimeoutError: one never is.
        """
        async with asyncio.timeout(PATIENCE_S):
            while not self._all_done():
                await asyncio.sleep(20)
        await asyncio.sleep(60)  # for answers that must not come
        twice = {name: count for name, count in self.answered().items() if count != 1}
        assert not twice, f"answered more than once: {twice}"

    def _all_done(self) -> bool:
        for topic, group in ((GOALS, "agents"), (SUBTASKS, "agents")):
            done = self.cluster.committed(group, topic)
            for record in self.cluster.records(topic):
                if done.get(record.partition, 0) <= record.offset:
                    return False
        return self.opened() <= {job for job, _ in self.answered()}


def event_of(record: Record) -> Event | None:
    """The event of a record, where it is one."""
    try:
        return read_here(record, LANES)
    except Unreadable:
        return None


def lives(
    kind: str, seed: int, count: int, life: Callable[[Mutator, int, Tally], Coroutine[Any, Any, None]]
) -> Tally:
    """So many inputs in as many lives as they take; whatever a part did not expect is a crash."""
    tally = Tally(kind=kind)
    for number in range(-(-count // LIFE)):
        size = min(LIFE, count - number * LIFE)
        mutator = Mutator(
            seed * 1_000 + number, ("g", "default", "t0", "plan", "answer", "JobSubmitted", "all", "each")
        )
        before = tally.inputs
        what = f"{kind}, seed {seed}, life {number}"
        with structlog.testing.capture_logs() as lines, tally.watching(what, LIFE_S):
            run(life(mutator, size, tally), end_s=10 * PATIENCE_S)
        tally.crashes += [f"{what}: {line}"[:600] for line in lines if line["event"] in FAULTS_OF_OURS]
        tally.inputs = before + size
    return tally


def goals(seed: int, count: int) -> Tally:
    """Goals: a job and its answer, or a dead letter, and an answer ``rejected`` where the id is known."""
    return lives(
        "goals", seed, count, lambda mutator, size, tally: _goals(mutator, size, tally, by_headers=False)
    )


def headers(seed: int, count: int) -> Tally:
    """Headers of goals: CloudEvents in binary mode among them; what is carried comes back on the answer."""
    return lives(
        "headers", seed, count, lambda mutator, size, tally: _goals(mutator, size, tally, by_headers=True)
    )


async def _goals(mutator: Mutator, size: int, tally: Tally, *, by_headers: bool) -> None:
    here = System()
    put: dict[tuple[int, int], tuple[bytes | None, Headers]] = {}
    for number in range(size):
        value, carried = _goal(mutator, number, by_headers=by_headers)
        partition = mutator.chance.randrange(LANES)
        key = mutator.chosen((None, b"", b"k", b"\xff\xfe", b"k" * 10_000))
        put[partition, here.put(GOALS, partition, key, value, carried)] = value, carried
        if number % 20 == 0:
            good = orjson.dumps({"id": f"sentinel-{number}", "goal": "1"})
            here.put(GOALS, partition, None, good)
    await here.settled()
    letters = Counter(
        (letter.place.partition, letter.place.offset)
        for letter in here.letters()
        if letter.place.topic == GOALS
    )
    clashes = {(s.partition, s.offset) for letter in here.letters() if (s := letter.source) is not None}
    jobs = {
        (e.source.partition, e.source.offset): e.job for _, e in here.events() if isinstance(e, JobSubmitted)
    }
    rejected = {
        (e.source.partition, e.source.offset): e.job for _, e in here.events() if isinstance(e, GoalRejected)
    }
    answers = {read_answer(record).job: record for record in here.cluster.records(ANSWERS)}
    for place, (value, carried) in put.items():
        assert (place in jobs) + letters[place] == 1, f"{place}: {value!r:.300}"
        assert place not in rejected or letters[place], place
        name = named(value, carried)
        if letters[place] and name is not None:
            assert rejected.get(place) == name, f"{place}: nobody is told of {name}: {value!r:.300}"
        if place in jobs and place not in clashes:
            assert answers[jobs[place]].headers == carried or len(carried) > 500 or _several(jobs, place), (
                place
            )
        tally.accepted += place in jobs
        tally.refused += place not in jobs or place in clashes
        tally.rejected += place in rejected
    for number in range(0, size, 20):
        assert read_answer(answers[f"default/sentinel-{number}"]).outcome == "succeeded"


def _several(jobs: Mapping[tuple[int, int], str], place: tuple[int, int]) -> bool:
    """Whether other goals have the same job: then the first one's headers are on the answer."""
    return Counter(jobs.values())[jobs[place]] > 1


def _goal(mutator: Mutator, number: int, *, by_headers: bool) -> tuple[bytes | None, Headers]:
    if mutator.chance.random() < 0.02:
        return None, ()
    if mutator.chance.random() < 0.1:
        return mutator.data(mutator.chosen(samples.TEXTS)), mutator.chosen(samples.HEADERS)
    sample: dict[str, Any] = dict(mutator.chosen(samples.GOALS))
    if "id" in sample and mutator.chance.random() < 0.8:
        sample["id"] = f"g{number}"
    if by_headers:
        return orjson.dumps(sample), mutator.headers(mutator.chosen(samples.HEADERS))
    carried = mutator.chosen(samples.HEADERS) if mutator.chance.random() < 0.2 else ()
    return mutator.json(sample, samples.GOALS), carried


def named(value: bytes | None, carried: Headers) -> str | None:
    """The job that a plain JSON goal names beyond doubt, read by another parser than ours."""
    if value is None or any(name.lower().startswith(("content-type", "ce_")) for name, _ in carried):
        return None
    doubled: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        doubled.extend(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        return dict(pairs)

    try:
        fields = json.loads(value.decode(), object_pairs_hook=members, parse_constant=_no_constant)
        orjson.loads(value)  # as strict as RFC 8259
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or doubled or "specversion" in fields:
        return None
    tenant = "default" if fields.get("tenant") is None else fields["tenant"]
    own = fields.get("id")
    right = all(isinstance(each, str) and NAME.fullmatch(each) for each in (tenant, own))
    return f"{tenant}/{own}" if right and not _deep(fields) else None


def _no_constant(word: str) -> None:
    raise ValueError(word)


def _deep(value: Any, levels: int = 100) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inner is not None and (levels == 0 or any(_deep(each, levels - 1) for each in inner))


def events(seed: int, count: int) -> Tally:
    """Events of jobs under way, of unknown ones, in any order: folded, absorbed, or dead letters."""
    return lives("events", seed, count, _events)


async def _events(mutator: Mutator, size: int, tally: Tally) -> None:
    here = System()
    for number in range(6):
        for name in ("sentinel", "victim"):
            await here.swarm.submit({"id": f"{name}-{number}", "goal": "12"}, partition=number % LANES)
    valid, places = samples.of("job-events"), []
    for number in range(size):
        if number % 10 == 0:
            await asyncio.sleep(0.03)
        sample = dict(mutator.chosen(valid))
        sample["job"] = job = mutator.chosen(
            (f"default/victim-{number % 6}", f"default/unknown-{number % 9}")
        )
        if "submitted" in sample:
            sample["submitted"] = sample["submitted"] | {"job": job}
        if "task" in sample and mutator.chance.random() < 0.8:
            sample["task"] = mutator.chosen(("plan", "t0", "t1", "answer"))
            sample["attempt"] = mutator.chosen((1, 1, 1, 2, 3))
        if "lanes" in sample:
            sample["lanes"] = LANES
        value = mutator.json(sample, valid)
        right = mutator.chance.random() < 0.9
        partition = partition_of(job, LANES) if right else mutator.chance.randrange(LANES)
        key = (
            job.encode()
            if mutator.chance.random() < 0.9
            else mutator.chosen((None, b"", b"k", b"default/victim-1"))
        )
        places.append((partition, here.put(JOB_EVENTS, partition, key, value)))
    await asyncio.sleep(30)
    for job in {f"default/{name}-{n}" for n in range(9) for name in ("victim", "unknown")}:
        # Some were made to wait for a person, or for a child that nobody knows: they may.
        partition, cancelled = partition_of(job, LANES), write_event(JobCancelled(job=job))
        here.put(JOB_EVENTS, partition, job.encode(), cancelled)
    await here.settled()
    letters = Counter(
        (letter.place.partition, letter.place.offset)
        for letter in here.letters()
        if letter.place.topic == JOB_EVENTS
    )
    told = {(record.partition, record.offset): event for record, event in here.events()}
    for place in places:
        assert letters[place] == (told[place] is None) or letters[place] == 1, place
        tally.accepted += not letters[place]
        tally.refused += letters[place]
    answers = {read_answer(record).job: read_answer(record) for record in here.cluster.records(ANSWERS)}
    for number in range(6):
        assert answers[f"default/sentinel-{number}"].outcome == "succeeded"
        assert f"default/victim-{number}" in answers
    await _table_is_the_log(here)


async def _table_is_the_log(here: System) -> None:
    """The rows say of every job what its events say, folded anew."""
    buried = {(letter.place.partition, letter.place.offset) for letter in here.letters()}
    for partition in range(LANES):
        table = await Table.restore(here.swarm.cluster.connect("reader"), partition)
        assert not table.damage, table.damage
        jobs: dict[str, Job] = {}
        for record in here.cluster.records(JOB_EVENTS, partition):
            event = event_of(record)
            if event is not None and (partition, record.offset) not in buried:
                jobs[event.job], _ = absorb(jobs.get(event.job, New()), event)
        for job, state in jobs.items():
            assert table[job] == state, f"{job}: {table[job]!r:.300} is not {state!r:.300}"


def commands(seed: int, count: int) -> Tally:
    """Commands to lanes: an event that tells their job how they ended, or a dead letter."""
    return lives("commands", seed, count, _commands)


async def _commands(mutator: Mutator, size: int, tally: Tally) -> None:
    here = LanesInMemory(work=obey, settings=Settings(lanes=2, concurrency=20), script=Obliging)
    here.cluster.limits = AS_ON_KAFKA
    here.worker()
    valid, put = samples.of("subtasks"), dict[tuple[int, int], Record]()
    for number in range(size):
        sample = dict(mutator.chosen(valid)) | {"job": f"default/g{number}", "tools": []}
        for field in ("input", "dep", "results"):
            if field in sample and mutator.chance.random() < 0.7:
                sample[field] = None if field == "input" else []
        key = f"default/g{number}/{sample['task']}/{sample['attempt']}".encode()
        if mutator.chance.random() < 0.2:
            key = mutator.chosen(
                (None, b"", b"\xff", b"default/x/t/0", b"a/b/c/99999999", b"/////", b"k" * 9_000)
            )
        value = mutator.json(sample, valid) if mutator.chance.random() > 0.02 else None
        partition, at = here.cluster.partition(SUBTASKS, number % 2), here.cluster.now_ms()
        offset = partition.append(key, value, (), at)
        put[number % 2, offset] = Record(SUBTASKS, number % 2, offset, at, key, value)
    end = {lane: here.cluster.partition(SUBTASKS, lane).end for lane in range(2)}
    async with asyncio.timeout(PATIENCE_S):
        while any(here.committed(lane) < end[lane] for lane in range(2)):
            await asyncio.sleep(5)
    letters = Counter(
        (letter.place.partition, letter.place.offset)
        for letter in map(dead_letters.read, here.cluster.records(DEAD_LETTERS))
    )
    told = Counter((e.job, getattr(e, "task", ""), getattr(e, "attempt", 0)) for e in here.events())
    named_twice = Counter(_attempt(record) for record in put.values())
    for place, record in put.items():
        attempt = _attempt(record)
        assert letters[place] == (attempt is None), (
            f"{place}: {letters[place]} dead letters, {record.value!r:.300}"
        )
        if attempt is not None:
            # What is stopped before it came, or twice, is told otherwise than once.
            once = not (_is_stop(record) or named_twice[attempt] > 1)
            assert told[attempt] == 1 or not once, f"{attempt} was told {told[attempt]} times"
        tally.took(accepted=attempt is not None)
    told_unreadable = [e for e in here.events() if isinstance(e, SubTaskFailed) and e.kind == "unreadable"]
    tally.rejected += len(told_unreadable)


def _attempt(record: Record) -> tuple[str, str, int] | None:
    try:
        command = read_command(record)
    except Unreadable:
        return None
    return command.job, command.task, command.attempt


def _is_stop(record: Record) -> bool:
    return isinstance(read_command(record), StopAttempt)


def journals(seed: int, count: int) -> Tally:
    """Entries of a journal from which a lane's next owner goes on: every attempt comes to an end."""
    return lives("journals", seed, count, _journals)


async def _asking(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
    """Three calls of a model and one of a tool, each of five seconds; what is recalled is believed."""

    async def model(_: ModelRequest, timeout_s: float) -> ModelReply:
        await asyncio.sleep(5)
        return said("next")

    async def tool(timeout_s: float) -> ToolReply:
        await asyncio.sleep(5)
        return ToolReply(output="ok")

    messages: list[Mapping[str, Any]] = [{"role": "user", "content": command.goal}]
    reply = said("")
    for _ in range(3):
        reply = await attempt.model(ModelRequest(messages=tuple(messages)), model)
        messages.append(dict(reply.message))
    found = await attempt.tool(
        ToolCall(id="call_1", name="t", arguments="{}"), tool, once=command.task == "once"
    )
    return Done(result=[reply.text, found.output], usage=reply.usage)


async def _journals(mutator: Mutator, size: int, tally: Tally) -> None:
    here = LanesInMemory(work=_asking, settings=Settings(lanes=2, concurrency=40))
    here.cluster.limits = AS_ON_KAFKA
    worker = here.worker()
    tasks = [sub_task(mutator.chosen(("t", "once")), job=f"default/g{number}") for number in range(20)]
    for number, command in enumerate(tasks):
        await here.put(command, lane=number % 2)
    await asyncio.sleep(mutator.chosen((0.1, 7.0, 12.0, 17.0)))
    worker.log.kill()
    await asyncio.sleep(1)
    written = [orjson.loads(record.value or b"{}") for record in here.cluster.records(TRANSCRIPTS)]
    valid = [*samples.of("transcripts"), *written]
    for number in range(size):
        command = tasks[number % len(tasks)]
        named_so = {"job": command.job, "task": command.task, "attempt": 1}
        sample = dict(mutator.chosen(valid)) | (named_so if mutator.chance.random() < 0.9 else {})
        value = mutator.json(sample, valid)
        key = f"{command.job}/{command.task}/1".encode() if mutator.chance.random() < 0.95 else b"\xff"
        partition, at = here.cluster.partition(TRANSCRIPTS, number % 2), here.cluster.now_ms()
        offset = partition.append(key, value, (), at)
        tally.took(accepted=_is_an_entry(Record(TRANSCRIPTS, number % 2, offset, at, key, value)))
    here.worker()
    async with asyncio.timeout(PATIENCE_S):
        while any(here.committed(lane) < here.cluster.partition(SUBTASKS, lane).end for lane in range(2)):
            await asyncio.sleep(5)
    told = Counter(event.job for event in here.events())
    assert told.keys() == {command.job for command in tasks}, told
    assert here.cluster.records(DEAD_LETTERS) == []


def _is_an_entry(record: Record) -> bool:
    try:
        read_transcript(record)
    except Unreadable:
        return False
    return True


def rows(seed: int, count: int) -> Tally:
    """Rows of the table, damaged between two owners: every job goes on as if nothing had been."""
    return lives("table rows", seed, count, _rows)


async def _rows(mutator: Mutator, size: int, tally: Tally) -> None:
    here = System()
    for number in range(12):
        await here.swarm.submit({"id": f"g{number}", "goal": "12"}, partition=number % LANES)
    await asyncio.sleep(mutator.chosen((0.02, 0.07, 0.12, 0.3, 30.0)))
    here.worker.kill()
    await asyncio.sleep(20)
    newest = {(r.partition, r.key or b""): r.value for r in here.cluster.records(JOBS)}
    there = [(place, value) for place, value in newest.items() if value is not None]
    others = [orjson.loads(value) for _, value in there]
    for _ in range(size):
        (partition, key), value = mutator.chosen(there)
        if mutator.chance.random() < 0.1:
            key = mutator.chosen(
                (
                    b"",
                    b"\xff\xfe",
                    b"@position2",
                    b"default/g1/@goal/x",
                    b"x" * 5_000,
                    mutator.word().encode(),
                )
            )
        damaged = mutator.json(orjson.loads(value), others)
        if taken := _is_a_row(key, damaged):
            tally.accepted += 1  # and believed: it could be true
        tally.refused += not taken
        if not taken and not _newer(damaged):
            here.put(JOBS, partition, key, damaged)
    here.swarm.worker()
    await here.settled()
    answers = {read_answer(record).id: read_answer(record) for record in here.cluster.records(ANSWERS)}
    phantoms = {e.job for _, e in here.events() if isinstance(e, GoalRejected)}
    assert {f"default/{name}" for name in answers} - phantoms == {
        f"default/g{number}" for number in range(12)
    }
    assert {answers[f"g{number}"].outcome for number in range(12)} == {"succeeded"}
    await _table_is_the_log(here)


def _is_a_row(key: bytes, value: bytes) -> bool:
    try:
        row = parse_row(value)
    except Unreadable:
        return False
    return not misplaced(key.decode(errors="surrogateescape"), row)


def _newer(value: bytes) -> bool:
    try:
        parse_row(value)
    except NewerVersion:
        return True
    except Unreadable:
        return False
    return False
