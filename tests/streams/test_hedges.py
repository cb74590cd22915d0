"""Hedges in the whole topology on the log in memory, and how it is learned what is slow."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from structlog.testing import capture_logs

from agents.ports import NOBODY, Attempt, Caller, Done, GaveUp, ModelReply, ModelRequest, ToolReply, ToolSpec
from streams.core.commands import RunSubTask, StopAttempt
from streams.core.events import STOPPED, HedgeDue, JobSubmitted, SubTaskFailed, SubTaskStarted
from streams.core.goal import Goal, Hedging, Source
from streams.core.job import absorb
from streams.core.plan import SubTask
from streams.core.states import New
from streams.core.values import Inline, Json, Usage
from streams.hedges import LEAST, WINDOW, HedgeTimers, RunTimes, repeatable
from streams.memory_log.virtual_time import run
from streams.settings import Settings
from streams.topics import JOB_EVENTS, SUBTASKS
from streams.wire.commands import read_command
from streams.wire.events import read_event
from tests.streams.scripted import Script
from tests.streams.swarm_in_memory import SwarmInMemory

SETTINGS = Settings(lanes=4, concurrency=100)
SLOW_S = 100.0
COUNT = 30


class OneSlow:
    """Work of a second for each sub-task, but for the first run of these: it takes :data:`SLOW_S`."""

    def __init__(self, *slow: str, hedges_too: bool = False) -> None:
        self._slow, self._hedges_too = slow, hedges_too
        self.fallbacks = Counter[int]()
        self.cancelled: list[str] = []

    async def __call__(self, command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        self.fallbacks[attempt.fallback] += 1
        name = command.hedge_of or command.task
        slow = name in self._slow and (command.hedge_of is None or self._hedges_too)

        async def call(request: ModelRequest, timeout_s: float) -> ModelReply:
            try:
                await asyncio.sleep(SLOW_S if slow else 1.0)
            except asyncio.CancelledError:
                self.cancelled.append(command.task)
                raise
            usage = Usage(calls=1, tokens_in=10)
            return ModelReply(message={"content": name}, finish_reason="stop", usage=usage, model="m")

        reply = await attempt.model(ModelRequest(messages=[{"content": name}]), call)
        return Done(result=f"{name}", usage=reply.usage)


def goal(count: int = COUNT, **more: object) -> dict[str, object]:
    """A goal of so many sub-tasks."""
    return {"id": "g", "goal": str(count), "limits": {"concurrency": 100}, "hedge": {"share": 0.1}, **more}


async def answered(work: OneSlow, fields: Mapping[str, object]) -> tuple[SwarmInMemory, float]:
    """The swarm once the goal is answered, and the seconds that took, as the answer says."""
    swarm = SwarmInMemory(script=Script(work=work), settings=SETTINGS)
    for _ in range(2):
        swarm.worker()
    await swarm.submit(fields)
    answer = (await swarm.answers(1))["g"]
    return swarm, (answer.answered_at - answer.submitted_at) / 1000


def test_a_slow_attempt_is_overtaken() -> None:
    """The job does not wait for it; its call is cancelled, and told with what it may have cost."""

    async def story() -> None:
        work = OneSlow("t7")
        with capture_logs() as logs:
            swarm, took_s = await answered(work, goal())
        assert took_s < 15
        (answer,) = (await swarm.answers(1)).values()
        assert answer.outcome == "succeeded"
        assert [line.task for line in answer.subtasks if line.hedged] == ["t7"]
        assert answer.value == {f"t{n}": f"t{n}" for n in range(COUNT)}
        assert work.cancelled == ["t7"]
        assert work.fallbacks == {0: COUNT, 1: 1}, "the hedge begins with the next model"
        events = [read_event(record) for record in await swarm.records(JOB_EVENTS)]
        (stopped,) = (each for each in events if isinstance(each, SubTaskFailed))
        assert (stopped.task, stopped.kind) == ("t7", STOPPED)
        orders = [read_command(record) for record in await swarm.records(SUBTASKS)]
        assert [each.task for each in orders if isinstance(each, StopAttempt)] == ["t7"]
        begun = [line for line in logs if line["event"] == "hedge_begun"]
        assert [(line["job"], line["task"], line["attempt"]) for line in begun] == [("default/g", "t7", 1)]
        lanes = {
            each.task: record.partition
            for record, each in zip(await swarm.records(SUBTASKS), orders, strict=True)
        }
        assert lanes["~hedge-8"] != lanes["t7"]

    run(story())


def test_where_all_are_as_slow_no_more_are_hedged_than_the_share() -> None:
    """Six are slow, and so would their hedges be: three begin, and every attempt is waited for."""

    async def story() -> None:
        work = OneSlow(*(f"t{n}" for n in range(6)), hedges_too=True)
        swarm, took_s = await answered(work, goal())
        assert took_s >= SLOW_S
        (answer,) = (await swarm.answers(1)).values()
        assert answer.outcome == "succeeded"
        assert sum(line.hedged for line in answer.subtasks) == 3
        assert work.fallbacks[1] == 3
        events = [read_event(record) for record in await swarm.records(JOB_EVENTS)]
        assert sum(isinstance(each, HedgeDue) for each in events) == 3, "none is due in vain"

    run(story())


@pytest.mark.parametrize(
    "fields",
    [
        {"hedge": {"share": 0.0}},
        {"hedge": {"share": 1.0, "floor_s": 200.0}},
        {"hedge": {"share": 1.0}, "goal": str(LEAST - 1)},
        {"hedge": {"share": 1.0}, "tools": ["noop"]},
        {"hedge": {"share": 1.0}, "limits": {"concurrency": 1}},
    ],
    ids=["not asked for", "a floor", "too little is known", "tools nobody knows", "no place"],
)
def test_nothing_is_hedged(fields: dict[str, object]) -> None:
    """Where the goal or the tools do not allow it, where nothing is learned, or no place is free."""

    async def story() -> None:
        swarm, took_s = await answered(OneSlow("t3"), {**goal(), **fields})
        assert took_s >= SLOW_S
        events = [read_event(record) for record in await swarm.records(JOB_EVENTS)]
        assert not any(isinstance(each, HedgeDue) for each in events)

    run(story())


def test_a_restart_of_the_orchestrator_learns_anew() -> None:
    """Attempts under way are looked after again, once enough others have succeeded."""

    async def story() -> None:
        swarm = SwarmInMemory(script=Script(work=OneSlow("t0")), settings=SETTINGS)
        first = swarm.worker()
        await swarm.submit(goal(1, id="slow", hedge={"share": 1.0}))
        await asyncio.sleep(10)
        await first.close()
        swarm.worker()
        await asyncio.sleep(10)
        await swarm.submit(goal(20, id="quick", goal="20"))
        answers = await swarm.answers(2)
        assert answers["slow"].subtasks[0].hedged

    run(story())


def test_what_is_slow_is_learned_by_kind() -> None:
    """The newest successes count, and none before there are enough."""
    times = RunTimes()
    for ran_ms in range(1, LEAST):
        times.note("a", ran_ms)
    assert times.slow_ms("a") is None
    times.note("a", 1_000)
    assert (times.slow_ms("a"), times.slow_ms("b")) == (1_000, None)
    for _ in range(WINDOW):
        times.note("a", 50)
    assert times.slow_ms("a") == 50
    for ran_ms in range(1, 101):
        times.note("b", ran_ms)
    assert times.slow_ms("b") == 95


def test_an_agent_that_is_told_a_tool_may_call_the_others_too() -> None:
    """All of them must bear to be called twice; a direct call is of its own tool only."""
    plan = (SubTask(id="agent", goal="x", tool="read"), SubTask(id="call", goal="", tool="read"))
    goal = Goal(text=Inline(value="go"), hedge=Hedging(share=1.0), tools=("read", "pay"))
    source = Source(topic="goals", partition=0, offset=0)
    before, _ = absorb(New(), JobSubmitted(job="acme/g", goal=goal, source=source, plan=plan))
    asked: list[tuple[str, ...]] = []

    def may_repeat(names: Sequence[str]) -> bool:
        asked.append(tuple(names))
        return False

    timers = HedgeTimers(RunTimes(), may_repeat)
    for task in ("agent", "call"):
        after, _ = absorb(before, SubTaskStarted(job="acme/g", task=task, attempt=1, run="r"))
        timers.arm(before, after)
        before = after
    assert asked == [("read", "pay"), ("read",)]


def test_tools_that_must_not_run_twice_are_not_hedged() -> None:
    """Nor those that nobody knows."""

    class Some:
        def specs(self, names: Sequence[str]) -> tuple[ToolSpec, ...]:
            known = {"read": False, "pay": True}
            return tuple(
                ToolSpec(name=name, description="", parameters={}, once=known[name])
                for name in names
                if name in known
            )

        async def call(
            self, name: str, arguments: Mapping[str, Json], *, timeout_s: float, caller: Caller = NOBODY
        ) -> ToolReply:
            raise NotImplementedError

    may_repeat = repeatable(Some())
    assert may_repeat(())
    assert may_repeat(("read", "read"))
    assert not may_repeat(("read", "pay"))
    assert not may_repeat(("read", "away.tool"))
