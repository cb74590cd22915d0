"""The Python client, for programs that feed goals and consume answers.

    async with Swarm("127.0.0.1:9092") as swarm:
        answer = await swarm.answer("Audit the licences of these packages", input=["attrs", "rich"])
        print(answer.outcome, answer.value)

Readers see committed records only, so every job has one answer, or one a revision where an operator
opened it again; values that travel by claim check are resolved.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from typing import Final, Self, Unpack

from streams.access import Access
from streams.answer_reader import AnswerReader, NotAnswered
from streams.claims import Resolver
from streams.core.commands import Answer
from streams.core.events import Event
from streams.core.goal import Approval
from streams.core.values import JobId, Json, TaskId
from streams.delivery import Sender
from streams.entry import sign, signing_key
from streams.following import Following, readable
from streams.life import life
from streams.log import Headers, Log, LogUnavailable
from streams.published import coming, newest
from streams.resolved import resolved
from streams.settings import Settings
from streams.topics import GOALS, JOB_EVENTS, partition_of
from streams.wire.events import read_event
from streams.wire.goal_writing import GoalOptions, write_goal
from streams.wire.outside import write_word

__all__ = ["NotAnswered", "Swarm"]

CONNECT_S: Final = 10.0
FOUND: Final = 0.8
"""Part of the time to connect that finding a broker may take."""
SEND_S: Final = 30.0
ANSWER_S: Final = 600.0
WATCH_S: Final = 86_400.0

_DEFAULTS: Final = Settings()


class Swarm:
    """A connection to a system, for one event loop; safe to use from many tasks.

    Args:
        brokers: Kafka bootstrap servers, ``host:port`` separated by commas.
        prefix: The prefix of the system's topics.
        access: How to prove to Kafka who we are.
        entry_key: ``NAME:SECRET``: what is sent is signed with it, where a system asks who sends. Empty: not.
        connect_s: Seconds to go on trying when no broker answers.
        log: A log that is open already, instead of Kafka at *brokers*; it stays open.

    Attributes:
        lanes: Partitions of the system, read from its topics on entering.
        log: The log, for what the client does not offer.

    Raises:
        ValueError: *entry_key* is none.
        LogUnavailable: on entering, when there is no broker or no topics; ``NotAllowed`` when the
            brokers do not let us in.
    """

    def __init__(
        self,
        brokers: str = _DEFAULTS.brokers,
        *,
        prefix: str = _DEFAULTS.prefix,
        access: Access = _DEFAULTS.access,
        entry_key: str = _DEFAULTS.entry_key,
        connect_s: float = CONNECT_S,
        log: Log | None = None,
    ) -> None:
        self._settings = Settings(brokers=brokers, prefix=prefix, access=access)
        self._signs_with = signing_key(entry_key) if entry_key else None
        self._connect_s = connect_s
        self._given = log
        self.lanes = 0
        self.log: Log

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(self._connect_s):
                    log = self._given
                    if log is None:
                        log = await stack.enter_async_context(_kafka(self._settings, self._connect_s))
                    self.lanes = await log.partitions(JOB_EVENTS)
            except TimeoutError as error:
                raise LogUnavailable(
                    f"no Kafka broker at {self._settings.brokers} within {self._connect_s:g} s: "
                    "`anabranch broker start` starts one here, ANABRANCH_BROKERS names another"
                ) from error
            self.log, self._sender, self._resolver = log, Sender(log.producer), Resolver(log)
            self._following = Following(log)
            self._answers = AnswerReader(log, self._resolver, lanes=self.lanes)
            stack.push_async_callback(self._answers.close)
            stack.push_async_callback(self._following.close)
            self._closing = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._closing.aclose()

    async def submit(
        self,
        goal: str,
        *,
        within_s: float = SEND_S,
        headers: Mapping[str, str | bytes] | None = None,
        **options: Unpack[GoalOptions],
    ) -> JobId:
        """Send a goal; its job, once the log has it.

        A goal that is sent again with the same id is the same job: after an error send it again
        with the ``id`` you gave. An id that you do not give is random.

        Args:
            within_s: Seconds until the log must have taken it.
            headers: Kafka headers, which come back on the answer.

        Raises:
            BadFields: an option is out of its bounds; nothing was sent.
            Unwritable: the input has no JSON; nothing was sent.
            RecordRefused: the goal is too large.
            LogUnavailable: the log did not take it in time; it may still have it.
        """
        job, value = write_goal(goal, **options)
        await self._submit(job, value, headers or {}, within_s)
        return job

    async def answer(
        self,
        goal: str,
        *,
        within_s: float = ANSWER_S,
        headers: Mapping[str, str | bytes] | None = None,
        **options: Unpack[GoalOptions],
    ) -> Answer:
        """Send a goal and wait for its answer. A poor outcome is an answer too: see its ``outcome``.

        Any number of these at once share one reader. With an ``id`` whose job is answered already,
        that answer is given, the newest there is.

        Args:
            within_s: Seconds that sending and waiting may take together.
            headers: Kafka headers, which come back on the answer.

        Raises:
            NotAnswered: there was no answer in time.
            BadFields, Unwritable, RecordRefused, LogUnavailable: as of :meth:`submit`.
            ValueLost: it has an answer, whose text is past its retention.
        """
        job, value = write_goal(goal, **options)
        ends = asyncio.get_running_loop().time() + within_s
        try:
            async with asyncio.timeout_at(ends):
                await self._answers.begin()
                with self._answers.expecting(job) as answer:
                    await self._submit(job, value, headers or {}, within_s)
                    if "id" in options:
                        self._answers.look_back(job)
                    return await answer
        except TimeoutError:
            raise NotAnswered(job, within_s) from None

    async def approve(
        self,
        job: JobId,
        *,
        what: Approval | None = None,
        task: TaskId | None = None,
        reason: str = "",
        by: str = "",
        within_s: float = SEND_S,
    ) -> None:
        """Let a job go on that waits for a person. It counts for what waits once it arrives there.

        Args:
            what: Which of the things that wait: ``plan``, ``tools`` or ``answer``. None: all.
            task: The sub-task whose tool call is meant. None: all.
            reason: Why, kept on the log.
            by: Who says so, where neither a key nor Kafka does; marked as claimed.
            within_s: Seconds until the log must have taken it.

        Raises:
            ValueError: a field is out of its bounds; nothing was sent.
            LogUnavailable: the log did not take it in time; it may still have it.
        """
        await self._say("approve", job, within_s, what=what, task=task, reason=reason, by=by)

    async def reject(
        self,
        job: JobId,
        *,
        what: Approval | None = None,
        task: TaskId | None = None,
        reason: str = "",
        by: str = "",
        within_s: float = SEND_S,
    ) -> None:
        """Do not let a job go on that waits for a person: it ends ``rejected``. As :meth:`approve`."""
        await self._say("reject", job, within_s, what=what, task=task, reason=reason, by=by)

    async def cancel(self, job: JobId, *, reason: str = "", by: str = "", within_s: float = SEND_S) -> None:
        """End a job under way: it is answered ``cancelled``. As :meth:`approve`."""
        await self._say("cancel", job, within_s, reason=reason, by=by)

    async def wait(self, job: JobId, *, within_s: float = ANSWER_S, revision: int = 1) -> Answer:
        """The newest answer of a job that was submitted before, also when it is there already.

        Args:
            revision: This one or a newer: after a dead letter of the job was redriven, the next.

        Raises:
            NotAnswered: there was no answer in time.
            LogUnavailable, ValueLost: as of :meth:`answer`.
        """
        try:
            async with asyncio.timeout(within_s):
                await self._answers.begin()
                with self._answers.expecting(job, revision) as answer:
                    self._answers.look_back(job)
                    return await answer
        except TimeoutError:
            raise NotAnswered(job, within_s) from None

    async def events(
        self, job: JobId, *, since: int | None = None, within_s: float = WATCH_S, values: bool = True
    ) -> AsyncGenerator[Event, None]:
        """What happens to a job, from its goal to the event that ends it; then the iterator ends.

        Of a job that was opened again that is the event that ends it for the last time.

        To leave earlier use ``contextlib.aclosing``; what is left open closes with the swarm.

        Args:
            since: Nothing before this is looked at (milliseconds since 1970); without it the whole
                partition is read up to the job's beginning.
            within_s: Seconds from the first event asked for to the last one.
            values: False leaves values that travel by claim check as they are.

        Raises:
            NotAnswered: the job did not end in time.
            LogUnavailable: the log cannot be read.
        """
        events = life(self.log, self._following, job, lanes=self.lanes, since=since or 0, within_s=within_s)
        async with aclosing(events):
            async for event in events:
                yield await resolved(self._resolver, event) if values else event

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[AsyncIterator[Event]]:
        """What happens to all jobs from now on: nothing is missed of a goal submitted inside.

        Values that travel by claim check stay as they are.

        Raises:
            LogUnavailable: the log cannot be read.
        """
        async with self.log.follow(JOB_EVENTS, range(self.lanes)) as batches:
            yield (
                event
                async for records in batches
                for record in records
                if (event := readable(read_event, record)) is not None
            )

    def answers(self, *, since: int | None = None) -> AsyncGenerator[Answer, None]:
        """Every answer of the system as it comes, each job's and revision's once; without an end.

        A program that must miss none over its own restarts asks with the time of the last answer
        it has dealt with. Answers of different partitions come in no particular order.

        Args:
            since: From the first answer at or after this (milliseconds since 1970; 0 is the
                beginning). None: from the moment the first one is asked for.

        Raises:
            LogUnavailable: the log cannot be read.
        """
        return coming(self._following, self._resolver, lanes=self.lanes, since=since)

    async def published(self, *, since: int = 0) -> tuple[Answer, ...]:
        """The answers that are there, newest revision of each job, oldest first.

        Args:
            since: Milliseconds since 1970.

        Raises:
            LogUnavailable: the log cannot be read.
        """
        return await newest(self.log, self._resolver, lanes=self.lanes, since=since)

    async def _say(self, verb: str, job: JobId, within_s: float, **fields: Json) -> None:
        again = "say it again if `anabranch waiting` still shows the job, or it still runs"
        await self._submit(job, write_word(verb, job, **fields), {}, within_s, again=again)

    async def _submit(
        self,
        job: JobId,
        value: bytes,
        headers: Mapping[str, str | bytes],
        within_s: float,
        *,
        again: str = "send it again with the same id",
    ) -> None:
        sent: Headers = tuple(
            (name, text.encode() if isinstance(text, str) else text) for name, text in headers.items()
        )
        sent = sign(value, sent, self._signs_with)
        place = partition_of(job, self.lanes)
        try:
            async with asyncio.timeout(within_s):
                await self._sender.deliver(GOALS, value, key=job.encode(), partition=place, headers=sent)
        except TimeoutError as error:
            raise LogUnavailable(
                f"what was sent to {job} was not taken within {within_s:g} s by {self._settings.brokers}; "
                f"{again}"
            ) from error


def _kafka(settings: Settings, within_s: float) -> AbstractAsyncContextManager[Log]:
    # Here, so that a program that uses the client with another log, or only its types, has no Kafka.
    from streams.kafka.log import KafkaLog  # noqa: PLC0415

    return KafkaLog(settings, find_s=FOUND * within_s)  # it knows why, where it is not found
