"""Every kind of connection by every way in, and plain words where there is none."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
import uvloop
from aiokafka import conn
from aiokafka.conn import collect_hosts
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.metadata import MetadataRequest

from streams.access import BadAccess
from streams.kafka import admin
from streams.kafka.connection import client_options
from streams.kafka.faust_agents import FaustAgents
from streams.kafka.log import KafkaLog
from streams.log import Claim, LogUnavailable, NotAllowed
from streams.settings import Settings
from streams.topics import ANSWERS, GOALS, JOB_EVENTS, JOBS, TRANSCRIPTS
from tests.acceptance.conftest import Programs
from tests.secured.kafka import Secured
from tests.secured.running import LANES, environment, system
from tests.secured.token_endpoint import TokenEndpoint

WITHIN_S = 60.0

Ways = Callable[[Secured, TokenEndpoint], Settings]

WAYS: dict[str, Ways] = {
    "SCRAM-SHA-512": lambda secured, _: secured.by_password("worker"),
    "SCRAM-SHA-256": lambda secured, _: secured.by_password("worker", mechanism="SCRAM-SHA-256"),
    "PLAIN": lambda secured, _: secured.by_password("plain", mechanism="PLAIN"),
    "OAUTHBEARER": lambda secured, tokens: secured.by_token(tokens, "worker"),
    "a certificate": lambda secured, _: secured.by_certificate(),
    "no TLS": lambda secured, _: without_tls(secured),
}


def without_tls(secured: Secured) -> Settings:
    settings = secured.by_password("worker", brokers=secured.plain)
    return replace(settings, access=replace(settings.access, protocol="SASL_PLAINTEXT", ca_file=""))


async def test_every_kind_of_connection_by_every_way_in(
    secured: Secured, tokens: TokenEndpoint, programs: Programs
) -> None:
    """Producer, transactions, readers, group, Faust, administration."""
    users = {"worker": "worker", "plain": "worker", "certified": "worker"}
    async with system(secured, programs, users) as here:
        await admin.create(here.settings)
        for number, (name, way) in enumerate(WAYS.items()):
            settings = replace(way(secured, tokens), prefix=here.settings.prefix, lanes=LANES)
            try:
                async with asyncio.timeout(WITHIN_S):
                    await _connect_by_all(here.settings, settings, number)
            except BaseException as error:
                error.add_note(f"by {name}")
                raise


async def _connect_by_all(owner: Settings, settings: Settings, number: int) -> None:
    mine = b"%d" % number
    arrived: asyncio.Queue[tuple[str, bytes | None]] = asyncio.Queue(100)
    assert await admin.check(settings) == ()

    async def own(claim: Claim) -> None:
        while True:
            for record in await claim.batch(None):
                arrived.put_nowait(("group", record.value))
                claim.done(record.offset + 1)

    async def agent(_: int, deliveries: object) -> None:
        async for delivery in deliveries:  # type: ignore[attr-defined]
            arrived.put_nowait(("faust", delivery.record.value))
            delivery.ack()

    async with KafkaLog(settings) as log, log.follow(TRANSCRIPTS, [0]) as coming:
        await (await log.producer.send(TRANSCRIPTS, mine, key=b"k", partition=0))
        assert [record.value for record in await anext(coming)] == [mine]
        async with log.transactions("orchestrator-0") as transactions, transactions.transaction():
            await transactions.send(JOBS, mine, key=b"k", partition=0)
            await transactions.send_all(ANSWERS, 0, [(b"k", mine, ())])
        rows = [record.value async for records in log.read(JOBS, 0) for record in records]
        assert rows[-1] == mine
        assert await log.partitions(JOB_EVENTS) == LANES
        async with KafkaLog(owner) as theirs:
            for topic in (JOB_EVENTS, GOALS):
                await (await theirs.producer.send(topic, mine, key=b"k", partition=0))
        owning = asyncio.create_task(log.own(JOB_EVENTS, "orchestrator", own))
        agents = FaustAgents(settings, {GOALS: agent})
        running = asyncio.create_task(agents.run())
        waiting = {("group", mine), ("faust", mine)}
        while waiting:
            waiting.discard(await arrived.get())
        await agents.commit()
        await agents.stop()
        owning.cancel()
        await asyncio.wait([owning, running])


def changed(settings: Settings, **others: str) -> Settings:
    return replace(settings, access=replace(settings.access, **others))


REFUSED: dict[str, tuple[Ways, str]] = {
    "another password": (
        lambda secured, _: changed(secured.by_password("worker"), password="not-the-one-1"),
        r"does not let worker \(SCRAM-SHA-512\) in: .*invalid credentials.*to do: check .*KAFKA_PASSWORD",
    ),
    "nobody's name": (
        lambda secured, _: changed(secured.by_password("worker"), user="nobody"),
        r"does not let nobody .* in: .*to do: check ANABRANCH_KAFKA_USER",
    ),
    "another authority": (
        lambda secured, _: changed(secured.by_password("worker"), ca_file=str(secured.files["foreign-ca"])),
        r"CERTIFICATE_VERIFY_FAILED.*to do: set ANABRANCH_KAFKA_CA_FILE",
    ),
    "no certificate": (
        lambda secured, _: changed(secured.by_certificate(), certificate_file="", key_file=""),
        r"CERTIFICATE_REQUIRED.*to do: set ANABRANCH_KAFKA_CERTIFICATE_FILE",
    ),
    "a token that has expired": (
        lambda secured, tokens: secured.by_token(expired(tokens), "worker"),
        r"invalid_token.*to do: it does not take the tokens of http://.*/token",
    ),
    "a secret that the endpoint does not know": (
        lambda secured, tokens: changed(secured.by_token(tokens, "worker"), client_secret="not-the-one-1"),
        r"invalid_client.*to do: check .*ANABRANCH_KAFKA_CLIENT_SECRET",
    ),
    "SASL where none is asked for": (
        lambda secured, _: replace(without_tls(secured), brokers=secured.open),
        r"to do: this listener asks for no SASL",
    ),
}


def expired(tokens: TokenEndpoint) -> TokenEndpoint:
    tokens.life_s = -10
    return tokens


@pytest.mark.parametrize("case", REFUSED)
async def test_who_is_not_let_in_reads_why_and_what_to_do_at_once(
    secured: Secured, tokens: TokenEndpoint, case: str
) -> None:
    """Without waiting for brokers that are there, and without the secret; likewise the administration."""
    way, says = REFUSED[case]
    settings = way(secured, tokens)
    for entering in (KafkaLog(settings).__aenter__(), admin.check(settings)):
        with pytest.raises(NotAllowed, match=says) as refused:
            await entering
        assert not any(secret in str(refused.value) for secret in settings.secrets)


@pytest.mark.parametrize(
    ("way", "speaks"),
    [
        (lambda secured: Settings(brokers=secured.sasl), "PLAINTEXT"),
        (lambda secured: Settings(brokers=secured.plain), "PLAINTEXT"),
        (lambda secured: secured.by_password("worker", brokers=secured.plain), "SASL_SSL"),
        (lambda secured: replace(without_tls(secured), brokers=secured.sasl), "SASL_PLAINTEXT"),
    ],
)
async def test_a_listener_that_hangs_up_may_speak_another_protocol(
    secured: Secured, way: Callable[[Secured], Settings], speaks: str
) -> None:
    """Or is just being started, so it is waited for."""
    with pytest.raises(LogUnavailable, match=rf"does this listener speak {speaks}\?.*SECURITY_PROTOCOL"):
        await KafkaLog(way(secured), find_s=0).__aenter__()


async def test_an_endpoint_for_tokens_that_is_away_is_waited_for_and_named(
    secured: Secured, tokens: TokenEndpoint
) -> None:
    """It is no refusal."""
    tokens.fails_with = 503
    with pytest.raises(LogUnavailable, match="answers 503 without a token") as unavailable:
        await KafkaLog(secured.by_token(tokens, "worker"), find_s=0).__aenter__()
    assert not isinstance(unavailable.value, NotAllowed)


@pytest.mark.parametrize("name", ["ca_file", "certificate_file", "key_file"])
async def test_a_file_that_cannot_be_used_is_named(secured: Secured, name: str) -> None:
    """Before any broker is asked, and without a question on the terminal."""
    with pytest.raises(BadAccess, match=f"ANABRANCH_KAFKA_{name.upper()}.*/nowhere.pem"):
        await KafkaLog(changed(secured.by_certificate(), **{name: "/nowhere.pem"})).__aenter__()


async def test_commands_that_are_not_let_in_say_so_in_a_line(secured: Secured, programs: Programs) -> None:
    """No traceback, no retrying, no password."""
    settings = changed(secured.by_password("worker"), password="not-the-one-1")
    commands = [("worker",), ("doctor",), ("submit", "a goal")]
    variables = environment(settings.access)
    for program in [await programs.start(*each, system=settings, **variables) for each in commands]:
        code, said = await program.ended(), program.output
        assert code == (1 if program.name == "doctor" else 3)
        assert "does not let worker" in said
        assert "ANABRANCH_KAFKA_PASSWORD" in said
        assert "Traceback" not in said
        assert "not-the-one-1" not in said
        assert program.name == "doctor" or len(program.lines) == 1, said


def test_a_closed_tls_connection_is_closed(secured: Secured) -> None:
    """On uvloop it would take 30 s where something was asked just before."""

    async def close_while_asking() -> None:
        options = client_options(secured.by_password("worker"))
        ((host, port, _),) = collect_hosts(options.pop("bootstrap_servers"))
        connection = await conn.create_conn(host, port, **options)
        asked = asyncio.ensure_future(connection.send(MetadataRequest([])))
        async with asyncio.timeout(20):
            await connection.close()
        with pytest.raises(KafkaConnectionError):
            await asked

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(close_while_asking())
