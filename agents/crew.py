"""The crew that a worker puts to work: one model client and one set of tools for all agents."""

import asyncio

from agents.configuration.values import DEFAULT, Configuration
from agents.models.one_model import OneModel
from agents.models.retry import PatientModel
from agents.planner import ModelPlanner
from agents.ports import Crew
from agents.sub_agent import ToolUsingAgent
from agents.synthesis import ModelSynthesiser
from agents.tools.shipped import shipped_tools


async def assemble(configuration: Configuration) -> Crew:
    """Wire the agents to what is configured. Close the crew at the end."""
    tools = await asyncio.to_thread(shipped_tools)
    model = configuration.models[configuration.kinds[DEFAULT].models[0]]
    endpoint = configuration.endpoints[model.endpoint]
    # In threads, because reading prompts and the system's certificates blocks.
    client = await asyncio.to_thread(
        OneModel, base_url=endpoint.base_url, api_key=next(iter(endpoint.keys), ""), model=model.id
    )
    patient = PatientModel(client)
    return Crew(
        planner=await asyncio.to_thread(ModelPlanner, patient, tools),
        sub_agent=await asyncio.to_thread(ToolUsingAgent, patient, tools, kinds=configuration.kind),
        synthesiser=await asyncio.to_thread(ModelSynthesiser, patient),
        tools=tools,
        close=client.close,
    )
