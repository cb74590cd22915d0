"""Intake: goals become jobs, and people's words reach them. What it cannot read or admit is a dead letter."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Final

import structlog

from agents.configuration.values import Configuration
from streams import dead_letters
from streams.claims import check_in
from streams.core.events import ChildAnswered, FromOutside, GoalRejected, JobSubmitted
from streams.core.goal import Source
from streams.core.values import INLINE_BYTES, PLAN, Inline, JobId, Value
from streams.delivery import Sender
from streams.entry import Entry, NotAdmitted
from streams.gate import refused
from streams.log import Delivery, Record, RecordRefused
from streams.redaction import NO_SECRETS, Redactor
from streams.topics import JOB_EVENTS, partition_of
from streams.transcript import attempt_key
from streams.wire.envelope import Unwritable
from streams.wire.events import write_event
from streams.wire.goals import BadGoal, read_goal
from streams.wire.headers import read_headers, too_many
from streams.wire.outside import BadWord, read_word
from streams.wire.values import write_value

IN_FLIGHT: Final = 128
"""Goals of one partition that are read and not yet safe on the log, at most. With so many a flood is taken in
before CPU goes to its attempts, so that a goal behind it on the topic waits for its intake only. More of them
would make each turn of the event loop longer, also for attempts under way."""

LARGE: Final = 65_536
"""Bytes of a goal above which it is read in a thread: a million small values take a second."""


class Intake:
    """Takes goals in. One serves all partitions of a process.

    Args:
        sender: Sends until the log has it; while the log is away, goals wait and none is dropped.
        lanes: Partitions of the system.
        run: The process's own name for its life.
        redactor: Takes what this process keeps secret out of goals that hold it.
        configured: Who may submit for whom, defaults, rules and gates of tenants. None: there are none.
    """

    def __init__(
        self,
        sender: Sender,
        *,
        lanes: int,
        run: str,
        in_flight: int = IN_FLIGHT,
        redactor: Redactor = NO_SECRETS,
        configured: Configuration | None = None,
    ) -> None:
        self._redactor, self._configured = redactor, configured
        self._entry = Entry(configured.entry if configured else None)
        self._sender, self._lanes, self._run, self._in_flight = sender, lanes, run, in_flight
        self._log = structlog.get_logger().bind(part="intake")

    async def agent(self, _: int, deliveries: AsyncIterator[Delivery]) -> None:
        """As :data:`streams.log.Agent`: the goals of one partition."""
        await self.run(deliveries)

    async def run(self, deliveries: AsyncIterator[Delivery]) -> None:
        """Take in the goals of one partition until cancelled.

        Many are under way at once; they are acknowledged in order, each once its job (or its dead
        letter) is on the log. What was not comes again to whoever has the partition next.
        """
        waiting: deque[tuple[Delivery, asyncio.Task[None]]] = deque()
        slots = asyncio.Semaphore(self._in_flight)

        def acknowledge(_: object) -> None:
            while waiting and (task := waiting[0][1]).done():
                if task.cancelled() or task.exception() is not None:
                    return  # not done: it, and all behind it, is delivered again
                waiting.popleft()[0].ack()
                slots.release()

        try:
            async for delivery in deliveries:
                await slots.acquire()
                task = asyncio.create_task(self.take_in(delivery.record, waiting))
                waiting.append((delivery, task))
                task.add_done_callback(acknowledge)
            await asyncio.gather(*(task for _, task in waiting))
        finally:
            left = [task for _, task in waiting]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def take_in(
        self, record: Record, line: "Iterable[tuple[Delivery, asyncio.Task[None]]]" = ()
    ) -> None:
        """Bring one record to where it belongs; back once it is there. No record makes it raise.

        Args:
            line: What is under way of its partition, in its order, this record among it.
        """
        # Before anything is taken of it: digests and claim checks are of what stands on the log.
        value, headers = self._redactor.record(record.value, record.headers)
        signed, record = record, replace(record, value=value, headers=headers)
        try:
            if (word := read_word(record)) is not None:
                await self._pass_on(record, signed, word, [task for _, task in line])
                return
            goal, at_gate = await self._read(record)
            if isinstance(by := self._sender_of(signed, goal), NotAdmitted):
                await self._bury(record, by.reason)  # and no word to a job that may be another's
                return
            if isinstance(goal, BadGoal):
                await self._refuse(record, goal.reason, goal.job)
                await self._tell_parent(signed, goal)
                return
            if at_gate:
                await self._refuse(record, at_gate, goal.job, rule="gate")
                await self._tell_asker(goal, at_gate)
                return
            try:
                await self._send(await self._lightened(goal))
            except (RecordRefused, Unwritable) as error:
                reason = f"the goal does not fit on the log: {error}"
                await self._refuse(record, reason, goal.job)
                await self._tell_asker(goal, reason)
        except Exception as error:  # noqa: BLE001 - see below
            # A fault of ours that this record brings to light, or events that the log does not take
            # from us: it must not hold up the others.
            self._log.exception("goal_broke_intake", **_where(record))
            await self._bury(record, f"intake failed on it: {type(error).__name__}: {error}")

    async def _pass_on(
        self,
        record: Record,
        signed: Record,
        word: FromOutside | BadWord,
        line: "Sequence[asyncio.Task[None]]",
    ) -> None:
        """Tell a job what a person says of it; the goals that stand before it come first."""
        if isinstance(word, BadWord):
            await self._bury(record, word.reason)
            return
        by = self._entry.admitted(signed, _tenant(word.job))
        if isinstance(by, NotAdmitted):
            await self._bury(record, by.reason)
            return
        if by:
            word = replace(word, by=by)
        if before := list(takewhile(lambda task: task is not asyncio.current_task(), line)):
            await asyncio.wait(before)
        await self._send(word)

    async def _read(self, record: Record) -> tuple[JobSubmitted | BadGoal, str]:
        """What the record asks for, and why the gate's rules refuse it; empty where they do not."""
        if len(record.value or b"") <= LARGE:
            return self._looked_at(record)
        return await asyncio.to_thread(self._looked_at, record)

    def _looked_at(self, record: Record) -> tuple[JobSubmitted | BadGoal, str]:
        goal = read_goal(record, lanes=self._lanes, configured=self._configured)
        if self._configured is None or isinstance(goal, BadGoal):
            return goal, ""
        return goal, refused(goal, self._configured.tenant(goal.goal.tenant).gate)

    def _sender_of(self, signed: Record, goal: JobSubmitted | BadGoal) -> str | NotAdmitted:
        """Who sent a goal that may come in, for its tenant and for that of its parent."""
        if isinstance(goal, BadGoal):
            return "" if goal.job is None else self._entry.admitted(signed, _tenant(goal.job))
        workers = goal.goal.asker is not None
        by = self._entry.admitted(signed, goal.goal.tenant, only_workers=workers)
        if isinstance(by, NotAdmitted) or goal.goal.parent is None:
            return by
        return self._entry.admitted(signed, _tenant(goal.goal.parent), only_workers=workers)

    async def _lightened(self, event: JobSubmitted) -> JobSubmitted:
        """The event with what is large in it checked in, on the job's partition."""
        text = await self._light(event.job, event.goal.text)
        given = None if event.goal.input is None else await self._light(event.job, event.goal.input)
        return replace(event, goal=replace(event.goal, text=text, input=given))

    async def _light(self, job: JobId, value: Value) -> Value:
        if not isinstance(value, Inline):
            return value
        value_json = write_value(value.value)
        if len(value_json) <= INLINE_BYTES:
            return value
        return await check_in(
            self._sender,
            value_json,
            key=attempt_key(job, PLAN, 0),  # before the first attempt of the planning
            partition=partition_of(job, self._lanes),
            run=self._run,
        )

    async def _refuse(
        self, record: Record, reason: str, job: JobId | None, *, rule: str = "rejected"
    ) -> None:
        """Bury the record, and tell whoever waits for the job's answer."""
        await self._bury(record, reason, job)
        if job is None:
            return
        source = Source(topic=record.topic, partition=record.partition, offset=record.offset)
        headers = () if too_many(record.headers) else read_headers(record.headers)
        rejected = GoalRejected(job=job, reason=reason, source=source, headers=headers, rule=rule)
        try:
            await self._send(rejected)
        except (RecordRefused, Unwritable) as error:
            reason = f"{reason}; its headers are left out here: {error}"
            await self._send(replace(rejected, reason=reason, headers=()))

    async def _tell_asker(self, submitted: JobSubmitted, reason: str) -> None:
        """Word to the attempt that waits for a goal's answer: there will be none."""
        goal = submitted.goal
        if goal.parent is not None and goal.asker is not None:
            answered = ChildAnswered(
                job=goal.parent,
                task=goal.asker.task,
                attempt=goal.asker.attempt,
                call=goal.asker.call,
                child=submitted.job,
                outcome="rejected",
                reason=reason,
            )
            await self._send(answered)

    async def _tell_parent(self, signed: Record, bad: BadGoal) -> None:
        """Likewise for what is no goal, such as one of a later version: only workers say who waits for it."""
        if bad.job is None or (parent := bad.parent) is None or parent.task is None:
            return
        for tenant in (_tenant(bad.job), _tenant(parent.job)):
            if isinstance(self._entry.admitted(signed, tenant, only_workers=True), NotAdmitted):
                return
        await self._send(
            ChildAnswered(
                job=parent.job,
                task=parent.task,
                attempt=parent.attempt,
                call=parent.call,
                child=bad.job,
                outcome="rejected",
                reason=bad.reason,
            )
        )

    async def _bury(self, record: Record, reason: str, job: JobId | None = None) -> None:
        self._log.warning("goal_refused", job=job, reason=reason, **_where(record))
        await dead_letters.bury(self._sender, record, reason)

    async def _send(self, event: JobSubmitted | GoalRejected | FromOutside | ChildAnswered) -> None:
        await self._sender.deliver(
            JOB_EVENTS,
            write_event(event),
            key=event.job.encode(),
            partition=partition_of(event.job, self._lanes),
        )


def _tenant(job: JobId) -> str:
    return job.partition("/")[0]


def _where(record: Record) -> dict[str, object]:
    return {"topic": record.topic, "partition": record.partition, "offset": record.offset}
