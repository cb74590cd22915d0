"""From a command to its event: who runs it, and what is told to the job when it ends."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import structlog

from agents.ports import Crew, Done, GaveUp, PlanMade, PlanRefused
from streams.attempt import EndedElsewhere, LaneMoved, OutcomeUnknown, RunningAttempt
from streams.claims import Resolver, ValueLost, check_in
from streams.core.backoff import backoff
from streams.core.commands import Command, Judge, MakeAnswer, MakePlan, RunSubTask
from streams.core.events import (
    STOPPED,
    UNREADABLE,
    Event,
    Planned,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
)
from streams.core.values import INLINE_BYTES, INLINE_SET_BYTES, NO_USAGE, Inline, Usage, Value
from streams.delivery import Sender
from streams.fingerprinting import fingerprint
from streams.log import LogUnavailable, RecordRefused
from streams.redaction import NO_SECRETS
from streams.stops import AttemptStopped
from streams.suspension import AttemptSuspended, resume_of
from streams.topics import JOB_EVENTS, partition_of
from streams.transcript import AttemptEvent, attempt_key, attempt_of
from streams.wire.envelope import Unwritable
from streams.wire.events import write_event
from streams.wire.values import write_value

START_TOLD_AFTER_S = 0.1

Ended = PlanMade | PlanRefused | Done | GaveUp


class Outcomes:
    """Runs attempts and tells their jobs how they went.

    Args:
        run: The process's own name for its life.
        chance: Numbers between 0 and 1, for the jitter of backoffs.
        hide: Takes secrets out of a reason, which no event may show.
    """

    def __init__(
        self,
        sender: Sender,
        *,
        lanes: int,
        run: str,
        chance: Callable[[], float],
        hide: Callable[[str], str] = NO_SECRETS.text,
    ) -> None:
        self._sender, self._lanes, self._run, self._chance = sender, lanes, run, chance
        self._hide = hide
        self._telling: set[asyncio.Task[None]] = set()
        self._running: dict[int, tuple[Command, float]] = {}
        self._time = asyncio.get_running_loop().time
        self._log = structlog.get_logger().bind(part="lanes")

    def tell_start_later(self, command: Command) -> asyncio.TimerHandle:
        """Tell that the attempt began, unless the timer returned is cancelled in time.

        What ends within :data:`START_TOLD_AFTER_S` tells that it began by its end: a record and a
        row less for each of the many that do.
        """
        later = asyncio.get_running_loop().call_later

        def begin() -> None:
            telling = asyncio.create_task(self._tell_start(command))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

        return later(START_TOLD_AFTER_S, begin)

    async def _tell_start(self, command: Command) -> None:
        """Not waited for, and not repeated: the attempt's end says the same."""
        resume = resume_of(command)
        event = SubTaskStarted(
            job=command.job,
            task=command.task,
            attempt=command.attempt,
            run=self._run,
            number=0 if resume is None else resume.number,
        )
        try:
            told = await self._sender.producer.send(
                JOB_EVENTS,
                write_event(event),
                key=event.job.encode(),
                partition=partition_of(event.job, self._lanes),
            )
        except LogUnavailable:
            return
        told.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def run(self, command: Command, attempt: RunningAttempt, crew: Crew, resolver: Resolver) -> Ended:
        """Run an attempt to its end, whatever that is.

        Raises:
            LaneMoved: it goes on elsewhere.
            EndedElsewhere: it is over.
            AttemptStopped: nobody needs it any more.
            AttemptSuspended: it waits for somebody outside.
        """
        self._running[id(attempt)] = command, self._time() + command.timeout_s
        try:
            async with asyncio.timeout(command.timeout_s):
                resolved = await resolver.resolve_command(command)
                ended: Ended
                match resolved:
                    case MakePlan():
                        ended = await crew.planner.plan(resolved, attempt)
                    case RunSubTask():
                        ended = await crew.sub_agent.run(resolved, attempt)
                    case MakeAnswer():
                        ended = await crew.synthesiser.answer(resolved, attempt)
                    case Judge():
                        ended = await crew.judge.judge(resolved, attempt)
                # The agent counts what it had replies for; the other calls may have cost as much.
                return replace(ended, usage=ended.usage + attempt.unanswered)
        except TimeoutError:
            return _cut_off(attempt, "timeout", f"no result within {command.timeout_s:g} s")
        except (LaneMoved, EndedElsewhere, AttemptStopped, AttemptSuspended):
            raise
        except ValueLost as error:
            return GaveUp(kind="value_lost", reason=str(error), final=True, usage=attempt.usage)
        except OutcomeUnknown as error:
            return GaveUp(kind="unknown_outcome", reason=str(error), final=True, usage=attempt.usage)
        except Exception as error:  # noqa: BLE001 - an agent's fault fails its attempt, not the lane
            self._log.exception("attempt_broken", job=command.job, task=command.task, attempt=command.attempt)
            reason = self._hide(f"{type(error).__name__}: {error}")[:500]
            return _cut_off(attempt, "broken", reason)
        finally:
            del self._running[id(attempt)]

    async def tell(
        self,
        command: Command,
        attempt: RunningAttempt,
        ended: Ended,
        *,
        ran_s: float,
        key: bytes,
        partition: int,
    ) -> None:
        """Put the attempt's end on the log; a large result goes before it, by claim check.

        Args:
            ran_s: Seconds the attempt ran.
        """
        try:
            event = await self._event(command, ended, key=key, partition=partition)
            event = replace(event, ran_ms=round(ran_s * 1000))
            if isinstance(event, SubTaskFailed):
                await attempt.failed(event)
            await self.send(event)
        except (RecordRefused, Unwritable) as error:
            kind = "too_large" if isinstance(error, RecordRefused) else "unwritable"
            failed = GaveUp(kind=kind, reason=str(error), final=True, usage=ended.usage)
            await self.send(self._failed(command, failed))

    async def tell_stopped(self, command: Command, why: str, usage: Usage = NO_USAGE) -> None:
        """Tell that an attempt was stopped before it began here; *usage* is of its earlier owners."""
        await self.send(self._failed(command, stopped(why, usage)))

    async def tell_lost(self, command: Command, reason: str, usage: Usage) -> None:
        """Tell that an attempt cannot go on from its journal; another one may begin from the start."""
        lost = GaveUp(kind="value_lost", reason=reason, final=False, usage=usage)
        await self.send(self._failed(command, lost))

    async def _event(self, command: Command, ended: Ended, *, key: bytes, partition: int) -> AttemptEvent:
        job, task, number = command.job, command.task, command.attempt
        match ended:
            case PlanMade(plan=plan, usage=usage):
                return Planned(job=job, task=task, attempt=number, plan=plan, usage=usage)
            case Done(result=result, usage=usage):
                data = write_value(result)
                # The answer is for readers without our client: it stays inline while a record can hold it.
                # A verdict, which is short, is read by the fold.
                whole = isinstance(command, Judge) or is_the_answer(command)
                inline = INLINE_SET_BYTES if whole else INLINE_BYTES
                value: Value = Inline(value=result)
                if len(data) > inline:
                    value = await check_in(self._sender, data, key=key, partition=partition, run=self._run)
                return SubTaskSucceeded(
                    job=job,
                    task=task,
                    attempt=number,
                    result=value,
                    size=len(data),
                    usage=usage,
                    proposed=ended.proposed,
                    cites=ended.cites,
                    fingerprint=await fingerprint(result) if _compared(command) else "",
                )
            case PlanRefused(reasons=reasons, usage=usage):
                refused = GaveUp(kind="no_plan", reason="; ".join(reasons), final=True, usage=usage)
                return self._failed(command, refused)
            case GaveUp():
                return self._failed(command, ended)

    def _failed(self, command: Command, ended: GaveUp) -> SubTaskFailed:
        if ended.kind != STOPPED:  # that is told when the stop is heard
            self._log.info(
                "attempt_failed",
                job=command.job,
                task=command.task,
                attempt=command.attempt,
                kind=ended.kind,
                reason=ended.reason,
                final=ended.final,
            )
        return SubTaskFailed(
            job=command.job,
            task=command.task,
            attempt=command.attempt,
            kind=ended.kind,
            reason=ended.reason[:2000],
            final=ended.final,
            retry_in=0.0 if ended.final else backoff(command.attempt, self._chance()),
            usage=ended.usage,
        )

    async def send(self, event: Event) -> None:
        """Put an event on its job's log, and wait until it is there."""
        await self._sender.deliver(
            JOB_EVENTS,
            write_event(event),
            key=event.job.encode(),
            partition=partition_of(event.job, self._lanes),
        )

    def longest_overdue(self) -> tuple[str, float] | None:
        """The attempt whose time was over first: its name, and seconds since then."""
        if not self._running:
            return None
        command, ends = min(self._running.values(), key=lambda item: item[1])
        return attempt_key(command.job, command.task, command.attempt).decode(), self._time() - ends


def stopped(why: str, usage: Usage, *, cut_off: str = "") -> GaveUp:
    """The end of an attempt that nobody needs any more; *cut_off* as of a running attempt."""
    unknown = f"; whether {cut_off} ran is not known" if cut_off else ""
    return GaveUp(kind=STOPPED, reason=f"stopped: {why}{unknown}", final=True, usage=usage)


def _cut_off(attempt: RunningAttempt, kind: str, reason: str) -> GaveUp:
    """An attempt that did not come to its end; another one may, but for a tool that must not run twice."""
    if attempt.cut_off:
        reason = f"{attempt.cut_off} must not run twice, and whether it ran is not known: {reason}"
        return GaveUp(kind="unknown_outcome", reason=reason, final=True, usage=attempt.usage)
    return GaveUp(kind=kind, reason=reason, final=False, usage=attempt.usage)


def _compared(command: Command) -> bool:
    """Whether the fold compares what this attempt brings with other results."""
    return isinstance(command, RunSubTask) and command.fingerprint


def is_the_answer(command: Command) -> bool:
    """Whether what this attempt brings is its job's answer."""
    return (isinstance(command, MakeAnswer) and not command.reduce) or (
        isinstance(command, RunSubTask) and command.alone
    )


def unreadable(key: bytes | None, reason: str) -> SubTaskFailed | None:
    """Word to the job of a command that cannot be read, where its key names the attempt."""
    named = attempt_of(key)
    if named is None:
        return None
    job, task, attempt = named
    return SubTaskFailed(job=job, task=task, attempt=attempt, kind=UNREADABLE, reason=reason, final=False)
