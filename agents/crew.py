"""The crew that a worker puts to work: one model client and one set of tools for all agents."""

import asyncio

from agents.models.one_model import OneModel
from agents.models.retry import PatientModel
from agents.planner import ModelPlanner
from agents.ports import Crew
from agents.sub_agent import ToolUsingAgent
from agents.synthesis import ModelSynthesiser
from agents.tools.shipped import shipped_tools


async def assemble(*, base_url: str, api_key: str, model: str) -> Crew:
    """Wire the agents to one endpoint. Close the crew at the end.

    Args:
        base_url: The model endpoint, up to and with ``/v1``; empty means OpenAI's own.
        api_key: Its key; never printed.
        model: The model to use where goal and plan name none.
    """
    tools = await asyncio.to_thread(shipped_tools)
    # In threads, because reading prompts and the system's certificates blocks.
    client = await asyncio.to_thread(OneModel, base_url=base_url, api_key=api_key, model=model)
    patient = PatientModel(client)
    return Crew(
        planner=await asyncio.to_thread(ModelPlanner, patient, tools),
        sub_agent=await asyncio.to_thread(ToolUsingAgent, patient, tools),
        synthesiser=await asyncio.to_thread(ModelSynthesiser, patient),
        tools=tools,
        close=client.close,
    )
