"""The line in front of models: who waits again, who leaves, and what is kept of them."""

import asyncio
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.models.lines import Line
from streams.memory_log.virtual_time import run


class Door:
    """Lets so many in; nobody is let in by time alone."""

    def __init__(self) -> None:
        self.room = 0

    def look(self, _: float, __: float) -> tuple[int, float]:
        return self.room, float("inf")


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([5.0, 9.0]), st.booleans()), max_size=12),
    st.lists(st.integers(0, 12), max_size=6),
)
@settings(max_examples=60, deadline=None)
def test_equal_tickets_and_ends_are_no_trouble(
    waits: list[tuple[int, float, bool]], leaving: list[int]
) -> None:
    """Whoever waits again has the ticket and the end of before, while what was is not forgotten yet."""

    async def story() -> None:
        door = Door()
        line = Line(door.look)
        called: list[int] = []

        async def wait(ticket: int, ends: float) -> None:
            await line.wait(ticket, 1.0, ends)
            called.append(ticket)
            line.came()

        tasks = []
        for ticket, ends, stays in waits:
            tasks.append(asyncio.create_task(wait(ticket, ends)))
            await asyncio.sleep(0)
            if not stays:
                tasks[-1].cancel()
        for number in leaving:
            if number < len(tasks):
                tasks[number].cancel()
        await asyncio.sleep(0)
        there = [ends for (_, ends, _), task in zip(waits, tasks, strict=True) if not task.done()]
        tickets = sorted(ticket for (ticket, _, _), task in zip(waits, tasks, strict=True) if not task.done())
        assert line.ends == min(there, default=float("inf"))
        door.room = len(waits) + 1
        line.pump()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        assert called == tickets
        assert line.empty
        line.end()

    run(story())


def test_those_who_left_are_forgotten() -> None:
    """A call may wait thousands of times until its end, which is far away."""

    async def story() -> None:
        line = Line(Door().look)
        for _ in range(2_000):
            task = asyncio.create_task(line.wait(1, 1.0, 86_400.0))
            await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        assert len(line._ends) < 100

    run(story())
