"""Attempts that wait for a person: they hold nothing, go on from their journal, and pay for nothing twice."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from agents.ports import Attempt, Done, GaveUp, ModelReply, ModelRequest, ToolCall, ToolReply
from streams.core.commands import RunSubTask
from streams.core.events import SubTaskSuspended
from streams.core.values import Inline, Usage
from streams.memory_log.virtual_time import run
from streams.settings import Settings
from streams.topics import JOB_EVENTS
from streams.wire.events import read_event
from tests.streams.scripted import Script
from tests.streams.swarm_in_memory import SwarmInMemory

ASKS: list[dict[str, Any]] = [{"id": name, "goal": f"do {name}", "dep": []} for name in ("a", "b", "c")]


class Sender:
    """A sub-agent that thinks, sends a mail twice, each time with leave, and thinks again.

    Attributes:
        thought, sent: How often, by sub-task and call.
    """

    def __init__(self) -> None:
        self.thought, self.sent = Counter[tuple[str, int]](), Counter[tuple[str, str]]()

    async def __call__(self, command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        """As :data:`tests.streams.scripted.Work`."""
        if command.job != "default/g":
            return Done(result="done")
        usage = Usage()
        said = []
        for turn in range(3):

            async def think(request: ModelRequest, timeout_s: float, turn: int = turn) -> ModelReply:
                await asyncio.sleep(0.4)
                self.thought[command.task, turn] += 1
                spent = Usage(calls=1, tokens_in=10, tokens_out=5)
                text = {"content": f"{command.task} {turn}"}
                return ModelReply(message=text, finish_reason="stop", usage=spent, model="scripted")

            reply = await attempt.model(ModelRequest(messages=[{"role": "user", "content": "x"}]), think)
            usage += reply.usage
            said.append(reply.text)
            if turn == 2:
                break
            call = ToolCall(id=f"call-{turn}", name="send_mail", arguments="{}")
            leave = await attempt.wait_outside(call, on="approval", args={"to": command.task})
            assert leave.outcome == "approved"

            async def send(timeout_s: float, call: ToolCall = call) -> ToolReply:
                self.sent[command.task, call.id] += 1
                return ToolReply(output="sent")

            await attempt.tool(call, send, once=True)
            usage += Usage(tool_calls=1)
        return Done(result=said, usage=usage)


async def waiting(swarm: SwarmInMemory, count: int) -> list[SubTaskSuspended]:
    """Wait until so many have begun to wait, and return them."""
    for _ in range(600):
        events = [read_event(record) for record in await swarm.records(JOB_EVENTS)]
        found = {(e.task, e.number): e for e in events if isinstance(e, SubTaskSuspended)}
        if len(found) >= count:
            return list(found.values())
        await asyncio.sleep(1)
    raise TimeoutError


@pytest.mark.parametrize("dies_s", [None, 0.2, 0.9, 1.3, 2.5])
def test_an_attempt_that_waits_goes_on_from_its_journal(dies_s: float | None) -> None:
    """With one slot three of them wait at the same time, however their worker dies, over hours."""

    async def story() -> None:
        work = Sender()
        swarm = SwarmInMemory(script=Script(work=work), settings=Settings(concurrency=1, lanes=2))
        worker = swarm.worker()
        await swarm.submit({"id": "g", "goal": "x", "plan": ASKS, "approve": ["tools"], "deadline_s": 50_000})
        for number in (1, 2):
            if dies_s is not None:
                await asyncio.sleep(dies_s)
                worker.kill()
                worker = swarm.worker()
            told = await waiting(swarm, 3 * number)
            assert {(e.args["to"], e.tool) for e in told} == {(t, "send_mail") for t in "abc"}  # type: ignore[index,call-overload]
            assert sum(work.sent.values()) == 3 * (number - 1)
            await asyncio.sleep(2_000)  # longer than any attempt, or a start, may take
            await swarm.submit({"id": f"other-{number}", "goal": "1"})  # and nothing is in its way
            assert (await swarm.answers(number))[f"other-{number}"].outcome == "succeeded"
            await swarm.submit({"approve": "default/g", "by": "ada"})
        answer = (await swarm.answers(3, within_s=600))["g"]
        assert answer.outcome == "succeeded"
        assert answer.by == "ada (claimed)"
        assert isinstance(answer.answer, Inline)
        assert answer.answer.value == {t: [f"{t} 0", f"{t} 1", f"{t} 2"] for t in "abc"}
        assert (answer.usage.calls, answer.usage.tool_calls) == (9, 6)
        assert set(work.sent.values()) == {1}
        if dies_s is None:
            assert set(work.thought.values()) == {1}
        assert [line.attempts for line in answer.subtasks] == [1, 1, 1]

    run(story(), end_s=30_000)
