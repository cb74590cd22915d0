"""The crew that a worker puts to work: its models and its tools, shared by all agents."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import TypeVar

from agents.configuration.values import Configuration
from agents.judge import ModelJudge
from agents.models.client import ChatClient
from agents.models.metrics import Metrics
from agents.models.retry import PatientModel
from agents.models.traffic import Traffic
from agents.planner import ModelPlanner
from agents.ports import Crew
from agents.sub_agent import ToolUsingAgent
from agents.synthesis import ModelSynthesiser
from agents.tools.local import LocalTools
from agents.tools.shelf import ToolShelf
from agents.tools.shipped import local_tools

T = TypeVar("T")


async def assemble(configuration: Configuration) -> Crew:
    """Wire the agents to what is configured, and start the tool servers. Close the crew at the end.

    Raises:
        BadTools: a tool that the user brings cannot be used.
    """
    async with AsyncExitStack() as opened:
        metrics = Metrics()
        clients = {
            name: await _opening(opened, partial(ChatClient, endpoint), ChatClient.close)
            for name, endpoint in configuration.endpoints.items()
        }
        traffic = Traffic(configuration, clients, metrics=metrics)
        opened.callback(traffic.close)
        model = PatientModel(traffic)
        local = await _opening(opened, partial(local_tools, configuration.local), LocalTools.close)
        tools = ToolShelf(local, configuration, metrics=metrics)
        opened.push_async_callback(tools.close)
        await tools.start()
        return Crew(
            planner=await asyncio.to_thread(ModelPlanner, model, tools),
            sub_agent=await asyncio.to_thread(
                partial(ToolUsingAgent, model, tools, configuration.kind, refused=metrics.tool)
            ),
            synthesiser=await asyncio.to_thread(ModelSynthesiser, model),
            judge=await asyncio.to_thread(ModelJudge, model),
            tools=tools,
            close=opened.pop_all().aclose,
            share=traffic.share,
        )


async def _opening(opened: AsyncExitStack, make: Callable[[], T], close: Callable[[T], Awaitable[None]]) -> T:
    """Make a part, in a thread, because reading certificates and modules blocks; close it at the end."""
    part = await asyncio.to_thread(make)
    opened.push_async_callback(close, part)
    return part
