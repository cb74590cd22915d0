"""An attempt goes on from its journal: what was replied is recalled, and nothing else is."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from agents.ports import ModelError, ModelReply, ModelRequest, ToolReply
from streams.attempt import LaneMoved, OutcomeUnknown
from streams.memory_log import Faults
from streams.memory_log.virtual_time import run
from streams.topics import TRANSCRIPTS
from streams.transcript import CallId, HandedOver, ModelCalled, ModelFailed, ToolStarted
from tests.streams.desk import LOOK, Desk, asks, fails, says, tool, user


async def never(request: ModelRequest, timeout_s: float) -> ModelReply:
    """A model that must not be asked."""
    raise AssertionError(f"asked again: {request.messages}")


async def no_tool(timeout_s: float) -> ToolReply:
    """A tool that must not be called."""
    raise AssertionError("called again")


def test_replies_on_the_journal_are_recalled_and_paid_for_once() -> None:
    """By their order; the first that is not there is made."""

    async def story() -> None:
        first = Desk()
        reply = await first.attempt.model(asks(user("one")), says("look"))
        seen = await first.attempt.tool(LOOK, tool({"seen": 1}))
        await first.attempt.recorded()

        second = Desk(before=first)
        assert await second.attempt.model(asks(user("one")), never) == reply
        assert await second.attempt.tool(LOOK, no_tool) == seen
        await second.attempt.model(asks(user("one"), user("two"), user("three")), says("done"))
        await second.attempt.end()
        assert second.attempt.usage.calls == 2
        assert second.attempt.usage.tool_calls == 1
        calls = [entry for entry in second.journal() if isinstance(entry, ModelCalled)]
        assert [(call.n, call.run, call.request.seen) for call in calls] == [(1, "run-1", 0), (2, "run-2", 2)]

    run(story())


def test_a_tools_output_by_claim_check_is_recalled_whole() -> None:
    """However large it is."""

    async def story() -> None:
        first = Desk()
        large = {"text": "x" * 2_000_000}
        await first.attempt.tool(LOOK, tool(large, error="timeout"))
        await first.attempt.recorded()
        again = await Desk(before=first).attempt.tool(LOOK, no_tool)
        assert (again.output, again.error) == (large, "timeout")

    run(story())


def test_tries_that_failed_are_made_again_and_counted_on() -> None:
    """A reply is what is never paid for twice; a failed try brought none."""

    async def story() -> None:
        first = Desk()
        for _ in range(2):
            with pytest.raises(ModelError):
                await first.attempt.model(asks(user("one")), fails)
        await first.attempt.end()
        second = Desk(before=first)
        with pytest.raises(ModelError):
            await second.attempt.model(asks(user("one")), fails)
        await second.attempt.model(asks(user("one")), says("at last"))
        await second.attempt.end()
        tried = [entry.tried for entry in second.journal() if isinstance(entry, ModelFailed)]
        assert tried == [1, 2, 3]

    run(story())


def test_a_tool_that_must_run_once_does_not_run_again_where_its_end_is_unknown() -> None:
    """Nobody knows whether it did its work."""

    async def story() -> None:
        first = Desk()
        began = asyncio.Event()

        async def dies(timeout_s: float) -> ToolReply:
            began.set()
            await asyncio.Event().wait()
            raise AssertionError

        running = asyncio.create_task(first.attempt.tool(LOOK, dies, once=True))
        await began.wait()
        running.cancel()
        with pytest.raises(OutcomeUnknown, match="look must not run twice"):
            await Desk(before=first).attempt.tool(LOOK, no_tool, once=True)

    run(story())


def test_a_tool_that_must_run_once_does_not_run_where_the_lane_moved_before_its_start_was_known() -> None:
    """The journal stood still: whoever has the lane by now did not see that it was to run here."""

    async def story() -> None:
        first = Desk(faults=Faults(outages=((0.0, 20.0),)))
        running = asyncio.create_task(first.attempt.tool(LOOK, no_tool, once=True))
        await asyncio.sleep(10)
        first.attempt.move()
        with pytest.raises(LaneMoved):
            await running
        assert [type(entry) for entry in first.journal()] == [ToolStarted]

    run(story())


@pytest.mark.parametrize("error", ["timeout", "tool_error"])
def test_a_tool_that_must_run_once_and_gave_no_word_of_its_end_is_known_by_the_journal(error: str) -> None:
    """Also where its server is away by now, and the tool is none that anybody there knows."""

    async def story() -> None:
        first = Desk()
        await first.attempt.tool(LOOK, tool("no word", error=error), once=True)
        await first.attempt.recorded()
        recalled = Desk(before=first).attempt.tool(LOOK, no_tool)
        if error == "tool_error":
            assert (await recalled).error == error
            return
        with pytest.raises(OutcomeUnknown, match="look must not run twice"):
            await recalled

    run(story())


def test_a_tool_that_must_run_once_and_ended_is_recalled() -> None:
    """It is known what it did."""

    async def story() -> None:
        first = Desk()
        seen = await first.attempt.tool(LOOK, tool(1), once=True)
        await first.attempt.recorded()
        assert await Desk(before=first).attempt.tool(LOOK, no_tool, once=True) == seen

    run(story())


def test_an_attempt_that_moved_ends_the_calls_under_way_and_begins_none() -> None:
    """Those side by side with the one that may not begin are paid for, too."""

    async def story() -> None:
        desk = Desk()
        slow = asyncio.create_task(desk.attempt.model(asks(user("one")), says("late", after_s=30)))
        await asyncio.sleep(1)
        await desk.attempt.hand_over()
        desk.attempt.move()
        with pytest.raises(LaneMoved):
            await desk.attempt.tool(LOOK, no_tool)
        assert slow.done()
        await desk.attempt.recorded()
        last = desk.journal()[-1]
        assert isinstance(last, ModelCalled)
        assert last.reply.text == "late"

    run(story())


def test_one_that_waits_when_its_lane_moves_waits_no_longer() -> None:
    """It holds no slot, and nothing is under way."""

    async def story() -> None:
        desk = Desk()
        await desk.attempt.take()
        waiting = asyncio.create_task(desk.attempt.wait(50))
        await asyncio.sleep(1)
        desk.attempt.move()
        with pytest.raises(LaneMoved):
            await waiting
        assert asyncio.get_running_loop().time() < 2
        assert desk.slots.taken == 0

    run(story())


def follow(desk: Desk, other: Desk) -> "asyncio.Task[None]":
    """Let what *other* journals from now on reach the past of *desk*, as a lane does."""

    async def feed() -> None:
        async with desk.log.follow(TRANSCRIPTS, [1], since=1) as batches:
            known = len(other.journal())
            async for records in batches:
                for record in records:
                    if record.offset >= known:
                        desk.past.add(record)

    return asyncio.create_task(feed())


def test_a_call_under_way_at_the_last_owner_is_waited_for() -> None:
    """However long it takes, as long as that owner lives and says so."""

    async def story() -> None:
        first = Desk()
        asking = asyncio.create_task(first.attempt.model(asks(user("one")), says("mine", after_s=60)))
        await asyncio.sleep(1)
        await first.attempt.hand_over()
        first.attempt.move()
        second = Desk(before=first)
        feeding = follow(second, first)
        assert second.past.elsewhere
        await second.past.settle()
        reply = await second.attempt.model(asks(user("one")), never)
        assert reply == await asking
        assert not second.past.elsewhere
        feeding.cancel()

    run(story())


def test_an_owner_that_died_after_it_handed_over_is_not_waited_for_long() -> None:
    """Its silence says that no reply will come."""

    async def story() -> None:
        first = Desk()
        asking = asyncio.create_task(first.attempt.model(asks(user("one")), says("mine", after_s=60)))
        await asyncio.sleep(1)
        await first.attempt.hand_over()
        first.attempt.move()
        second = Desk(before=first)
        feeding = follow(second, first)
        asking.cancel()
        await second.past.settle()
        assert asyncio.get_running_loop().time() < 20
        assert (await second.attempt.model(asks(user("one")), says("again"))).text == "again"
        feeding.cancel()

    run(story())


def test_a_lane_that_stayed_takes_its_word_back() -> None:
    """Whoever has it after a crash waits for nobody."""

    async def story() -> None:
        first = Desk()
        asking = asyncio.create_task(first.attempt.model(asks(user("one")), says("mine", after_s=60)))
        await asyncio.sleep(1)
        await first.attempt.hand_over()
        first.attempt.keep()
        await first.attempt.recorded()
        assert [entry.model_calls for entry in first.journal() if isinstance(entry, HandedOver)] == [(1,), ()]
        asking.cancel()
        assert not Desk(before=first).past.elsewhere

    run(story())


def test_no_call_begins_while_the_group_does_not_hear_us() -> None:
    """Nor while it shares the lanes out anew."""

    async def story() -> None:
        desk = Desk()
        desk.standing.hold()
        asking = asyncio.create_task(desk.attempt.model(asks(user("one")), says("yes", after_s=0)))
        await asyncio.sleep(50)
        assert not asking.done()
        desk.standing.take([1], 2)
        assert (await asking).text == "yes"

    run(story())


def test_the_endpoint_learns_which_call_it_is() -> None:
    """So that its log can be held against the journal."""
    names: list[CallId | None] = []

    def named(text: str) -> Callable[[ModelRequest, float], Awaitable[ModelReply]]:
        async def call(request: ModelRequest, timeout_s: float) -> ModelReply:
            names.append(CallId.read(request.call_id))
            return await (fails if not text else says(text))(request, timeout_s)

        return call

    async def story() -> None:
        desk = Desk()
        with pytest.raises(ModelError):
            await desk.attempt.model(asks(user("one")), named(""))
        await desk.attempt.model(asks(user("one")), named("a"))
        await desk.attempt.model(asks(user("one"), user("a"), user("two")), named("b"))
        assert [(name.n, name.tried, name.run) for name in names if name] == [
            (1, 1, "run-1"),
            (1, 2, "run-1"),
            (2, 1, "run-1"),
        ]
        assert names[0] is not None
        assert (names[0].job, names[0].task, names[0].attempt) == ("default/g", "t", 3)

    run(story())
