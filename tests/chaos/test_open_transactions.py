"""Open transactions are found, wherever they show, and none is where none is open."""

from streams.chaos.open_transactions import open_transactions
from streams.kafka.log import KafkaLog
from streams.kafka.producers import make_producer
from streams.settings import Settings
from streams.topics import JOBS


async def test_an_open_transaction_is_found_until_it_is_ended(system: Settings) -> None:
    """By its identity once it has begun, and where its records stand; a committed one is none."""
    async with KafkaLog(system) as log, log.transactions("mine") as mine:
        async with mine.transaction():
            await (await mine.send(JOBS, b"committed", key=b"k", partition=1))
        assert await open_transactions(system, within_s=10.0) == ()
        producer = make_producer(system, system.prefix + "left")
        await producer.start()
        try:
            await producer.begin_transaction()
            await producer.send_and_wait(system.prefix + JOBS, b"open", key=b"k", partition=1)
            assert await open_transactions(system) == (
                f"{system.prefix}left: Ongoing",
                f"{system.prefix}jobs[1]: open since offset 2, of 3",
            )
            await producer.abort_transaction()
        finally:
            await producer.stop()
        assert await open_transactions(system, within_s=10.0) == ()
