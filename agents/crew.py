"""The crew that a worker puts to work: its models and its tools, shared by all agents."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TypeVar

import structlog

from agents.configuration.values import Configuration, LocalToolSettings
from agents.models.client import ChatClient
from agents.models.metrics import Metrics
from agents.models.retry import PatientModel
from agents.models.traffic import Traffic
from agents.planner import ModelPlanner
from agents.ports import Crew
from agents.sub_agent import ToolUsingAgent
from agents.synthesis import ModelSynthesiser
from agents.tools.local import LocalTools
from agents.tools.registered import registered_tools
from agents.tools.sandbox import sandbox_problem, sandbox_tools
from agents.tools.shipped import shipped_tools

T = TypeVar("T")


async def assemble(configuration: Configuration) -> Crew:
    """Wire the agents to what is configured. Close the crew at the end.

    Raises:
        BadTools: a tool that the user brings cannot be used.
    """
    async with AsyncExitStack() as opened:
        metrics = Metrics()
        tools = await opening(opened, lambda: local_tools(configuration.local), LocalTools.close)
        clients = {
            name: await opening(opened, lambda: ChatClient(endpoint), ChatClient.close)  # noqa: B023 - called at once
            for name, endpoint in configuration.endpoints.items()
        }
        traffic = Traffic(configuration, clients, metrics=metrics)
        opened.callback(traffic.close)
        model = PatientModel(traffic)
        return Crew(
            planner=await asyncio.to_thread(ModelPlanner, model, tools),
            sub_agent=await asyncio.to_thread(ToolUsingAgent, model, tools, configuration.kind),
            synthesiser=await asyncio.to_thread(ModelSynthesiser, model),
            tools=tools,
            close=opened.pop_all().aclose,
            share=traffic.share,
        )


async def opening(opened: AsyncExitStack, make: Callable[[], T], close: Callable[[T], Awaitable[None]]) -> T:
    """Make a part, in a thread, because reading prompts, certificates and modules blocks; close it at the end."""
    part = await asyncio.to_thread(make)
    opened.push_async_callback(close, part)
    return part


def local_tools(settings: LocalToolSettings) -> LocalTools:
    """All tools that are Python functions: those that ship, those of the sandbox, those that users bring.

    Raises:
        BadTools: one of the latter cannot be used.
    """
    ours = list(shipped_tools())
    if settings.sandbox:
        if problem := sandbox_problem():
            structlog.get_logger().error("sandbox_missing", reason=problem)
        else:
            ours += sandbox_tools(settings)
    brought = registered_tools(settings.modules, taken=[tool.spec.name for tool in ours])
    return LocalTools((*ours, *brought))
