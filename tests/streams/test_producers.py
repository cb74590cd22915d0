"""The plain producer goes on where the one behind it does not."""

import asyncio
from typing import Any

import pytest
from aiokafka.errors import KafkaError

from streams.kafka import producers
from streams.kafka.producers import KafkaProducer
from streams.log import LogUnavailable
from streams.settings import Settings


class Behind:
    """As much of aiokafka's producer as is used: it takes records, and a *silent* one gives no answer."""

    def __init__(self, *, silent: bool) -> None:
        self._silent = silent
        self.given: list[asyncio.Future[Any]] = []
        self.stopped = False

    async def send(self, *_: object, **__: object) -> "asyncio.Future[Any]":
        given: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if not self._silent:
            given.set_result(type("Landed", (), {"offset": len(self.given)}))
        self.given.append(given)
        return given

    async def stop(self) -> None:
        self.stopped = True


async def test_one_that_gives_no_answer_is_replaced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where more of its records turn out to be late, or fail, when another has taken its place."""
    silent, others = Behind(silent=True), [Behind(silent=False), Behind(silent=False)]
    started = iter(others)

    async def start(_: Settings) -> Any:
        return next(started)

    monkeypatch.setattr(producers, "start_producer", start)
    monkeypatch.setattr(producers, "SEND_S", 0.05)
    behind: Any = silent
    producer = KafkaProducer(Settings(), behind)
    first, second = [await producer.send("t", b"v", key=b"k", partition=0) for _ in range(2)]
    with pytest.raises(LogUnavailable, match="may still land"):
        await first
    third = await producer.send("t", b"v", key=b"k", partition=0)
    assert await third == 0
    with pytest.raises(LogUnavailable, match="may still land"):
        await second
    silent.given[0].set_exception(KafkaError("not retriable"))
    assert await (await producer.send("t", b"v", key=b"k", partition=0)) == 1
    assert silent.stopped
    assert not others[1].given
    await producer.close()
