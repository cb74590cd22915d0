"""Virtual time stands still for threads, and for nothing longer than they are at work."""

import asyncio

import pytest

from streams.memory_log import virtual_time


def test_the_end_of_a_thread_is_not_waited_for_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a thread made ready goes on at once: nobody waits beside work for one that has ended."""
    monkeypatch.setattr(virtual_time, "THREAD_S", 3_600.0)

    async def story() -> float:
        for _ in range(20):
            await asyncio.to_thread(lambda: None)
        return asyncio.get_running_loop().time()

    assert virtual_time.run(story()) == 0.0
