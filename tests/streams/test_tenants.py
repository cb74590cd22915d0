"""Tenants on the whole topology in memory: defaults, the gate, and turns by weight."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from agents.ports import Attempt, Done, GaveUp
from streams.core.commands import Judge, RunSubTask
from streams.core.events import JobSubmitted
from streams.core.values import Inline
from streams.memory_log.virtual_time import run
from streams.settings import Settings
from streams.topics import JOB_EVENTS
from streams.wire.events import read_event
from tests.agents.configuration.reading import read
from tests.streams.scripted import Script
from tests.streams.swarm_in_memory import SwarmInMemory

CONFIGURED = """
    [defaults]
    limits = { max_attempts = 2, timeout_s = 30 }
    [tenants.gated]
    gate = { model = true }
    [tenants.heavy]
    weight = 3
    [tenants.light]
    weight = 1
"""


@dataclass(eq=False)
class Porter:
    """Looks at goals: refuses those that say 13, is out where they say 14."""

    asked: list[str] = field(default_factory=list)

    def script(self) -> Script:
        script = Script()
        script.judge = self.judge  # type: ignore[method-assign]
        return script

    async def judge(self, command: Judge, attempt: Attempt) -> Done | GaveUp:
        assert command.asks == "gate"
        self.asked.append(command.job)
        await asyncio.sleep(1)
        text = command.text.value if isinstance(command.text, Inline) else ""
        if text == "14":
            return GaveUp(kind="unavailable", reason="nobody is there", final=False)
        return Done(result={"allow": text != "13", "reason": "bad luck"})


def test_a_model_at_the_gate_lets_in_and_refuses() -> None:
    """Also over the death of the worker that asked it; each goal has one answer, sent again or not."""

    async def story() -> None:
        porter = Porter()
        settings = Settings(lanes=2, configured=read(CONFIGURED))
        swarm = SwarmInMemory(script=porter.script(), settings=settings)
        first = swarm.worker()
        goals = {"fine": "2", "bad": "13", "out": "14"}
        for name, text in goals.items():
            await swarm.submit({"id": name, "goal": text, "tenant": "gated"})
        brought = [{"id": "a", "goal": "x"}, {"id": "b", "goal": "y", "dep": ["a"]}]
        await swarm.submit({"id": "brought", "goal": "2", "tenant": "gated", "plan": brought})
        await swarm.submit({"id": "free", "goal": "13"})
        while not porter.asked:
            await asyncio.sleep(0.1)
        first.kill()
        swarm.worker()
        await swarm.submit({"id": "bad", "goal": "13", "tenant": "gated"})
        answers = await swarm.answers(5)
        told = {name: (answer.outcome, answer.rule) for name, answer in answers.items()}
        assert told == {
            "fine": ("succeeded", "all_done"),
            "bad": ("rejected", "gate"),
            "out": ("failed", "gate"),
            "brought": ("succeeded", "all_done"),
            "free": ("succeeded", "all_done"),
        }
        assert [report.task for report in answers["brought"].subtasks] == ["a", "b"]
        assert answers["bad"].reason == "bad luck"
        assert "nobody is there" in answers["out"].reason
        assert porter.asked.count("gated/out") >= 2
        assert "default/free" not in porter.asked
        events = [read_event(record) for record in await swarm.records(JOB_EVENTS)]
        limits = {event.goal.limits.timeout_s for event in events if isinstance(event, JobSubmitted)}
        assert limits == {30}

    run(story())


def test_a_tenant_of_three_times_the_weight_has_three_turns_for_one() -> None:
    """While both wait, in what is released and in what runs."""

    async def story() -> None:
        order: list[str] = []

        async def work(command: RunSubTask, attempt: Attempt) -> Done:
            order.append(command.job.partition("/")[0])
            await asyncio.sleep(5)
            return Done(result=1)

        settings = Settings(lanes=1, concurrency=4, window=8, configured=read(CONFIGURED))
        swarm = SwarmInMemory(script=Script(work=work), settings=settings)
        plan = [{"id": f"t{n}", "goal": "x"} for n in range(40)]
        for tenant in ("light", "heavy"):
            await swarm.submit({"id": tenant, "goal": "x", "tenant": tenant, "plan": plan})
        swarm.worker()
        await swarm.answers(2)
        assert len(order) == 80
        had = Counter(order[8:48])
        assert 27 <= had["heavy"] <= 33, had

    run(story())
