"""Faults of tools, which goals of their own ask for."""

from collections.abc import Mapping
from random import Random
from typing import Final

from streams.chaos.attacks.registry import fault
from streams.chaos.scene import Scene
from streams.chaos.tools import BREAKING
from streams.core.values import Json

TIMEOUT_S: Final = 5.0
"""Seconds of an attempt: a tool that hangs does so until then."""


@fault()
async def tool_dies(scene: Scene, chance: Random) -> None:
    """A tool takes its worker along in the middle of a job; asked again it answers."""
    await _ask(scene, chance, "dies_once")


@fault()
async def tool_hangs(scene: Scene, chance: Random) -> None:
    """A tool never returns, or keeps its thread; the attempt ends by its time, and the next one goes well."""
    await _ask(scene, chance, chance.choice(("hangs_once", "blocks_once")))


async def _ask(scene: Scene, chance: Random, tool: str) -> None:
    """A goal with the tool in the middle of a chain."""
    name = f"{tool.replace('_', '-')}-{chance.getrandbits(16)}"
    plan: list[Mapping[str, Json]] = [
        {"id": "before", "tool": "noop"},
        {"id": "broken", "tool": tool, "args": {"name": name}, "dep": ["before"]},
        {"id": "after", "tool": "noop", "dep": ["broken"]},
    ]
    await scene.ask(
        "Use a tool that breaks",
        id=name,
        plan=plan,
        tools=["noop", *BREAKING],
        limits={"timeout_s": TIMEOUT_S, "max_attempts": 10},
    )
