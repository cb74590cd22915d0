"""One attempt of a sub-task: its time, its slot and its journal, as the agents' side sees them."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Literal, NoReturn, TypeAlias

from agents.grants import unfinished
from agents.ports import ModelError, ModelReply, ModelRequest, ToolCall, ToolReply
from streams.children import child_goal
from streams.claims import Resolver
from streams.core.commands import CallEnded, Command
from streams.core.events import STOPPED, Event, NoteWritten, SubTaskFailed, SubTaskSuspended
from streams.core.values import NO_USAGE, Grant, Inline, JobId, Json, Usage
from streams.journal import Journal
from streams.log import RecordRefused
from streams.past import Past, Try
from streams.redaction import NO_SECRETS, Redactor
from streams.slots import Slots
from streams.standing import Standing
from streams.stops import AttemptStopped
from streams.suspension import AttemptSuspended, resume_of
from streams.transcript import ToolCalled
from streams.wire.envelope import Unwritable
from streams.wire.goal_fields import BadFields
from streams.wire.values import write_value

SILENT_S = 10.0
"""Seconds that the next owner of a lane waits for the next word of calls that were handed over."""

AGAIN_S = 2.0
"""Seconds between two such words."""

A_TOOL_CALL = Usage(tool_calls=1)

Tell: TypeAlias = Callable[[Event], Awaitable[None]]
Submit: TypeAlias = Callable[[JobId, bytes], Awaitable[None]]


class LaneMoved(Exception):
    """The attempt makes no further call here: its lane is another's, or this process stops.

    Its journal is whole, and whoever has the lane goes on from there.
    """


class EndedElsewhere(Exception):
    """An earlier owner of the lane has journaled the attempt's end meanwhile; no call is made any more."""


class OutcomeUnknown(Exception):
    """A tool that must not be called twice has begun, and nobody knows whether it did its work."""


class RunningAttempt:
    """An attempt under way (an :class:`agents.ports.Attempt`).

    Each reply is put on the journal at once, and is there before the next call begins: a call
    whose reply is being written is not waited for by whoever only works with that reply. What the
    journal holds from before is recalled. A slot is held but in :meth:`wait`.

    Args:
        past: What earlier owners of the lane journaled of this attempt.
        chance: Numbers between 0 and 1.
        tell: Puts an event on the log of the attempt's job, and waits until it is there.
        submit: Puts a goal's record on its topic, likewise.
        redactor: Takes secrets out of what comes from outside, before anybody sees it: the agent
            goes on with what the journal has, here as well as after a takeover.

    """

    def __init__(
        self,
        command: Command,
        journal: Journal,
        slots: Slots,
        standing: Standing,
        *,
        past: Past,
        resolver: Resolver,
        chance: Callable[[], float],
        tell: Tell,
        submit: Submit,
        redactor: Redactor = NO_SECRETS,
    ) -> None:
        self._redactor = redactor
        self._command, self._journal, self._slots, self._standing = command, journal, slots, standing
        self._past, self._resolver, self._chance = past, resolver, chance
        resume = resume_of(command)
        self._number = 0 if resume is None else resume.number
        self._tell, self._submit = tell, submit
        self._time = asyncio.get_running_loop().time
        self._ends = self._time() + command.timeout_s
        self._holds = self._away = False
        self._writing: list[asyncio.Task[None]] = []
        self._replies = self._tries = self._seen = 0
        self._refused: tuple[ModelRequest, ModelError] | None = None
        self._moved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._aloft: set[int | str] = set()
        self._landed = asyncio.Event()
        self._landed.set()
        self._handed_over = False
        self._telling: asyncio.Task[None] | None = None
        self._counted = NO_USAGE
        self._unanswered: dict[Try, Usage] = {}
        self._once: dict[str, str] = {}
        self._stopped = ""

    def begin(self) -> None:
        """Its time counts from now: it has a slot."""
        self._ends = self._time() + self._command.timeout_s

    def stop(self, why: str) -> None:
        """Nobody needs it any more: no further call begins, and what is cut short is journaled as stopped."""
        self._stopped = why

    def left(self) -> float:
        """Seconds this attempt still has."""
        return max(0.0, self._ends - self._time())

    async def model(
        self, request: ModelRequest, call: Callable[[ModelRequest, float], Awaitable[ModelReply]]
    ) -> ModelReply:
        """As :meth:`agents.ports.Attempt.model`.

        Raises:
            LaneMoved, EndedElsewhere, AttemptStopped: no call may begin here any more.
        """
        n = self._replies + 1
        self._decided("retry")
        if n not in self._past.replies:
            await self._clear_to_call()
        reply = self._past.replies.get(n)
        if reply is None:
            self._tries = max(self._tries, self._past.tries.get(n, 0))
            with self._flight(n):
                try:
                    call_id = self._journal.call_id(n, self._tries + 1)
                    named = replace(request, call_id=call_id, tenant=self._command.job.partition("/")[0])
                    reply = await call(named, self.left())
                    reply = replace(reply, message=self._redactor.message(reply.message))
                except ModelError as error:
                    error.reason = self._redactor.text(error.reason)
                    error.args = (error.reason,)
                    self._tries += 1
                    self._unanswered[self._journal.run, n, self._tries] = error.usage or NO_USAGE
                    self._refused = request, error
                    raise
                except asyncio.CancelledError:
                    # Its time is over, or this process ends; what was asked may be answered, and paid for.
                    cost = unfinished(request, self.grant, self.usage)
                    self._unanswered[self._journal.run, n, self._tries + 1] = cost
                    if self._stopped:
                        self._write(self._cut_short(n, request, cost))
                    raise
                self._write(self._journal.model_called(n, self._seen, request, reply))
        self._counted += reply.usage
        self._replies, self._tries = n, 0
        self._seen = len(request.messages) + 1  # the reply among them
        return reply

    async def tool(
        self, call: ToolCall, run: Callable[[float], Awaitable[ToolReply]], *, once: bool = False
    ) -> ToolReply:
        """As :meth:`agents.ports.Attempt.tool`.

        Raises:
            LaneMoved, EndedElsewhere, AttemptStopped: no call may begin here any more.
            OutcomeUnknown: a call that must not be repeated began before, and has no end.
        """
        if call.id not in self._past.tools:
            await self._clear_to_call()
        ended = self._past.tools.get(call.id)
        if ended is not None:
            reply = await self._recalled(ended)
            # Here its server may be away, so that nobody but the journal knows that it must not run twice.
            if reply.unknown and call.id in self._past.started:
                raise OutcomeUnknown(f"{call.name} must not run twice, and whether it ran is not known")
        elif call.id in self._past.started or (once and self._past.newer):
            raise OutcomeUnknown(f"{call.name} must not run twice, and whether it ran is not known")
        else:
            reply = await self._run_tool(call, run, once=once)
        self._counted += A_TOOL_CALL
        return reply

    async def _run_tool(
        self, call: ToolCall, run: Callable[[float], Awaitable[ToolReply]], *, once: bool
    ) -> ToolReply:
        with self._flight(call.id):
            if once:
                await self._journal.tool_started(call)
            # That may have taken long: by now somebody else may have the lane, and run it.
            if not once or await self._ours():
                if once:
                    self._once[call.id] = call.name
                    reply, stopped = await self._to_its_end(run)
                    self._once.pop(call.id, None)
                else:
                    reply, stopped = await self._until_stopped(run)
                reply = replace(reply, output=self._redactor.output(reply.output))
                self._write(self._journal.tool_called(call, reply))
                if stopped:
                    self._counted += A_TOOL_CALL
                    raise asyncio.CancelledError
                return reply
        return await self._leave()

    async def _until_stopped(self, run: Callable[[float], Awaitable[ToolReply]]) -> tuple[ToolReply, bool]:
        """What the tool says, or that it was stopped; and whether it was."""
        began = self._time()
        try:
            return await run(self.left()), False
        except asyncio.CancelledError:
            if not self._stopped:
                raise
            took_ms = round((self._time() - began) * 1000, 3)
            return ToolReply(output=self._stopped, error=STOPPED, latency_ms=took_ms), True

    async def _to_its_end(self, run: Callable[[float], Awaitable[ToolReply]]) -> tuple[ToolReply, bool]:
        """As :meth:`_until_stopped`, of a tool that must not run twice: a stop waits for its end.

        Cut off it might be half done, and nobody would know.
        """
        running, stopped = asyncio.ensure_future(run(self.left())), False
        try:
            try:
                await asyncio.wait([running])
            except asyncio.CancelledError:
                if not self._stopped:
                    raise
                stopped = True
                await asyncio.wait([running], timeout=self.left())
        finally:
            if not running.done():
                running.cancel()
                await asyncio.wait([running])
        return running.result(), stopped

    async def _recalled(self, ended: ToolCalled) -> ToolReply:
        output = await self._resolver.resolve(ended.output)
        return ToolReply(output=output, error=ended.error, latency_ms=ended.latency_ms, shared=ended.shared)

    async def _clear_to_call(self) -> None:
        """Wait until all replies are on the journal and the lane is surely ours."""
        await self.recorded()
        if self._stopped:
            raise AttemptStopped(self._stopped)
        if not await self._ours():
            await self._leave()

    async def _ours(self) -> bool:
        """Wait until the lane is surely ours; False where no call may begin here any more."""
        if not self._standing.sure and not self._moved.done():
            sure = asyncio.ensure_future(self._standing.wait())
            try:
                await asyncio.wait([sure, self._moved], return_when=asyncio.FIRST_COMPLETED)
            finally:
                sure.cancel()
        return not self._moved.done() and self._past.over(self._number) is None

    async def _leave(self) -> NoReturn:
        """End here; calls side by side with this one come to their end first: they are paid for."""
        await self._landed.wait()
        await self.recorded()
        raise LaneMoved if self._past.over(self._number) is None else EndedElsewhere

    @contextmanager
    def _flight(self, call: int | str) -> Iterator[None]:
        """A call is under way: a model's by its number, a tool's by its id."""
        self._aloft.add(call)
        self._landed.clear()
        try:
            yield
        finally:
            self._aloft.discard(call)
            if not self._aloft:
                self._landed.set()

    async def hand_over(self) -> None:
        """The lane may move: journal which calls are under way, and wait until all of it is there.

        Raises:
            RecordRefused, Unwritable: the journal cannot hold a part of it.
        """
        if self._aloft:
            self._handed_over = True
            await self._journal.handed_over(self._aloft, SILENT_S)
        await self.recorded()

    def keep(self) -> None:
        """The lane has not moved after all. One that moved before has: its calls are still waited for."""
        if self._handed_over and not self._moved.done():
            self._handed_over = False
            self._write(self._journal.handed_over((), 0.0))

    def move(self) -> None:
        """The lane is another's: begin no further call here. What is under way comes to its end."""
        if not self._moved.done():
            self._moved.set_result(None)
            if self._handed_over:
                self._telling = asyncio.create_task(self._still_aloft())

    async def _still_aloft(self) -> None:
        """Let the next owner know that this process lives, as long as it has calls under way."""
        while self._aloft:
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_S):
                    await self._landed.wait()
            if self._aloft:
                await self._journal.handed_over(self._aloft, SILENT_S)

    @property
    def moved(self) -> bool:
        """It begins no further call here."""
        return self._moved.done()

    async def recorded(self) -> None:
        """Wait until every reply so far is on the journal.

        Raises:
            RecordRefused, Unwritable: the journal cannot hold one; the attempt must not go on.
        """
        so_far = tuple(self._writing)
        if any(not task.done() for task in so_far):
            await asyncio.wait(so_far)  # others may wait for the same; nobody's end may end them
        self._writing = [task for task in self._writing if task not in so_far]
        for task in so_far:
            task.result()

    async def failed(self, event: SubTaskFailed) -> None:
        """It ends without a result: journal that, before its job is told.

        What was asked last has no reply that a later owner of the lane could recall: it would ask
        again, and wait again for what will not come.

        Raises:
            RecordRefused, Unwritable: the journal cannot hold it.
        """
        await self._journal.ended(event)

    async def end(self) -> None:
        """It makes no call any more: wait until all of it is on the journal.

        Raises:
            RecordRefused, Unwritable: the journal cannot hold a part of it.
        """
        self._decided("give_up")
        await self.recorded()

    async def _cut_short(self, n: int, request: ModelRequest, cost: Usage) -> None:
        """A stop cut a model call off: journal it, with what it may have cost all the same."""
        error = ModelError(STOPPED, self._stopped, retry=False)
        error.usage = cost
        await self._journal.model_failed(
            n, request, error, tried=self._tries + 1, seen=self._seen, decision="give_up"
        )

    def _decided(self, decision: str) -> None:
        """What was made of the last call that brought no reply is known by what came after it."""
        if self._refused is not None:
            (request, error), self._refused = self._refused, None
            entry = self._journal.model_failed(
                self._replies + 1,
                request,
                error,
                tried=self._tries,
                seen=self._seen,
                decision=error.decision or decision,
            )
            self._write(entry)

    def _write(self, entry: Coroutine[Any, Any, None]) -> None:
        self._writing.append(asyncio.create_task(entry))

    async def note(self, call: ToolCall, topic: str, value: Json, *, base: int, timeout_s: float) -> None:
        """As :meth:`agents.ports.Attempt.note`."""
        value = self._redactor.output(value)
        written = NoteWritten(
            job=self._command.job,
            task=self._command.task,
            attempt=self._command.attempt,
            call=call.id,
            topic=topic,
            value=Inline(value=value),
            base=base,
            size=len(write_value(value)),
        )
        async with asyncio.timeout(min(timeout_s, self.left())):
            await self._tell(written)

    async def wait_outside(
        self,
        call: ToolCall,
        *,
        on: Literal["approval", "child"],
        args: Json = None,
        child: JobId | None = None,
    ) -> CallEnded:
        """As :meth:`agents.ports.Attempt.wait_outside`.

        Raises:
            AttemptSuspended: it is not answered; all calls so far are on the journal.
            LaneMoved, EndedElsewhere, AttemptStopped: no call may begin here any more.
        """
        if (ended := await self._answered(call)) is not None:
            return ended
        await self._landed.wait()
        await self._clear_to_call()
        raise AttemptSuspended(call, on=on, args=self._redactor.output(args), child=child)

    async def ask_child(self, call: ToolCall, goal: Mapping[str, Json]) -> CallEnded:
        """As :meth:`agents.ports.Attempt.ask_child`.

        Raises:
            AttemptSuspended, LaneMoved, EndedElsewhere, AttemptStopped: as of :meth:`wait_outside`.
        """
        if (ended := await self._answered(call)) is not None:
            return ended
        await self._landed.wait()
        await self._clear_to_call()
        try:
            child, value = child_goal(self._command, call, self._redactor.output(dict(goal)))
            async with asyncio.timeout(self.left()):
                await self._submit(child, value)
        except (BadFields, Unwritable, RecordRefused) as error:
            reason = self._redactor.text(f"the goal cannot be submitted: {error}")
            return CallEnded(call=call.id, outcome="rejected", reason=reason)
        return await self.wait_outside(call, on="child", args=dict(goal), child=child)

    async def _answered(self, call: ToolCall) -> CallEnded | None:
        """What a call that waited has come to."""
        resume = resume_of(self._command)
        ended = next((each for each in resume.ended if each.call == call.id), None) if resume else None
        if ended is None or ended.answer is None:
            return ended
        return replace(ended, answer=Inline(value=await self._resolver.resolve(ended.answer)))

    async def suspend(self, wait: AttemptSuspended, *, ran_ms: int) -> SubTaskSuspended:
        """It waits for somebody outside: journal that, before its job is told.

        Raises:
            RecordRefused, Unwritable: the journal cannot hold it.
        """
        event = SubTaskSuspended(
            job=self._command.job,
            task=self._command.task,
            attempt=self._command.attempt,
            on=wait.on,
            call=wait.call.id,
            tool=wait.call.name,
            args=wait.arguments,
            child=wait.child,
            journal=tuple(sorted({*self._past.offsets, *self._journal.offsets})),
            number=self._number + 1,
            so_far=self.usage,
            ran_ms=ran_ms,
        )
        await self._journal.ended(event)
        return event

    async def wait(self, seconds: float) -> None:
        """As :meth:`agents.ports.Attempt.wait`.

        Raises:
            LaneMoved: no call may begin here any more.
        """
        if seconds >= self.left():
            raise TimeoutError
        self._decided("retry")
        self._step_out()
        await asyncio.wait([self._moved], timeout=seconds)
        await self._back()

    async def wait_for(self, ready: Callable[[], Awaitable[None]]) -> None:
        """As :meth:`agents.ports.Attempt.wait_for`.

        Raises:
            LaneMoved: no call may begin here any more; what was waited for is given up.
        """
        self._decided("retry")
        self._step_out()
        waiting: asyncio.Future[Any] = asyncio.ensure_future(ready())
        try:
            await asyncio.wait(
                [waiting, self._moved], timeout=self.left(), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            if not waiting.done():
                waiting.cancel()
                with suppress(asyncio.CancelledError):
                    await waiting
        await self._back()
        if waiting.cancelled():
            raise TimeoutError
        waiting.result()

    async def _back(self) -> None:
        """Take the slot again after a wait."""
        if self._moved.done():
            await self.recorded()
            raise LaneMoved
        await self.take()

    @property
    def cut_off(self) -> str:
        """A tool that must not be called twice and whose call was cut off, so that no attempt may call it.

        Empty where there is none; where there are several, one of them.
        """
        return next(iter(self._once.values()), "")

    @property
    def grant(self) -> Grant | None:
        """As :attr:`agents.ports.Attempt.grant`."""
        return self._command.grant

    @property
    def fallback(self) -> int:
        """As :attr:`agents.ports.Attempt.fallback`."""
        return self._command.fallback

    @property
    def usage(self) -> Usage:
        """As :attr:`agents.ports.Attempt.usage`, also where it ends without a result."""
        return self._counted + self.unanswered

    @property
    def unanswered(self) -> Usage:
        """What those of its calls may have cost that brought no reply, here and at earlier owners."""
        return sum((self._past.costs | self._unanswered).values(), NO_USAGE)

    async def take(self) -> None:
        """Wait for a slot; ahead of those who have not begun, after a wait."""
        back, self._away = self._away, False  # whatever comes of it
        order = self._command
        await self._slots.acquire(order.job, priority=order.priority, weight=order.weight, back=back)
        self._holds = True

    def _step_out(self) -> None:
        """Give the slot back for a wait."""
        if self._holds:
            self._holds, self._away = False, True
            self._slots.step_out(self._command.job)

    def give_back(self) -> None:
        """Give the slot back for good, where one is held or would be taken again after a wait."""
        if self._holds:
            self._slots.release(self._command.job)
        elif self._away:
            self._slots.stay_away(self._command.job)
        self._holds = self._away = False

    def jitter(self) -> float:
        """As :meth:`agents.ports.Attempt.jitter`."""
        return self._chance()
