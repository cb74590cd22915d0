"""Faults of the model endpoint."""

import asyncio
from dataclasses import replace
from random import Random
from urllib.parse import urlsplit

from agents.simulator import Fixed
from streams.chaos.attacks.registry import fault
from streams.chaos.scene import Scene


@fault()
async def endpoint_down(scene: Scene, chance: Random) -> None:
    """Calls in flight are cut, and for some seconds connections are refused."""
    address, seconds = urlsplit(scene.endpoint.url), chance.uniform(0.5, 4.0)
    assert address.hostname is not None  # the simulator writes it so
    assert address.port is not None
    async with scene.endpoint_turn:
        await scene.endpoint.close()
        await asyncio.sleep(seconds)
        await scene.endpoint.listen(address.hostname, address.port)


@fault()
async def endpoint_slow(scene: Scene, chance: Random) -> None:
    """For some seconds each call takes ten times as long."""
    async with scene.endpoint_turn:
        usual = scene.endpoint.behaviour
        scene.endpoint.behaviour = replace(usual, latency=Fixed(chance.uniform(2.0, 4.0)))
        await asyncio.sleep(chance.uniform(2.0, 5.0))
        scene.endpoint.behaviour = usual


@fault()
async def endpoint_garbage(scene: Scene, chance: Random) -> None:
    """For some seconds every second call ends badly: broken JSON, half a body, 500, 429 of both kinds."""
    async with scene.endpoint_turn:
        usual = scene.endpoint.behaviour
        scene.endpoint.behaviour = replace(
            usual,
            failures=(
                ("malformed", 0.15),
                ("cut", 0.15),
                ("server_error", 0.1),
                ("rate_limited", 0.05),
                ("overloaded", 0.05),
            ),
        )
        await asyncio.sleep(chance.uniform(1.0, 4.0))
        scene.endpoint.behaviour = usual
