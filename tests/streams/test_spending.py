"""What an attempt spends is counted whole, also where no reply came and whoever dies."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from agents.ports import Attempt, Done, GaveUp, ModelError, ModelReply, ModelRequest
from streams.core.commands import RunSubTask
from streams.core.values import Usage
from streams.memory_log.virtual_time import run
from streams.transcript import ModelFailed
from tests.streams.desk import Desk, asks, says, user
from tests.streams.scripted import Script
from tests.streams.swarm_in_memory import SwarmInMemory

LOST = Usage(calls=1, tokens_in=30, tokens_out=800, usd=0.5, estimated=1)
TOLD = Usage(calls=1, tokens_in=7)


def breaks(cost: Usage | None) -> Callable[[ModelRequest, float], Awaitable[ModelReply]]:
    """A model whose reply gets lost, at this cost."""

    async def call(request: ModelRequest, timeout_s: float) -> ModelReply:
        error = ModelError("timeout", "no reply", retry=True)
        error.usage = cost
        raise error

    return call


def test_a_call_without_a_reply_is_counted_and_journaled() -> None:
    """What it may have cost; one that surely cost nothing adds nothing."""

    async def story() -> None:
        desk = Desk()
        for cost in (LOST, None):
            with pytest.raises(ModelError):
                await desk.attempt.model(asks(user("one")), breaks(cost))
        await desk.attempt.model(asks(user("one")), says("at last"))
        await desk.attempt.end()
        assert desk.attempt.usage == LOST + TOLD
        assert desk.attempt.unanswered == LOST
        failed = [entry for entry in desk.journal() if isinstance(entry, ModelFailed)]
        assert [entry.usage for entry in failed] == [LOST, Usage()]

    run(story())


def test_whoever_goes_on_with_an_attempt_knows_what_it_has_spent() -> None:
    """The tries of both, each once, however often the journal is read."""

    async def story() -> None:
        first = Desk()
        for _ in range(2):
            with pytest.raises(ModelError):
                await first.attempt.model(asks(user("one")), breaks(LOST))
        await first.attempt.end()
        second = Desk(before=first)
        assert second.attempt.usage == LOST + LOST
        with pytest.raises(ModelError):
            await second.attempt.model(asks(user("one")), breaks(LOST))
        await second.attempt.model(asks(user("one")), says("at last"))
        await second.attempt.end()
        third = Desk(before=second)
        await third.attempt.model(asks(user("one")), breaks(None))
        assert third.attempt.usage == second.attempt.usage == LOST + LOST + LOST + TOLD

    run(story())


def test_a_call_that_is_cut_off_by_the_attempts_time_may_have_cost_all_it_could() -> None:
    """Nobody knows whether the endpoint went on."""

    async def story() -> None:
        desk = Desk()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5.0):
                await desk.attempt.model(asks(user("one"), max_tokens=90), says("too late", after_s=60))
        assert (desk.attempt.usage.calls, desk.attempt.usage.estimated) == (1, 1)
        assert desk.attempt.usage.tokens_out == 90
        assert desk.attempt.usage.tokens_in > 0

    run(story())


def test_a_job_is_told_of_all_that_its_attempts_may_have_spent() -> None:
    """The agent counts its replies, the lane adds the calls without any."""

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        with pytest.raises(ModelError):
            await attempt.model(asks(user("one")), breaks(LOST))
        reply = await attempt.model(asks(user("one")), says("at last"))
        if command.task == "t1" and command.attempt == 1:
            return GaveUp(kind="refused", reason="no", final=False, usage=reply.usage)
        return Done(result=1, usage=reply.usage)

    async def story() -> None:
        swarm = SwarmInMemory(script=Script(work=work))
        swarm.worker()
        await swarm.submit({"id": "g", "goal": "2"})
        answer = (await swarm.answers(1))["g"]
        assert answer.usage == sum([LOST + TOLD] * 3, Usage())

    run(story())
