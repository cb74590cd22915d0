"""Bugs put into the real parts, each with a life that must show it.

Whoever breaks one of the rules that keep the promise is found by the verifier: that is what these
are for. A bug replaces one method of a real part for as long as a life is lived; the verifier
itself looks at what is left of that life with everything as it was.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from itertools import count

import pytest

from agents.ports import ModelReply, ModelRequest
from streams import caps, effects, orchestrator
from streams.attempt import RunningAttempt
from streams.chaos.scenarios import SHARED, Incident, Scenario
from streams.chaos.scenarios import Job as SentJob
from streams.core import attempts, beginning, settling
from streams.core.commands import Answer, Effect, StopAttempt
from streams.core.ending import Folded
from streams.core.events import JobSubmitted, Planned
from streams.core.plan import Plan
from streams.core.states import Finished, Job, Open, Ready, SubTaskState, Waiting
from streams.core.values import Inline, JobId, TaskId
from streams.delivery import Sender
from streams.effects import Sending
from streams.intake import Intake
from streams.lane import Lane
from streams.lanes import Lanes
from streams.log import Delivery, Headers, Record, Transactions
from streams.memory_log import MemoryLog
from streams.orchestrator import Partition
from streams.past import Past
from streams.standing import Standing
from streams.table import Table
from streams.topics import ANSWERS, DEAD_LETTERS
from streams.wire.answers import write_fitting
from streams.wire.rows import Row

Patch = pytest.MonkeyPatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A bug.

    Attributes:
        plant: Puts it in place.
        scenario: A life that shows it.
        kinds: Of findings, at least one of which must be made.
    """

    plant: Callable[[Patch], None]
    scenario: Scenario
    kinds: frozenset[str]


def commands_acknowledged_at_delivery(patch: Patch) -> None:
    """A lane says that a command is done as soon as it has it."""
    add = Lane.add

    def hasty(self: Lane, delivery: Delivery, task: "asyncio.Task[bool]") -> None:
        add(self, delivery, task)
        delivery.ack()

    patch.setattr(Lane, "add", hasty)


def position_told_before_the_commit(patch: Patch) -> None:
    """The orchestrator says that events are done before what they ask for has landed."""
    step = Partition.step

    async def hasty(self: Partition, records: Sequence[Record], *, staging: bool = True) -> None:
        if records:
            self._claim.done(records[-1].offset + 1)
        await step(self, records, staging=staging)

    patch.setattr(Partition, "step", hasty)


def no_fence(patch: Patch) -> None:
    """Each owner of a partition has an identity of its own, so that the last one can still commit."""
    transactions, numbers = MemoryLog.transactions, count()

    def unfenced(self: MemoryLog, identity: str) -> AbstractAsyncContextManager[Transactions]:
        return transactions(self, f"{identity}-{next(numbers)}")

    patch.setattr(MemoryLog, "transactions", unfenced)


def answers_twice(patch: Patch) -> None:
    """A transaction holds each answer twice."""
    land = effects.land

    async def doubly(transactions: Transactions, sendings: Iterable[Sending]) -> None:
        given = list(sendings)
        await land(transactions, [*given, *(sending for sending in given if sending[0] == ANSWERS)])

    patch.setattr(orchestrator, "land", doubly)


def answers_outside_of_the_transaction(patch: Patch) -> None:
    """An answer stands also where the transaction that it belongs to does not commit."""
    commit = Partition._commit

    async def outside(self: Partition, sendings: Iterable[Sending]) -> None:
        given = list(sendings)
        for topic, partition, (key, value, headers) in given:
            if topic == ANSWERS:
                await self._producer.send(topic, value, key=key, partition=partition, headers=headers)
        await commit(self, [sending for sending in given if sending[0] != ANSWERS])

    patch.setattr(Partition, "_commit", outside)


def a_marker_forgotten(patch: Patch) -> None:
    """The table writes no row of some finished jobs."""
    changes = Table.changes

    def forgetful(self: Table) -> Iterable[tuple[str, Row | None]]:
        rows = changes(self)
        return [each for each in rows if not (isinstance(each[1], Finished) and each[0].endswith("3"))]

    patch.setattr(Table, "changes", forgetful)


def an_answer_changed(patch: Patch) -> None:
    """What is published is not what the fold made."""

    def embellished(answer: Answer, most: int) -> tuple[bytes, Headers]:
        changed = replace(answer, answer=Inline(value="42")) if answer.id == "g3" else answer
        return write_fitting(changed, most)

    patch.setattr(effects, "write_fitting", embellished)


def dependencies_not_waited_for(patch: Patch) -> None:
    """All sub-tasks of a plan are ready at once."""
    take_plan = settling.take_plan

    def hasty(job: Open, event: Planned | JobSubmitted, plan: Plan) -> Folded:
        after, made = take_plan(job, event, plan)
        if not isinstance(after, Open):
            return after, made
        states: dict[TaskId, SubTaskState] = {
            task: Ready() if isinstance(state, Waiting) else state for task, state in after.states.items()
        }
        return replace(after, states=states, ready=tuple(states)), made

    for module in (beginning, attempts):
        patch.setattr(module, "take_plan", hasty)


def a_cap_too_high(patch: Patch) -> None:
    """Each lane takes the whole system's cap for its own."""

    def greedy(lane: int, *, concurrency: int, lanes: int) -> int:
        return concurrency

    patch.setattr(caps, "cap_of", greedy)


def calls_made_twice(patch: Patch) -> None:
    """A reply is thrown away and asked for again."""
    model = RunningAttempt.model

    async def wasteful(
        self: RunningAttempt,
        request: ModelRequest,
        call: Callable[[ModelRequest, float], Awaitable[ModelReply]],
    ) -> ModelReply:
        async def twice(asked: ModelRequest, timeout_s: float) -> ModelReply:
            await call(asked, timeout_s)
            return await call(asked, timeout_s)

        return await model(self, request, twice)

    patch.setattr(RunningAttempt, "model", wasteful)


def a_journal_not_read(patch: Patch) -> None:
    """Whoever goes on with an attempt does not look at what it did before."""
    patch.setattr(Past, "add", lambda self, record: None)


def a_zombie_that_calls(patch: Patch) -> None:
    """Nobody asks whether a lane is still theirs."""
    patch.setattr(Standing, "sure", property(lambda self: True))


def a_goal_passed_over(patch: Patch) -> None:
    """Intake acknowledges some goals and does nothing with them."""
    take_in = Intake.take_in

    async def forgetful(self: Intake, record: Record) -> None:
        if (record.partition, record.offset) != (0, 1):
            await take_in(self, record)

    patch.setattr(Intake, "take_in", forgetful)


def nothing_buried(patch: Patch) -> None:
    """What cannot be read is only logged, and the log never hears of it."""
    deliver = Sender.deliver

    async def forgetful(
        self: Sender, topic: str, value: bytes | None, *, key: bytes, partition: int, headers: Headers = ()
    ) -> int:
        if topic == DEAD_LETTERS:
            return 0
        return await deliver(self, topic, value, key=key, partition=partition, headers=headers)

    patch.setattr(Sender, "deliver", forgetful)


def stops_not_heard(patch: Patch) -> None:
    """A lane goes on with what nobody needs."""
    patch.setattr(Lanes, "_stop", lambda self, order, key: None)


def stops_not_sent(patch: Patch) -> None:
    """The orchestrator tells no lane that nobody needs an attempt."""
    fold = Partition._fold

    def quiet(self: Partition, record: Record, touched: dict[JobId, Job]) -> tuple[Effect, ...]:
        return tuple(each for each in fold(self, record, touched) if not isinstance(each, StopAttempt))

    patch.setattr(Partition, "_fold", quiet)


_JOBS = SHARED["nothing goes wrong"].jobs[:4]

CALM = replace(SHARED["records that nobody can read"], jobs=_JOBS)
KILLED = SHARED["both workers are killed"]
ASLEEP = SHARED["a worker sleeps beyond its session"]
ASLEEP_IN_A_COMMIT = replace(
    KILLED, delay_s=0.2, incidents=(Incident(kind="pause", at=3.0, worker=0, seconds=12.0),)
)
"""A worker stops with requests under way, which land after another has taken over."""


_TOOLS = [{"id": "each", "goal": "Look at it", "input": "all"}]
TOO_LATE = replace(
    CALM,
    latency_s=4.0,
    jobs=tuple(
        SentJob(
            goal={
                "id": f"late{n}",
                "goal": "Do as planned",
                "plan": _TOOLS,
                "input": [{"name": f"n{n}"}],
                "tools": ["look_up", "weigh"],
                "deadline_s": 1.5 + n / 2,
            },
            at=60.0,
            certain=False,
        )
        for n in range(6)
    ),
)
"""Jobs whose time is over while their sub-agents are between two calls."""


def _planted(plant: Callable[[Patch], None], scenario: Scenario, *kinds: str) -> Planted:
    return Planted(plant=plant, scenario=scenario, kinds=frozenset(kinds))


PLANTED = (
    _planted(commands_acknowledged_at_delivery, CALM, "committed_early"),
    _planted(position_told_before_the_commit, CALM, "committed_early"),
    _planted(no_fence, ASLEEP_IN_A_COMMIT, "command", "duplicated", "rows_differ"),
    _planted(answers_twice, CALM, "duplicated"),
    _planted(answers_outside_of_the_transaction, ASLEEP, "duplicated"),
    _planted(a_marker_forgotten, CALM, "rows_differ"),
    _planted(an_answer_changed, CALM, "wrong"),
    _planted(dependencies_not_waited_for, CALM, "too_early"),
    _planted(a_cap_too_high, CALM, "cap"),
    _planted(calls_made_twice, CALM, "called_again"),
    _planted(a_journal_not_read, KILLED, "called_again"),
    _planted(a_zombie_that_calls, ASLEEP, "called_again"),
    _planted(a_goal_passed_over, CALM, "lost", "unaccounted"),
    _planted(nothing_buried, CALM, "unaccounted"),
    _planted(stops_not_heard, TOO_LATE, "after_stop"),
    _planted(stops_not_sent, TOO_LATE, "stop"),
)
"""Every bug, in a life that keeps the promise without it."""
