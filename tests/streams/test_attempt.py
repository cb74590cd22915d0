"""One attempt: its calls on the journal in order, its slot given back while it waits, its time kept."""

import asyncio
from typing import Any

import pytest

from agents.ports import ModelError, ModelReply, ModelRequest, ToolCall, ToolReply, ToolSpec
from streams.claims import Resolver
from streams.core.events import NoteWritten
from streams.core.values import Inline, Json, Reference
from streams.log import RecordRefused
from streams.memory_log import Faults
from streams.memory_log.virtual_time import run
from streams.topics import TRANSCRIPTS
from streams.transcript import ModelCalled, ModelFailed, ToolCalled, ToolStarted, ValueChunk
from streams.wire.envelope import Unwritable
from streams.wire.transcripts import request_hash
from tests.streams.desk import LOOK, Desk, asks, fails, refuses, says, tool, user


def test_each_call_is_recorded_with_what_is_new_in_it() -> None:
    """Numbered from 1; the last call's messages and its reply are not written again."""

    async def story() -> None:
        desk = Desk()
        spec = ToolSpec(name="look", description="d", parameters={})
        first = asks(user("one"), user("two"), tools=(spec,), max_tokens=9, json_object=True, model="m2")
        reply = await desk.attempt.model(first, says("look"))
        await desk.attempt.tool(LOOK, tool({"seen": [1]}))
        answer: dict[str, Json] = {"role": "tool", "content": "1"}
        second = asks(user("one"), user("two"), dict(reply.message), answer)
        await desk.attempt.model(second, says("done"))
        await desk.attempt.recorded()
        one, looked, two = desk.journal()
        for entry in (one, looked, two):
            assert (entry.job, entry.task, entry.attempt, entry.run) == ("default/g", "t", 3, "run-1")
        assert isinstance(one, ModelCalled)
        assert (one.n, one.reply, one.request_hash) == (1, reply, request_hash(first))
        assert (one.request.seen, one.request.messages) == (0, Inline(value=[user("one"), user("two")]))
        assert (one.request.tools, one.request.max_tokens, one.request.json_object) == (("look",), 9, True)
        assert one.request.model == "m2"
        assert isinstance(looked, ToolCalled)
        assert (looked.call, looked.output) == (LOOK, Inline(value={"seen": [1]}))
        assert (looked.error, looked.latency_ms) == (None, 2.5)
        assert isinstance(two, ModelCalled)
        assert (two.n, two.request.seen, two.request.messages) == (2, 3, Inline(value=[answer]))
        assert two.request_hash == request_hash(second)
        assert {record.key for record in desk.cluster.records(TRANSCRIPTS, 1)} == {b"default/g/t/3"}

    run(story())


def test_tries_without_a_reply_are_recorded_under_the_call_they_belong_to() -> None:
    """They do not count as calls, and the next call counts its own."""

    async def story() -> None:
        desk = Desk()
        request = asks(user("one"))
        for _ in range(2):
            with pytest.raises(ModelError, match="529"):
                await desk.attempt.model(request, fails)
        await desk.attempt.model(request, says("at last"))
        with pytest.raises(ModelError, match="no"):
            await desk.attempt.model(asks(user("one"), user("at last"), user("more")), refuses)
        await desk.attempt.end()
        journal = desk.journal()
        assert [type(entry) for entry in journal] == [ModelFailed, ModelFailed, ModelCalled, ModelFailed]
        assert [entry.n for entry in journal] == [1, 1, 1, 2]
        assert [(f.tried, f.kind, f.wait_s, f.decision) for f in journal if isinstance(f, ModelFailed)] == [
            (1, "overloaded", 3.0, "retry"),
            (2, "overloaded", 3.0, "retry"),
            (1, "content_filter", None, "give_up"),
        ]
        assert [
            (f.request.seen, f.request.messages) for f in journal if isinstance(f, ModelFailed) and f.request
        ] == [
            (0, Inline(value=[user("one")])),
            (0, Inline(value=[user("one")])),
            (2, Inline(value=[user("more")])),
        ]

    run(story())


def test_calls_side_by_side_wait_for_the_same_reply() -> None:
    """Two tools that one turn asks for: neither begins before the turn is on the journal."""

    async def story() -> None:
        desk = Desk(faults=Faults(delay_s=5.0))
        counts = []

        async def look(timeout_s: float) -> ToolReply:
            counts.append(len(desk.journal()))
            return await tool("y")(timeout_s)

        await desk.attempt.model(asks(user("a")), says("x"))
        calls = (ToolCall(id=name, name="look", arguments="{}") for name in "ab")
        await asyncio.gather(*(desk.attempt.tool(call, look) for call in calls))
        assert counts == [1, 1]
        await desk.attempt.end()

    run(story())


def test_a_reply_is_on_the_journal_before_the_next_call_begins() -> None:
    """Whoever dies in a call never makes the one before it again."""

    async def story() -> None:
        desk = Desk(faults=Faults(delay_s=5.0))
        counts = []

        async def call(request: ModelRequest, timeout_s: float) -> ModelReply:
            counts.append(len(desk.journal()))
            return await says("x")(request, timeout_s)

        async def look(timeout_s: float) -> ToolReply:
            counts.append(len(desk.journal()))
            return await tool("y")(timeout_s)

        for _ in range(3):
            await desk.attempt.model(asks(user("a")), call)
            await desk.attempt.tool(LOOK, look)
        assert counts == [0, 1, 2, 3, 4, 5]
        await desk.attempt.recorded()
        assert len(desk.journal()) == 6

    run(story())


def test_a_tool_that_must_run_once_is_announced_before_it_runs() -> None:
    """If no reply follows, its outcome is unknown."""

    async def story() -> None:
        desk = Desk(faults=Faults(delay_s=5.0))

        async def pay(timeout_s: float) -> ToolReply:
            assert [type(entry) for entry in desk.journal()] == [ToolStarted]
            raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            await desk.attempt.tool(LOOK, pay, once=True)
        await asyncio.sleep(10)
        (started,) = desk.journal()
        assert started.call == LOOK

    run(story())


def test_what_is_too_large_for_a_record_goes_by_claim_check() -> None:
    """A tool's output and a request's new messages; both are found again whole."""
    large = "x" * 1_500_000

    async def story() -> None:
        desk = Desk()
        await desk.attempt.tool(LOOK, tool(large, error="tool_error"))
        await desk.attempt.model(asks(user(large)), says("x"))
        await desk.attempt.recorded()
        looked, called = [entry for entry in desk.journal() if not isinstance(entry, ValueChunk)]
        assert isinstance(looked.output, Reference)
        assert isinstance(called.request.messages, Reference)
        assert await Resolver(desk.log).resolve(looked.output) == large
        assert await Resolver(desk.log).resolve(called.request.messages) == [user(large)]

    run(story())


def test_what_the_journal_cannot_hold_ends_the_attempt() -> None:
    """A reply that no record can hold, or that has no JSON: no further call is made."""

    async def story() -> None:
        for text, error in (("x" * 2_000_000, RecordRefused), ("\ud800", Unwritable)):
            desk = Desk()
            await desk.attempt.model(asks(user("a")), says(text))
            with pytest.raises(error):
                await desk.attempt.model(asks(user("a")), says("never"))
            assert not any(isinstance(entry, ModelCalled) for entry in desk.journal())

    run(story())


def test_waiting_gives_the_slot_back_and_takes_one_before_those_that_have_not_begun() -> None:
    """A provider's limit keeps nobody else from work."""

    async def story() -> None:
        desk = Desk()
        await desk.attempt.take()
        desk.attempt.begin()
        order = []

        async def other(name: str, seconds: float) -> None:
            await desk.slots.acquire(f"default/{name}")
            order.append(name)
            await asyncio.sleep(seconds)
            desk.slots.release("other")

        others = [asyncio.create_task(other("b", 30)), asyncio.create_task(other("c", 1))]
        await asyncio.sleep(1)
        assert order == []
        await desk.attempt.wait(10)
        order.append("attempt")
        assert order == ["b", "attempt"]
        assert desk.attempt.left() == pytest.approx(100 - 1 - 30)
        assert desk.slots.taken == 1
        desk.attempt.give_back()
        desk.attempt.give_back()  # a second time is nothing
        await asyncio.wait(others)
        assert (order[-1], desk.slots.taken) == ("c", 0)

    run(story())


@pytest.mark.parametrize("seconds", [89.0, 90.0, 1e9])
def test_a_wait_beyond_the_attempts_time_is_refused_at_once(seconds: float) -> None:
    """Its slot is kept: the agent still has to say what came of it."""

    async def story() -> None:
        desk = Desk()
        await asyncio.sleep(50)  # in line for a slot: not counted
        await desk.attempt.take()
        desk.attempt.begin()
        await asyncio.sleep(11)
        before = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError):
            await desk.attempt.wait(seconds)
        assert asyncio.get_running_loop().time() == before
        assert desk.slots.taken == 1

    run(story())


@pytest.mark.parametrize("cancelled_after_s", [5.0, 15.0])
def test_cancelled_while_it_waits_it_holds_no_slot(cancelled_after_s: float) -> None:
    """In the wait itself, and in line for a slot behind it."""

    async def story() -> None:
        desk = Desk()
        await desk.attempt.take()
        desk.attempt.begin()
        waiting = asyncio.create_task(desk.attempt.wait(10))
        await asyncio.sleep(1)
        await desk.slots.acquire("other")
        await asyncio.sleep(cancelled_after_s)
        waiting.cancel()
        await asyncio.wait([waiting])
        desk.attempt.give_back()
        assert (desk.slots.taken, waiting.cancelled()) == (1, True)
        desk.slots.release("other")
        await asyncio.wait_for(desk.slots.acquire("next"), 1)

    run(story())


def test_calls_are_told_how_much_time_is_left() -> None:
    """Never less than nothing."""

    async def story() -> None:
        desk = Desk(timeout_s=20.0)
        await desk.attempt.take()
        desk.attempt.begin()
        told: list[float] = []

        async def call(request: ModelRequest, timeout_s: float) -> ModelReply:
            told.append(timeout_s)
            return await says("x", after_s=15.0)(request, timeout_s)

        for _ in range(3):
            await desk.attempt.model(asks(user("a")), call)
        assert told == pytest.approx([20.0, 5.0, 0.0])
        assert desk.attempt.jitter() == 0.25

    run(story())


def test_what_was_handed_over_is_not_taken_back_by_the_next_rebalance() -> None:
    """Its lane has moved: whoever has it waits for the call under way, however often the group moves."""

    async def story() -> None:
        desk = Desk()
        calling = asyncio.create_task(desk.attempt.model(asks(user("one")), says("yes", after_s=5.0)))
        await asyncio.sleep(1)
        await desk.attempt.hand_over()
        desk.attempt.move()
        await desk.attempt.hand_over()
        desk.attempt.keep()
        await desk.attempt.recorded()
        assert [entry.model_calls for entry in desk.journal()] == [(1,), (1,)]
        await calling

    run(story())


def test_a_shared_result_is_told_as_one_also_where_it_is_recalled() -> None:
    """Whoever reads the journal sees that this attempt did not make the call itself."""

    async def shared(_: float) -> ToolReply:
        return ToolReply(output="as others found it", shared=True)

    async def story() -> None:
        desk = Desk()
        await desk.attempt.tool(LOOK, shared)
        await desk.attempt.recorded()
        (looked,) = desk.journal()
        assert isinstance(looked, ToolCalled)
        assert looked.shared
        reply = await Desk(before=desk).attempt.tool(LOOK, tool("never run"))
        assert (reply.output, reply.shared) == ("as others found it", True)

    run(story())


def test_a_note_is_on_the_log_before_its_call_is_on_the_journal_and_is_not_written_again() -> None:
    """It names its call, by which the fold knows it when it comes twice; a recalled call writes nothing."""

    async def story() -> None:
        desk = Desk()

        async def note(timeout_s: float) -> ToolReply:
            await desk.attempt.note(LOOK, "tide", {"now": "low"}, base=2, timeout_s=timeout_s)
            assert not any(isinstance(entry, ToolCalled) for entry in desk.journal())
            return ToolReply(output="written")

        await desk.attempt.tool(LOOK, note)
        await desk.attempt.recorded()
        value = Inline(value={"now": "low"})
        names: dict[str, Any] = {"job": "default/g", "task": "t", "attempt": 3, "call": LOOK.id}
        assert desk.told == [NoteWritten(**names, topic="tide", value=value, base=2, size=13)]
        later = Desk(before=desk)
        assert (await later.attempt.tool(LOOK, note)).output == "written"
        assert later.told == []

    run(story())


def test_a_note_that_the_log_does_not_take_in_time_is_given_up() -> None:
    """The call's own time is over; the attempt goes on."""

    async def story() -> None:
        desk = Desk()
        desk.takes_s = 60.0
        with pytest.raises(TimeoutError):
            await desk.attempt.note(LOOK, "tide", 1, base=0, timeout_s=5.0)

    run(story())
