"""Secrets planted in every place are in no output: logs, records, exports, what commands print."""

import json
import secrets as chance
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiohttp import web

from streams import dead_letters
from streams.broker.node import HOST, free_port
from streams.kafka import admin
from streams.kafka.log import KafkaLog
from streams.log import Headers, Record
from streams.redaction import HIDDEN, REDACTED
from streams.topics import ANSWERS, DEAD_LETTERS, GOALS, JOB_EVENTS, TRANSCRIPTS, topics
from streams.wire.answers import read_answer
from tests.acceptance.conftest import Programs
from tests.secured.kafka import Secured
from tests.secured.running import LANES, System, environment, system
from tests.secured.token_endpoint import TokenEndpoint

KEY = "the\"model's\\key/of+7=parts"
"""Looks like no key at all, and has what JSON and Python write otherwise."""
LEAKS = {
    "LEAK_BEARER": "qwertzuiop1234567890",
    "LEAK_COOKIE": "session-0123456789",
    "LEAK_URL": "https://someone:hunter2hunter2@example.org/",
    "LEAK_PROVIDER_KEY": "sk-proj-8hTqLm2VbN4cXyZ",
}
SENDERS = "Bearer of-the-sender-1234567890"
"""The sender's own; it comes back on the answer, and stays on a dead letter."""
LEAKY = "from tests.secured.leaky_worker import leaky_worker; leaky_worker()"


@asynccontextmanager
async def echoing_endpoint() -> AsyncIterator[str]:
    """A model endpoint that tells whoever asks what they sent, the key among it."""

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "echo"}]})

    async def chat(request: web.Request) -> web.Response:
        body, sent = await request.text(), request.headers["Authorization"]
        if "REFUSE" in body:
            said = (
                f"Incorrect API key provided: {sent.removeprefix('Bearer ')}. Headers: authorization: {sent}"
            )
            return web.json_response(
                {"error": {"message": said, "type": "invalid_request_error"}}, status=400
            )
        message = {"role": "assistant", "content": f"You sent {sent}, and {json.dumps(sent)}."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"id": "1", "model": "echo", "choices": [choice]})

    app = web.Application()
    app.router.add_get("/v1/models", models)
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, HOST, port).start()
    try:
        yield f"http://{HOST}:{port}/v1"
    finally:
        await runner.cleanup()


def goals() -> dict[str, dict[str, Any]]:
    """Goals that bring a secret about, by id."""
    one = {"tools": ["tell_all", "break_down"]}
    return {
        "echoed": {"goal": "Say it", "plan": [{"id": "a", "goal": "ECHO"}]},
        "refused": {"goal": "Say no", "plan": [{"id": "a", "goal": "REFUSE"}]},
        "told": {"goal": "Tell", "plan": [{"id": "a", "tool": "tell_all"}], **one},
        "broken": {"goal": "Break", "plan": [{"id": "a", "tool": "break_down"}], **one},
        "pasted": {"goal": f"Why is {KEY} refused?", "plan": [{"id": "a", "goal": f"Ask {KEY}"}]},
        "large": {
            "goal": "Read it",
            "input": [KEY, "x" * 9_000, KEY],
            "plan": [{"id": "a", "goal": "Read", "input": "all"}],
        },
    }


async def test_no_secret_gets_out(
    secured: Secured, tokens: TokenEndpoint, programs: Programs, tmp_path: Path
) -> None:
    """Those of the process nowhere; what looks like one in no log, reason or output of a tool."""
    tokens.secrets["worker"] = f'client "{chance.token_hex(4)}" secret'
    async with echoing_endpoint() as url, system(secured, programs, {"worker": "worker"}) as here:
        await admin.create(here.settings)
        settings = replace(
            secured.by_token(tokens, "worker"), prefix=here.settings.prefix, lanes=LANES, api_key=KEY
        )
        variables = {
            **environment(settings.access),
            **LEAKS,
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": url,
        }
        worker = await programs.start(
            "worker", "--json", "--log-level", "DEBUG", system=settings, code=LEAKY, **variables
        )
        await worker.says("worker_started")
        async with KafkaLog(here.settings) as log:
            headers: Headers = (("authorization", SENDERS.encode()), ("x-key", KEY.encode()))
            for number, (name, fields) in enumerate(goals().items()):
                value = json.dumps({"id": name, **fields}).encode()
                await (
                    await log.producer.send(GOALS, value, key=b"", partition=number % LANES, headers=headers)
                )
            poison = f"\0 no goal, with {KEY}".encode() + b"\xff"
            await (await log.producer.send(GOALS, poison, key=b"", partition=0, headers=headers))
            async with here.swarm(here.settings) as swarm:
                answers = {name: await swarm.wait(f"default/{name}", within_s=60) for name in goals()}
            assert await worker.stop() == 0
            records = [
                record
                for topic in topics(here.settings)
                for partition in range(LANES)
                async for batch in log.read(topic.name, partition)
                for record in batch
            ]
        outcomes = {name: answer.outcome for name, answer in answers.items()}
        assert outcomes == dict.fromkeys(goals(), "succeeded") | dict.fromkeys(
            ("refused", "broken"), "failed"
        )
        outputs = {"the worker": "\n".join(worker.lines)}
        for record in records:
            if record.topic != GOALS:
                outputs[f"{record.topic}[{record.partition}]@{record.offset}"] = _text(record)
        await _commands(here, outputs, tmp_path, variables)

        planted = {KEY, json.dumps(KEY)[1:-1], repr(KEY)[1:-1], tokens.secrets["worker"], *tokens.given}
        planted |= {*LEAKS.values(), "hunter2hunter2", LEAKS["LEAK_BEARER"]}
        for place, text in outputs.items():
            for secret in planted:
                assert secret not in text, f"{secret} is in {place}"
        _is_hidden_where_it_was(records, answers)
        _senders_own_stays(records)


def _text(record: Record) -> str:
    parts = [record.value, record.key, *(each for _, each in record.headers)]
    return "\n".join((part or b"").decode(errors="replace") for part in parts)


async def _commands(
    here: System, outputs: dict[str, str], directory: Path, variables: dict[str, str]
) -> None:
    """What the commands print, of exports and dead letters, and about the settings."""
    exported = directory / "told.jsonl"
    settings = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": variables["OPENAI_BASE_URL"]}
    commands = [
        ("export", "told", str(exported)),
        ("replay", "refused", "--calls"),
        ("dead-letters", "list"),
        ("doctor",),
    ]
    for program in [await here.programs.start(*each, system=here.settings, **settings) for each in commands]:
        assert await program.ended() in {0, 1}
        outputs[program.name] = program.output
    outputs["the export"] = exported.read_text(encoding="utf-8")


def _is_hidden_where_it_was(records: list[Record], answers: dict[str, Any]) -> None:
    """What was there is not just missing."""
    hidden = HIDDEN.encode()
    for topic in (JOB_EVENTS, TRANSCRIPTS, ANSWERS, DEAD_LETTERS):
        assert any(hidden in (record.value or b"") for record in records if record.topic == topic), topic
    assert HIDDEN in str(answers["echoed"].value)
    assert "<key>" in answers["refused"].subtasks[0].reason  # the model client knows it, too
    assert HIDDEN in answers["broken"].subtasks[0].reason
    told = answers["told"].value
    assert told["headers"] == {"Authorization": HIDDEN, "Cookie": HIDDEN}
    assert told["said"] == [f"401 for Authorization: Bearer {HIDDEN} at https://{HIDDEN}@example.org/"]
    assert told["environment"]["OPENAI_API_KEY"] == HIDDEN


def _senders_own_stays(records: list[Record]) -> None:
    """A goal's headers come back, and a dead letter is whole but for what is ours, and says so."""
    for record in records:
        if record.topic == ANSWERS:
            assert ("authorization", SENDERS) in [(h.name, h.value) for h in read_answer(record).headers]
    (letter,) = [dead_letters.read(record) for record in records if record.topic == DEAD_LETTERS]
    assert dict(letter.headers)["authorization"] == SENDERS.encode()
    assert dict(letter.headers)[REDACTED] == b"value,x-key"
    assert letter.value == f"\0 no goal, with {HIDDEN}".encode() + b"\xff"
