"""Hostile inputs to one function or one agent at a time: replies of planners and models, tools, records."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import cycle
from typing import Any

import orjson
import structlog
from aiohttp import web
from aiohttp.test_utils import TestServer

from agents.models.faults import RETRY
from agents.models.one_model import OneModel
from agents.models.retry import PatientModel
from agents.planner import ModelPlanner
from agents.ports import Done, GaveUp, ModelError, ModelReply, ModelRequest, PlanMade, ToolCall
from agents.sub_agent import ToolUsingAgent
from agents.tool_turn import Toolbox
from agents.tools.local import LocalTools, local_tool
from streams import dead_letters
from streams.core.admission import problems
from streams.core.commands import MakePlan, RunSubTask
from streams.core.events import Planned
from streams.core.values import Inline
from streams.log import Record
from streams.past import Past
from streams.transcript import ModelCalled
from streams.wire.answers import read_answer, write_answer, write_fitting
from streams.wire.envelope import Unreadable, Unwritable
from streams.wire.events import write_event
from streams.wire.transcripts import asked, read_transcript, request_hash, write_transcript
from streams.wire.values import write_value
from tests.agents.memory_attempt import MemoryAttempt
from tests.agents.scripted_model import ScriptedModel, said
from tests.hostile import samples
from tests.hostile.mutating import Mutator
from tests.hostile.tally import Tally

SLOW_S = 20
"""Seconds one input may take, on a machine that does other things as well."""

ATTEMPT: dict[str, Any] = {"job": "default/g", "task": "t", "attempt": 1}
PLAN = MakePlan(
    job="default/g",
    task="plan",
    attempt=1,
    ordinal=0,
    timeout_s=60,
    text=Inline(value="x"),
    tools=("read",),
)
TASK = RunSubTask(**ATTEMPT, ordinal=1, timeout_s=60, goal="do it", kind="analyze", tools=("noop", "echo"))
REQUEST = ModelRequest(messages=({"role": "user", "content": "hello"},))


async def noop() -> str:
    """Do nothing."""
    return "ok"


def echo(x: int = 0) -> Any:
    """Say it again."""
    return x


TOOLS = LocalTools([local_tool(noop), local_tool(echo)])


def planner_replies(seed: int, count: int) -> Tally:
    """A planner's words: a plan that holds all rules, or reasons."""
    tally, mutator = (
        Tally(kind="planner replies"),
        Mutator(seed, ("id", "goal", "dep", "plan", "tasks", "each")),
    )

    async def story() -> None:
        for number in range(count):
            text, finish = mutator.chosen(samples.REPLIES)
            changed = _reply(mutator, text)
            what = f"planner replies, seed {seed}, input {number}"
            await tally.awaiting(what, SLOW_S, _planned(tally, said(changed, finish=finish)))

    asyncio.run(story())
    return tally


async def _planned(tally: Tally, reply: ModelReply) -> None:
    ended = await ModelPlanner(PatientModel(ScriptedModel(reply)), TOOLS).plan(PLAN, MemoryAttempt())
    if isinstance(ended, PlanMade):
        assert problems(ended.plan, max_subtasks=100) == ()
        write_event(Planned(job="default/g", task="plan", attempt=1, plan=ended.plan))
    else:
        reasons = (ended.reason,) if isinstance(ended, GaveUp) else ended.reasons
        assert all(reasons), reasons
        assert sum(map(len, reasons)) < 20_000
    tally.took(accepted=isinstance(ended, PlanMade))


def _reply(mutator: Mutator, text: str) -> str:
    start = min((at for at in (text.find("["), text.find("{")) if at >= 0), default=-1)
    try:
        value = orjson.loads(text[start:].rstrip("` \n.")) if start >= 0 else None
    except orjson.JSONDecodeError:
        value = None
    if value is None or mutator.chance.random() < 0.3:
        return mutator.data(text.encode(errors="replace")).decode(errors="replace")
    changed = mutator.json(value, [value]).decode(errors="replace")
    return str(
        mutator.chosen(("{}", "```json\n{}\n```", "Here: {}\nDone.", "<think>[1]</think>{}", "{}{}"))
    ).replace("{}", changed)


def model_turns(seed: int, count: int) -> Tally:
    """An endpoint's bodies: a reply that the journal can hold and an agent can go on with, or an error."""
    tally, mutator = (
        Tally(kind="model turns"),
        Mutator(seed, ("stop", "tool_calls", "noop", "assistant", "system")),
    )
    statuses = cycle((*[200] * 30, 400, 401, 403, 404, 408, 413, 418, 429, 500, 503, 529, 204, 302))
    body = b""

    async def answer(_: web.Request) -> web.Response:
        headers = {
            "retry-after": mutator.chosen(("1", "nan", "-1", "soon", "9" * 400)),
            "x-request-id": "r" * 9,
        }
        kind = mutator.chosen(("application/json", "application/json", "text/html", "text/event-stream"))
        return web.Response(status=next(statuses), body=body, headers=headers, content_type=kind)

    async def story() -> None:
        nonlocal body
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer)
        server = TestServer(app)
        await server.start_server()
        client = OneModel(base_url=str(server.make_url("/v1")), api_key="sk-secret-key", model="m")
        for number in range(count):
            sample = mutator.chosen(samples.COMPLETIONS)
            body = mutator.json(sample, samples.COMPLETIONS)
            if mutator.chance.random() < 0.05:
                body = mutator.chosen((b"data: ", b"<html>", b": ping\n\ndata: ")) + body
            await tally.awaiting(f"model turns, seed {seed}, input {number}", SLOW_S, _turn(tally, client))
        await client.close()
        await server.close()

    asyncio.run(story())
    return tally


async def _turn(tally: Tally, client: OneModel) -> None:
    try:
        reply = await client.chat(REQUEST, timeout_s=SLOW_S)
    except ModelError as error:
        _says_why(error.reason)
        tally.took(accepted=error.kind not in RETRY)  # there are no others
        return
    called = ModelCalled(
        **ATTEMPT, run="r", n=1, request=asked(REQUEST, 0), request_hash=request_hash(REQUEST), reply=reply
    )
    written = write_transcript(called)
    assert len(written) < 4_100_000
    assert isinstance(read_transcript(record("transcripts", written)), ModelCalled)
    await _work(reply)
    tally.took(accepted=True)


async def _work(reply: ModelReply) -> None:
    """A sub-agent goes on with this reply, to an end that can be told."""
    agent = ToolUsingAgent(PatientModel(ScriptedModel(reply, said("done"))), TOOLS)
    ended = await agent.run(TASK, MemoryAttempt())
    if isinstance(ended, Done):
        write_value(ended.result)
    else:
        assert isinstance(ended, GaveUp)
        assert ended.reason


def tool_results(seed: int, count: int) -> Tally:
    """What tools are given, return and raise: one reply each, which a model can be told."""
    tally, mutator = Tally(kind="tool results"), Mutator(seed)
    fails = False
    made: Callable[[], Any] = noop

    def does() -> Any:
        value = made()
        if fails:
            raise value
        return value

    def thread(x: Any = 0) -> Any:
        """Do something in a thread."""
        return does()

    async def loop(x: Any = 0) -> Any:
        """Do something on the event loop."""
        return does()

    async def story() -> None:
        nonlocal fails, made
        box = Toolbox(LocalTools([local_tool(thread), local_tool(loop)]), ("thread", "loop"))
        for number in range(count):
            fails = mutator.chance.random() < 0.3
            made = mutator.chosen(samples.RAISED) if fails else partial(samples.an_object, mutator.chance)
            arguments = "{}"
            if mutator.chance.random() < 0.2:
                arguments = mutator.json({"x": 1}).decode(errors="replace")
            call = ToolCall(id="c", name=mutator.chosen(("thread", "loop")), arguments=arguments)
            await tally.awaiting(
                f"tool results, seed {seed}, input {number}", SLOW_S, _called(tally, box, call)
            )

    with structlog.testing.capture_logs():
        asyncio.run(story())
    return tally


async def _called(tally: Tally, box: Toolbox, call: ToolCall) -> None:
    reply = await box.run(call, MemoryAttempt())
    write_value(reply.output)
    tally.took(accepted=reply.error is None)


def transcripts(seed: int, count: int) -> Tally:
    """Records of a journal: read or said to be none, and never a fault of whoever goes on from them."""
    tally, mutator = Tally(kind="transcripts"), Mutator(seed)
    valid = samples.of("transcripts")

    async def story() -> None:
        past = Past()
        for number in range(count):
            with tally.watching(f"transcripts, seed {seed}, input {number}", SLOW_S):
                made = record("transcripts", mutator.json(mutator.chosen(valid), valid))
                past.add(made)
                tally.took(accepted=_readable(read_transcript, made) is not None)

    asyncio.run(story())
    return tally


def answers(seed: int, count: int) -> Tally:
    """Answers that somebody else wrote: read, and written again, or said to be none."""
    tally, mutator = Tally(kind="answers"), Mutator(seed)
    valid = samples.of("answers")
    for sample in valid:
        sample.pop("headers")
        sample["job"] = "default/g"
        if (given := sample.pop("answer")) is not None:
            sample["answer"] = given["value"]
    for number in range(count):
        with tally.watching(f"answers, seed {seed}, input {number}", SLOW_S):
            headers = mutator.headers(mutator.chosen(samples.HEADERS))
            answer = _readable(
                read_answer, record("answers", mutator.json(mutator.chosen(valid), valid), headers)
            )
            if answer is not None:
                assert write_answer(answer)[1] == headers
                with suppress(Unwritable):
                    write_fitting(answer, 4_000)
            tally.took(accepted=answer is not None)
    return tally


def letters(seed: int, count: int) -> Tally:
    """Dead letters as anyone may make them look: each is read, and can be buried again."""
    tally, mutator = Tally(kind="dead letters"), Mutator(seed, ("anabranch-reason", "anabranch-partition"))
    for number in range(count):
        with tally.watching(f"dead letters, seed {seed}, input {number}", SLOW_S):
            original = record(
                "goals", mutator.data(b"x" * 20), mutator.headers(mutator.chosen(samples.HEADERS))
            )
            key, value, headers = dead_letters.write(original, mutator.word())
            kept = dead_letters.read(Record("dead-letters", 0, 0, 0, key, value, headers))
            assert (kept.key, kept.value, kept.headers) == (original.key, original.value, original.headers)
            foreign = Record("dead-letters", 0, 0, 0, key, value, mutator.headers(headers))
            again = dead_letters.write(foreign, dead_letters.read(foreign).reason)
            dead_letters.write_without_value(foreign, "again")
            tally.took(accepted=bool(dead_letters.read(Record("dead-letters", 0, 0, 0, *again)).place.topic))
    return tally


def record(topic: str, value: bytes | None, headers: Any = ()) -> Record:
    """A record somewhere on a topic."""
    return Record(topic, 3, 77, 1_790_000_000_000, b"default/g", value, headers)


def _readable(read: Callable[[Record], Any], made: Record) -> Any:
    try:
        return read(made)
    except Unreadable as error:
        _says_why(str(error))
        return None


def _says_why(reason: str) -> None:
    """In a few words, and without the key."""
    assert 0 < len(reason) < 1_000, reason[:300]
    assert "sk-secret-key" not in reason
