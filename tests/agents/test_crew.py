"""The whole crew on the shipped simulated endpoint: plan, sub-tasks with real tools, answer."""

import pytest

from agents.configuration.reading import read_configuration
from agents.configuration.values import one_endpoint
from agents.crew import assemble
from agents.ports import Done, PlanMade
from agents.simulator.behaviour import Behaviour
from agents.simulator.server import start
from agents.tools.registered import BadTools
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


KEYS = ("the-first-key-of-it", "the-second-key-of-it")


@pytest.mark.asyncio
async def test_each_kind_asks_its_model_at_its_endpoint() -> None:
    """Two endpoints, each with keys of its own; where the first is away the second answers."""
    first, second = await start(Behaviour(keys=KEYS[:1])), await start(Behaviour(keys=KEYS[1:]))
    text = f"""
        [endpoints.first]
        base_url = "{first.url}"
        key_variables = ["KEY_1"]
        [endpoints.second]
        base_url = "{second.url}"
        key_variables = ["KEY_2"]
        [models.one]
        endpoint = "first"
        id = "simulated"
        [models.two]
        endpoint = "second"
        id = "simulated"
        [kinds.default]
        models = ["one", "two"]
        [kinds.translate]
        models = ["two"]
        [kinds.planner]
        models = ["two"]
        [kinds.synthesis]
        models = ["two"]
    """
    environment = dict(zip(("KEY_1", "KEY_2"), KEYS, strict=True))
    crew = await assemble(read_configuration(text, path="a.toml", environment=environment))
    by: list[str] = []
    goal = Inline(value="Do it")
    try:
        own = MemoryAttempt()
        await crew.planner.plan(
            MakePlan(job="t/j", task="plan", attempt=1, ordinal=0, timeout_s=60.0, text=goal), own
        )
        await crew.synthesiser.answer(
            MakeAnswer(job="t/j", task="answer", attempt=1, ordinal=0, timeout_s=60.0, text=goal, results=()),
            own,
        )
        assert {reply.endpoint for reply in own.journal.replies} == {"second"}
        for kind in ("analyze", "translate", "analyze"):
            attempt = MemoryAttempt()
            done = await crew.sub_agent.run(
                RunSubTask(job="t/j", task="a", attempt=1, ordinal=0, timeout_s=60.0, goal="Do", kind=kind),
                attempt,
            )
            assert isinstance(done, Done)
            by += [reply.endpoint for reply in attempt.journal.replies]
            if kind == "translate":
                await first.close()
    finally:
        await crew.close()
        await second.close()
    assert by == ["first", "second", "second"]


@pytest.mark.asyncio
async def test_tools_that_cannot_be_used_leave_nothing_open() -> None:
    """Whoever assembles is told which."""
    text = "[tools]\nmodules = ['nowhere.at_all:tools']"
    with pytest.raises(BadTools, match=r"nowhere\.at_all"):
        await assemble(read_configuration(text, path="a.toml", environment={}))
