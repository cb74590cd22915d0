"""Named points in a worker's life, at which it can be struck: before and after each send and commit.

The points are put around the code from outside, in the process that is to be struck, so they cost
nothing anywhere else: the code itself has no line of them.

==================  ===============================================================
``begin``           of a transaction of the orchestrator
``send.TOPIC``      records of one partition given to the open transaction
``commit``          of a transaction; after: Kafka said that it is done
``abort``           of a transaction
``put.TOPIC``       a record outside of transactions put in line
``deliver.TOPIC``   the same for what must not get lost; after: Kafka said that it has it
``ack.TOPIC``       a record acknowledged by intake or a lane; nothing is sent by that
``offsets``         a group's offsets committed
==================  ===============================================================
"""

import functools
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from streams.delivery import Sender
from streams.kafka.faust_agents import FaustDelivery
from streams.kafka.producers import KafkaProducer
from streams.kafka.transactions import KafkaTransactions
from streams.topics import ANSWERS, DEAD_LETTERS, GOALS, JOB_EVENTS, JOBS, SUBTASKS, TRANSCRIPTS

Hit: TypeAlias = Callable[[str], None]
"""Told the name of each point that is passed, ``POINT:before`` or ``POINT:after``."""

POINTS: Final = (
    "begin",
    *(f"send.{topic}" for topic in (SUBTASKS, JOBS, ANSWERS, DEAD_LETTERS)),
    "commit",
    "abort",
    *(f"put.{topic}" for topic in (JOB_EVENTS, TRANSCRIPTS, DEAD_LETTERS)),
    *(f"deliver.{topic}" for topic in (JOB_EVENTS, TRANSCRIPTS, DEAD_LETTERS)),
    *(f"ack.{topic}" for topic in (GOALS, SUBTASKS)),
    "offsets",
)
"""All points there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When to strike.

    Attributes:
        point: One of :data:`POINTS`.
        side: Before or after what happens there.
        count: At the so-manieth time, from 1.
    """

    point: str
    side: Literal["before", "after"]
    count: int = 1

    def __str__(self) -> str:
        return f"{self.point}:{self.side}:{self.count}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """A moment as it is written, such as ``commit:after:17``.

        Raises:
            ValueError: it is none; says which points there are.
        """
        match text.split(":"):
            case [point, ("before" | "after") as side, count] if point in POINTS and count.isdecimal():
                return cls(point=point, side=side, count=int(count))
        raise ValueError(
            f"{text!r} is no moment; write POINT:before:N or POINT:after:N, of {', '.join(POINTS)}"
        )


@contextmanager
def told(hit: Hit) -> Iterator[None]:
    """Tell *hit* of every point passed in this process, until it is left."""
    before = {}
    for owner, name, wrapped in _wraps(hit):
        before[owner, name] = getattr(owner, name)
        setattr(owner, name, wrapped)
    try:
        yield
    finally:
        for (owner, name), method in before.items():
            setattr(owner, name, method)


def kill_at(moment: Moment) -> Hit:
    """Ends the process at once (SIGKILL), the first time that *moment* comes."""
    name, passed = f"{moment.point}:{moment.side}", Counter[str]()

    def hit(passing: str) -> None:
        passed[passing] += 1
        if passing == name and passed[passing] == moment.count:
            os.kill(os.getpid(), signal.SIGKILL)

    return hit


def _wraps(hit: Hit) -> Iterator[tuple[type, str, Callable[..., Any]]]:
    """Class, name of the method, and what stands in its place."""
    for owner, name, point in (
        (AIOKafkaProducer, "begin_transaction", "begin"),
        (AIOKafkaProducer, "commit_transaction", "commit"),
        (AIOKafkaProducer, "abort_transaction", "abort"),
        (AIOKafkaConsumer, "commit", "offsets"),
    ):
        yield owner, name, _around(getattr(owner, name), hit, lambda *_, point=point: point)
    for owner, name, point in (
        (KafkaTransactions, "send_all", "send"),
        (KafkaProducer, "send", "put"),
        (Sender, "deliver", "deliver"),
    ):
        yield (
            owner,
            name,
            _around(getattr(owner, name), hit, lambda topic, *_, point=point: f"{point}.{topic}"),
        )

    ack = FaustDelivery.ack

    def acknowledge(delivery: FaustDelivery) -> None:
        hit(f"ack.{delivery.record.topic}:before")
        ack(delivery)
        hit(f"ack.{delivery.record.topic}:after")

    yield FaustDelivery, "ack", acknowledge


def _around(method: Callable[..., Any], hit: Hit, named: Callable[..., str]) -> Callable[..., Any]:
    """The coroutine method with a point before and one after it; none after where it raises."""

    @functools.wraps(method)
    async def passing(self: object, *args: Any, **named_args: Any) -> Any:
        point = named(*args)
        hit(f"{point}:before")
        done = await method(self, *args, **named_args)
        hit(f"{point}:after")
        return done

    return passing
