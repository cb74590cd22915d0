"""The few options of kcat that the README uses, for machines that have no kcat (it is no Python package).

As kcat 1.7: ``-P`` sends the first line of its input, ``-C`` prints the values that are there.
"""

import argparse
import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

END_S = 30.0


def options() -> argparse.Namespace:
    """What stands on the command line; anything else is an error."""
    parser = argparse.ArgumentParser(prog="kcat")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("-P", dest="produce", action="store_true")
    mode.add_argument("-C", dest="consume", action="store_true")
    parser.add_argument("-b", dest="brokers", required=True)
    parser.add_argument("-t", dest="topic", required=True)
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-o", dest="offset", choices=["beginning"])
    parser.add_argument("-e", dest="end", action="store_true")
    parser.add_argument("-q", dest="quiet", action="store_true")
    parser.add_argument("-X", dest="option", choices=["isolation.level=read_committed"])
    return parser.parse_args()


async def produce(given: argparse.Namespace) -> None:
    """One record of a line."""
    headers = [
        (name, value.encode()) for name, _, value in (header.partition("=") for header in given.headers)
    ]
    async with AIOKafkaProducer(bootstrap_servers=given.brokers) as producer:
        await producer.send_and_wait(given.topic, sys.stdin.readline().rstrip("\n").encode(), headers=headers)


async def consume(given: argparse.Namespace) -> None:
    """Every value up to the end."""
    consumer = AIOKafkaConsumer(
        given.topic,
        bootstrap_servers=given.brokers,
        auto_offset_reset="earliest",
        isolation_level="read_committed" if given.option else "read_uncommitted",
    )
    async with consumer:
        for place, end in (await consumer.end_offsets(consumer.assignment())).items():
            while await consumer.position(place) < end:
                for record in (await consumer.getmany(place, timeout_ms=500)).get(place, ()):
                    sys.stdout.write(f"{record.value.decode()}\n")


async def main() -> None:
    """Within a bound."""
    given = options()
    async with asyncio.timeout(END_S):
        await (produce if given.produce else consume)(given)


if __name__ == "__main__":
    asyncio.run(main())
