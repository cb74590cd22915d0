"""The whole crew on the shipped simulated endpoint: plan, sub-tasks with real tools, answer."""

import pytest

from agents.configuration.values import one_endpoint
from agents.crew import assemble
from agents.ports import Done, PlanMade
from agents.simulator.behaviour import Behaviour
from agents.simulator.server import start
from streams.core.commands import MakeAnswer, MakePlan, RunSubTask, TaskResult
from streams.core.values import Inline
from tests.agents.memory_attempt import MemoryAttempt

NAMES = ["attrs", "orjson", "certifi"]


@pytest.mark.asyncio
async def test_an_audit_of_three_packages() -> None:
    """Each package becomes a sub-task that asks the tool; the simulated replies are free and say so."""
    simulator = await start(Behaviour())
    crew = await assemble(one_endpoint(base_url=simulator.url, api_key="k", model="simulated"))
    attempt = MemoryAttempt()
    try:
        made = await crew.planner.plan(
            MakePlan(
                job="t/j", task="plan", attempt=1, ordinal=0, timeout_s=60.0,
                text=Inline(value="Audit the licences of these packages"),
                input=Inline(value=NAMES), items=3, tools=("distribution_metadata",),
            ),
            attempt,
        )  # fmt: skip
        assert isinstance(made, PlanMade)
        assert sorted(task.input for task in made.plan if task.input is not None) == [(0, 0), (1, 1), (2, 2)]
        results: list[TaskResult] = []
        for ordinal, task in enumerate(made.plan):
            items = task.input if isinstance(task.input, tuple) else None
            done = await crew.sub_agent.run(
                RunSubTask(
                    job="t/j", task=task.id, attempt=1, ordinal=ordinal, timeout_s=60.0, goal=task.goal,
                    kind=task.kind, input=Inline(value=NAMES) if task.input else None, items=items,
                    tools=("distribution_metadata",), dep=tuple(r for r in results if r.task in task.dep),
                ),
                MemoryAttempt(),
            )  # fmt: skip
            assert isinstance(done, Done)
            assert done.usage.usd == 0.0
            results.append(
                TaskResult(
                    task=task.id, goal=task.goal, outcome="succeeded", result=Inline(value=done.result)
                )
            )
        answered = await crew.synthesiser.answer(
            MakeAnswer(
                job="t/j", task="answer", attempt=1, ordinal=9, timeout_s=60.0,
                text=Inline(value="Audit the licences of these packages"), results=tuple(results),
            ),
            attempt,
        )  # fmt: skip
    finally:
        await crew.close()
        await simulator.close()
    assert isinstance(answered, Done)
    assert all(name in str(answered.result) for name in NAMES)
    assert all(reply.simulated for reply in attempt.journal.replies)
