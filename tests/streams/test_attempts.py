"""What a process remembers of attempts that have ended."""

import asyncio

from streams.attempts import REMEMBER_S, Attempts
from streams.memory_log.virtual_time import run


async def done() -> bool:
    """Work that is done at once."""
    return True


def test_what_has_ended_is_remembered_until_the_group_has_been_heard_for_a_while() -> None:
    """Its acknowledgement may not have been committed when the brokers went away."""

    async def story() -> None:
        attempts = Attempts(held=lambda _: False)
        ended = attempts.task(b"k", done)
        await ended
        for _ in range(100):
            await asyncio.sleep(1)
            attempts.unsettled()
        await asyncio.sleep(REMEMBER_S - 1)
        assert attempts.task(b"k", done) is ended
        await asyncio.sleep(2)
        assert attempts.task(b"k", done) is not ended

    run(story())


def test_what_has_ended_is_forgotten_after_a_while() -> None:
    """Nothing is kept for ever."""

    async def story() -> None:
        attempts = Attempts(held=lambda _: False)
        await asyncio.sleep(100)
        ended = attempts.task(b"k", done)
        await ended
        await asyncio.sleep(REMEMBER_S + 1)
        assert attempts.task(b"k", done) is not ended

    run(story())
