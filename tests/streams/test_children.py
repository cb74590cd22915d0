"""Child jobs on the whole path: a parent waits for its children, and cannot be in their way."""

import asyncio
from collections import Counter
from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agents.configuration.tenants import Tenant
from agents.configuration.values import one_endpoint
from agents.ports import Attempt, Done, GaveUp, ToolCall, ToolReply
from streams.core.commands import RunSubTask
from streams.core.goal import DEPTH
from streams.core.plan import SubTask
from streams.core.values import Inline, Json
from streams.memory_log.virtual_time import run
from streams.settings import Settings
from streams.topics import DEAD_LETTERS
from tests.streams.scripted import Script
from tests.streams.swarm_in_memory import SwarmInMemory

ONE = Settings(
    lanes=2,
    concurrency=1,
    window=1,
    configured=replace(
        one_endpoint(base_url="", api_key="", model="m"), tenants={"acme": Tenant(name="acme", jobs=1)}
    ),
)
"""One slot, one command out at once, and one running job of the tenant."""

Tree = list["Tree"]


class Family:
    """Sub-agents ask one child after the other, as their input says; an answer is a tree of answers."""

    def __init__(self) -> None:
        self.ran = Counter[str]()

    async def __call__(self, command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        """As :data:`tests.streams.scripted.Work`."""
        await asyncio.sleep(0.2)
        given = command.input.value if isinstance(command.input, Inline) else []
        assert isinstance(given, list)
        answers: list[Json] = []
        for number, child in enumerate(given):
            call = ToolCall(id=f"call-{number}", name="submit_goal", arguments="{}")
            ended = await attempt.ask_child(
                call, {"goal": "family", "input": child, "tools": ["submit_goal"]}
            )

            async def reply(timeout_s: float, number: int = number) -> ToolReply:
                self.ran[f"{command.job}/{command.task}/{number}"] += 1
                return ToolReply(output=number)

            await attempt.tool(call, reply)
            assert ended.answer is None or isinstance(ended.answer, Inline)
            answers.append(None if ended.answer is None else ended.answer.value)
        return Done(result=answers)


TREES: st.SearchStrategy[Tree] = st.recursive(
    st.just([]), lambda inner: st.lists(inner, max_size=3), max_leaves=4
)


def depth(tree: Tree) -> int:
    """Levels below the root."""
    return 1 + max(map(depth, tree)) if tree else 0


@settings(max_examples=5)
@example([[[[[[]]]]]], 0.0)
@example([[], [[], []]], 1.7)
@given(TREES.filter(lambda tree: depth(tree) <= DEPTH), st.sampled_from((0.0, 1.1, 3.0)))
def test_parents_that_wait_are_not_in_the_way_of_their_children(tree: Tree, dies_s: float) -> None:
    """With one slot, one command out and one job of the tenant at a time, whatever the family, and a kill."""

    async def story() -> None:
        work = Family()
        plan = (SubTask(id="t", goal="x", input="all"),)
        swarm = SwarmInMemory(script=Script({"family": plan}, work=work), settings=ONE)
        worker = swarm.worker()
        goal = {"id": "g", "tenant": "acme", "goal": "family", "tools": ["submit_goal"]}
        await swarm.submit(goal | {"input": tree})
        if dies_s:
            await asyncio.sleep(dies_s)
            worker.kill()
            swarm.worker()
        below = sum(1 for _ in _all(tree))
        answers = await swarm.answers(1 + below, within_s=3_000)
        assert {answer.outcome for answer in answers.values()} == {"succeeded"}
        assert isinstance(answers["g"].answer, Inline)
        assert answers["g"].answer.value == tree
        assert sum(answer.parent is not None for answer in answers.values()) == below
        assert len(await swarm.records(DEAD_LETTERS)) == 0

    run(story())


def _all(tree: Tree) -> "list[Tree]":
    return [each for child in tree for each in (child, *_all(child))]
