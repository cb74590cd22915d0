"""The crew of simulated workers: the real agents, on the endpoint and the tools in memory."""

from agents.judge import ModelJudge
from agents.models.retry import PatientModel
from agents.planner import ModelPlanner
from agents.ports import Attempt, Crew, Done, GaveUp, Model, Tools
from agents.sub_agent import ToolUsingAgent
from agents.synthesis import ModelSynthesiser
from streams.chaos.simulation.tools import at_work
from streams.core.commands import RunSubTask


class NamedAgent:
    """A sub-agent whose tools know for which attempt they are called."""

    def __init__(self, agent: ToolUsingAgent) -> None:
        self._agent = agent

    async def run(self, command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        """Work on one sub-task."""
        at_work.set(f"{command.job}/{command.task}/{command.attempt}")
        return await self._agent.run(command, attempt)


def crew(model: Model, tools: Tools) -> Crew:
    """The agents as a worker has them."""
    patient = PatientModel(model)
    return Crew(
        planner=ModelPlanner(patient, tools),
        sub_agent=NamedAgent(ToolUsingAgent(patient, tools)),
        synthesiser=ModelSynthesiser(patient),
        judge=ModelJudge(patient),
        tools=tools,
        close=_nothing,
    )


async def _nothing() -> None:
    """There is no connection to close."""
