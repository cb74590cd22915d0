"""A system works with the ACLs that the command prints, and everybody may do only that."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import TypeVar

import orjson
import pytest
from aiokafka.errors import KafkaError
from typer.testing import CliRunner

from streams import dead_letters
from streams.acls import PARTS, Acl, acls, commands
from streams.cli import app
from streams.core.values import Json
from streams.kafka import admin
from streams.kafka.allowed import missing
from streams.kafka.errors import in_our_words
from streams.kafka.log import KafkaLog
from streams.kafka.reading import make_consumer
from streams.kafka.transactions import KafkaTransactions
from streams.letters import Wanted, find
from streams.log import Log, NoSuchTopic, NotAllowed, Record
from streams.redriving import Done, redrive
from streams.replay.recording import record_job
from streams.settings import Settings
from streams.topics import ANSWERS, DEAD_LETTERS, GOALS, JOB_EVENTS, JOBS, SUBTASKS, TRANSCRIPTS
from tests.acceptance.conftest import Programs
from tests.secured.kafka import Secured, allow
from tests.secured.running import LANES, System, as_kafka_says, decisions, system
from tests.secured.token_endpoint import TokenEndpoint

USERS = {user: user for user in PARTS}
LARGE = "Compare these brokers. " * 600
"""A text of more than 8 KB, which goes by claim check."""


@pytest.mark.parametrize("prefix", ["anabranch.", ""])
def test_each_acl_stands_once_and_in_every_form(prefix: str) -> None:
    """The table, JSON and the lines of kafka-acls.sh say the same; without a prefix each topic is named."""
    settings = Settings(prefix=prefix)
    for part in PARTS:
        granted = acls(settings, [part])
        names = [(acl.resource, acl.name, acl.pattern, acl.operation) for acl in granted]
        assert len(set(names)) == len(names)
        assert all(acl.name for acl in granted)
        assert sorted(names) == sorted(
            (resource, name, pattern, operation)
            for line in commands(settings, granted, "User:me")
            for resource, name, pattern, operation in _in_line(line)
        )
        said = CliRunner().invoke(app, ["acls", part, "--json", "--prefix", prefix])
        printed = [orjson.loads(line) for line in said.stdout.splitlines()]
        assert [(a["resource"], a["name"], a["pattern"], a["operation"]) for a in printed] == names
        assert {a["principal"] for a in printed} == {f"User:anabranch-{part}"}


def _in_line(line: str) -> list[tuple[str, str, str, str]]:
    words = shlex.split(line)
    options = list(pairwise(words))
    pattern = next((value for option, value in options if option == "--resource-pattern-type"), "literal")
    return [
        (resource, name, pattern, operation)
        for option, operation in options
        if option == "--operation"
        for resource in ("topic", "group", "transactional-id")
        for named, name in options
        if named == f"--{resource}"
    ]


def test_a_part_that_is_none_is_a_usage_error() -> None:
    """It names those that there are."""
    said = CliRunner().invoke(app, ["acls", "workers"])
    assert said.exit_code == 2
    assert "watcher" in said.stderr


async def test_each_acl_that_a_worker_lacks_is_told_before_it_begins(
    secured: Secured, tokens: TokenEndpoint, programs: Programs
) -> None:
    """One taken away at a time: that one is missed, and no other."""
    async with system(secured, programs, {}) as here:
        await admin.create(here.settings)
        needed = acls(here.settings, ["worker"])

        async def without(lacking: Acl) -> Settings:
            user = f"without-{needed.index(lacking)}-{here.settings.prefix}"
            tokens.secrets[user] = "a secret of this user 1"
            await allow(secured, user, [acl for acl in needed if acl != lacking])
            return secured.by_token(tokens, user, prefix=here.settings.prefix, lanes=LANES)

        for lacking in needed:
            assert await missing(await without(lacking), "worker") == (lacking,)
        program = await here.worker(await without(needed[0]))
        assert await program.ended() == 1
        assert f"{needed[0].operation} {needed[0].resource} {needed[0].name}" in program.output
        assert "anabranch acls worker" in program.output
        assert await missing(here.settings, "worker") == ()


async def test_everybody_is_refused_what_is_not_on_their_list(secured: Secured, programs: Programs) -> None:
    """With words that say so; and what is refused did not happen."""
    async with system(secured, programs, USERS) as here:
        await admin.create(here.of("operator"))

        def reads(user: str, topic: str) -> Awaitable[object]:
            return _with_log(here.of(user), lambda log: _all(log, topic))

        def writes(user: str, topic: str) -> Awaitable[object]:
            return _with_log(here.of(user), lambda log: _write(log, topic))

        def owns(user: str, group: str) -> Awaitable[object]:
            return _join(here.of(user), group)

        owner = Settings(brokers=secured.open, prefix=here.settings.prefix)
        await _with_log(owner, lambda log: _write_all(log, (ANSWERS, GOALS, JOB_EVENTS, TRANSCRIPTS)))
        for refused in (
            reads("submitter", ANSWERS),
            reads("submitter", GOALS),
            reads("submitter", JOB_EVENTS),
            reads("reader", JOB_EVENTS),
            reads("watcher", ANSWERS),
            reads("operator", TRANSCRIPTS),
            writes("reader", GOALS),
            writes("submitter", JOB_EVENTS),
            writes("watcher", GOALS),
            writes("auditor", ANSWERS),
            writes("operator", ANSWERS),
            owns("submitter", "agents"),
            owns("auditor", "orchestrator"),
            _with_log(here.of("submitter"), _take_over),
            _with_log(here.of("auditor"), _take_over),
        ):
            with pytest.raises(NotAllowed):
                async with asyncio.timeout(30):
                    await refused
        with pytest.raises(NoSuchTopic):
            await _with_log(here.of("stranger"), lambda log: log.partitions(JOB_EVENTS))
        for user in ("worker", "auditor", "submitter"):
            await admin.delete(here.of(user))
        assert await admin.check(here.of("operator")) == ()
        of_reader = {problem.topic: problem.what for problem in await admin.check(here.of("reader"))}
        assert "configuration" in of_reader[here.settings.prefix + ANSWERS]
        assert "may not be seen" in of_reader[here.settings.prefix + GOALS]
        for topic in (GOALS, ANSWERS):
            assert len(await _with_log(owner, partial(_all, topic=topic))) == 1


T = TypeVar("T")


async def _with_log(settings: Settings, do: Callable[[KafkaLog], Awaitable[T]]) -> T:
    async with KafkaLog(settings) as log:
        return await do(log)


async def _write(log: Log, topic: str) -> None:
    await (await log.producer.send(topic, b"{}", key=b"k", partition=0))


async def _write_all(log: Log, topics: Iterable[str]) -> None:
    for topic in topics:
        await _write(log, topic)


async def _take_over(log: Log) -> None:
    async with log.transactions("orchestrator-0"):
        pass


async def _join(settings: Settings, group: str) -> None:
    consumer = make_consumer(settings, group_id=settings.prefix + group)
    consumer.subscribe([settings.prefix + GOALS])
    try:
        await consumer.start()
        await consumer.getmany(timeout_ms=10_000)
    except KafkaError as error:
        raise in_our_words(error, "joining") from error
    finally:
        await consumer.stop()


async def test_a_right_that_is_taken_away_is_an_outage(secured: Secured, programs: Programs) -> None:
    """No fault of the records': they are not buried, and land once the right is back."""
    user = "stranger"
    async with system(secured, programs, {}) as here:
        await admin.create(here.settings)
        needed = acls(here.settings, ["worker"])
        answers = [acl for acl in needed if acl.name.endswith(ANSWERS) and acl.operation == "Write"]
        await allow(secured, user, [acl for acl in needed if acl not in answers])
        async with KafkaLog(here.of(user)) as log:
            with pytest.raises(NotAllowed, match=r"TopicAuthorizationFailedError.*anabranch acls"):
                await _write(log, ANSWERS)
            async with log.transactions("orchestrator-0") as transactions:
                with pytest.raises(NotAllowed, match="TopicAuthorizationFailedError"):
                    await _answer(transactions, refused=True)
            await allow(secured, user, answers)
            await _write(log, ANSWERS)
            async with log.transactions("orchestrator-0") as transactions:
                await _answer(transactions, refused=False)
            assert len(await _all(log, ANSWERS)) == 2


async def _answer(transactions: KafkaTransactions, *, refused: bool) -> None:
    async with transactions.transaction():
        await transactions.send_all(ANSWERS, 0, [(b"k", b"{}", ())])
        async with asyncio.timeout(30):
            while refused and transactions._producer._txn_manager.is_in_transaction():
                await asyncio.sleep(0.01)  # it comes while the transaction is filled
        await transactions.send_all(JOBS, 0, [(b"k", b"{}", ())])


async def test_the_whole_path_with_these_acls_and_no_others(
    secured: Secured, tokens: TokenEndpoint, programs: Programs
) -> None:
    """From a goal to its answer, everybody by a way of their own; each ACL is needed, none is missing."""
    async with system(secured, programs, USERS) as here:
        assert len(await admin.create(here.of("operator"))) == 7
        assert await admin.check(here.of("operator")) == ()
        await _leave_something_to_find(here)
        of_worker = here.of("worker")
        by_token = secured.by_token(tokens, "worker", prefix=of_worker.prefix, lanes=LANES)
        workers = [await here.worker(of_worker), await here.worker(by_token)]
        for worker in workers:
            await worker.says("worker_started")
        async with (
            here.swarm(here.of("submitter", mechanism="SCRAM-SHA-256")) as submitter,
            here.swarm(here.of("reader")) as reader,
            here.swarm(here.of("watcher")) as watcher,
        ):
            jobs = [await submitter.submit(f"[[plan 3]] {n}", id=f"g{n}") for n in range(4)]
            # Its sub-agent asks for a job of its own, which a lane puts on `goals`.
            hand_over: list[dict[str, Json]] = [{"id": "a", "goal": "Hand it over", "input": "all"}]
            given: Json = [{"goal": "Count the boats [[plan 1]]"}]
            jobs.append(
                await submitter.submit("Hand it over", plan=hand_over, input=given, tools=["submit_goal"])
            )
            jobs.append(await submitter.submit(LARGE, id="large"))
            for partition in range(LANES):
                sent = submitter.log.producer.send(GOALS, b"\xff poison", key=b"", partition=partition)
                await (await sent)
            answers = [await reader.wait(job, within_s=60) for job in jobs]
            assert {answer.outcome for answer in answers} == {"succeeded"}, answers
            assert [event async for event in watcher.events(jobs[-1], within_s=60)]
            assert await _all(reader.log, TRANSCRIPTS)  # as an answer over 256 KB would
        async with KafkaLog(here.of("operator")) as log:
            assert len([dead_letters.read(record) for record in await _all(log, DEAD_LETTERS)]) == 3 * LANES
            await _bury_some(here)
            chosen = await find(log, range(LANES), Wanted(reason="too large"))
            outcomes = [each async for each in redrive(log, chosen, lanes=LANES, by="operator")]
            assert [isinstance(each, Done) for each in outcomes] == [True] * 3, outcomes
        async with KafkaLog(here.of("auditor")) as log:
            recording = await record_job(log, jobs[0])
            assert all((recording.events, recording.transcripts, recording.answers))
        for worker in workers:
            assert await worker.stop() == 0, worker.output
        await _nothing_missing_and_nothing_superfluous(here)


async def _leave_something_to_find(here: System) -> None:
    """Where a worker looks before it folds its first event."""
    stranger = Record(GOALS, 0, 10**9, 0, None, b"not a goal")
    key, value, headers = dead_letters.write(stranger, "left by a test")
    async with KafkaLog(here.settings) as log:
        for partition in range(LANES):
            # Without a table, and with an event on the log, it asks what was answered and buried.
            await (await log.producer.send(JOB_EVENTS, b"no event", key=b"default/g0", partition=partition))
        for topic in (ANSWERS, DEAD_LETTERS):
            for partition in range(LANES):
                await (await log.producer.send(topic, value, key=key, partition=partition, headers=headers))


async def _bury_some(here: System) -> None:
    """Records of every topic that takes them back, without their values."""
    async with KafkaLog(here.settings) as log:
        for topic, key in ((GOALS, b""), (SUBTASKS, b"default/g0/t1/9"), (JOB_EVENTS, b"default/g0")):
            offset = await (await log.producer.send(topic, b"\xff", key=key, partition=0))
            record = Record(topic, 0, offset, 0, key, b"\xff")
            _, value, headers = dead_letters.write_without_value(record, "too large")
            await (await log.producer.send(DEAD_LETTERS, value, key=key, partition=0, headers=headers))


async def _all(log: Log, topic: str) -> list[Record]:
    return [record for p in range(LANES) async for records in log.read(topic, p) for record in records]


async def _nothing_missing_and_nothing_superfluous(here: System) -> None:
    made = list(decisions(here.secured.log, here.settings.prefix))
    denied = {(d.user, d.operation, d.resource, d.name) for d in made if not d.allowed}
    assert denied == set()
    for user, part in USERS.items():
        used = {d.acl for d in made if d.user == user and d.acl is not None and d.operation == d.acl[3]}
        unused = {as_kafka_says(acl) for acl in acls(here.settings, [part])} - used
        assert unused == set(), f"{part} does not need them"
