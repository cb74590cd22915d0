"""A crew whose answers are scripted, for tests of what is around it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from agents.ports import (
    NOBODY,
    Attempt,
    Caller,
    Crew,
    Done,
    GaveUp,
    ModelReply,
    ModelRequest,
    PlanMade,
    PlanRefused,
    ToolReply,
    ToolSpec,
)
from streams.core.commands import Judge, MakeAnswer, MakePlan, RunSubTask
from streams.core.plan import Plan, SubTask
from streams.core.values import Inline, Json, Usage

Work = Callable[[RunSubTask, Attempt], Awaitable[Done | GaveUp]]


def flat(count: int) -> Plan:
    """*count* sub-tasks that need nothing of each other."""
    return tuple(SubTask(id=f"t{n}", goal=f"do {n}") for n in range(count))


def chain(count: int) -> Plan:
    """*count* sub-tasks, each of which needs the one before."""
    return tuple(SubTask(id=f"t{n}", goal=f"do {n}", dep=(f"t{n - 1}",) if n else ()) for n in range(count))


async def echo(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
    """Ask the model once; the result names the sub-task and what it got of its dependencies."""

    async def call(request: ModelRequest, timeout_s: float) -> ModelReply:
        await asyncio.sleep(0.3)
        usage = Usage(calls=1, tokens_in=10, tokens_out=5)
        return ModelReply(
            message={"content": command.task}, finish_reason="stop", usage=usage, model="scripted"
        )

    reply = await attempt.model(ModelRequest(messages=[{"role": "user", "content": command.goal}]), call)
    got = [item.result.value for item in command.dep if isinstance(item.result, Inline)]
    return Done(result={"did": command.task, "with": got}, usage=reply.usage)


class Script:
    """Planner, sub-agent and synthesiser in one.

    Attributes:
        ran: Every attempt that began, in order.
    """

    def __init__(self, plans: Mapping[str, Plan | PlanRefused] | None = None, work: Work = echo) -> None:
        self._plans, self._work = plans or {}, work
        self.ran: list[tuple[str, str, int]] = []

    async def plan(self, command: MakePlan, attempt: Attempt) -> PlanMade | PlanRefused | GaveUp:
        """The plan by the goal's text, else the text's number of flat sub-tasks."""
        text = command.text.value if isinstance(command.text, Inline) else ""
        assert isinstance(text, str)
        found = self._plans.get(text)
        if isinstance(found, PlanRefused):
            return found
        return PlanMade(plan=found if found is not None else flat(int(text)))

    async def run(self, command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        """Run one sub-task as scripted."""
        self.ran.append((command.job, command.task, command.attempt))
        return await self._work(command, attempt)

    async def answer(self, command: MakeAnswer, attempt: Attempt) -> Done | GaveUp:
        """All results by name."""
        results: dict[str, Json] = {
            item.task: item.result.value if isinstance(item.result, Inline) else item.reason
            for item in command.results
        }
        return Done(result=results)

    async def judge(self, command: Judge, attempt: Attempt) -> Done | GaveUp:
        """Nothing to object to, no two results alike, the order as it is."""
        names = [item.task for item in command.results]
        verdicts: dict[str, Json] = {
            "gate": {"allow": True, "reason": ""},
            "check": {"contradictions": []},
            "equal": {"groups": [[name] for name in names]},
            "rank": {"order": list(names)},
        }
        return Done(result=verdicts[command.asks])

    def crew(self) -> Crew:
        """As the lanes take it."""

        async def close() -> None:
            pass

        return Crew(planner=self, sub_agent=self, synthesiser=self, judge=self, tools=NoTools(), close=close)


class NoTools:
    """No tool at all."""

    def specs(self, names: Sequence[str]) -> tuple[ToolSpec, ...]:
        """None."""
        return ()

    async def call(
        self, name: str, arguments: Mapping[str, Json], *, timeout_s: float, caller: Caller = NOBODY
    ) -> ToolReply:
        """Unknown."""
        return ToolReply(output=f"no tool {name}", error="unknown_tool")
