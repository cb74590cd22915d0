"""Faults of what comes in: goals twice and in another order, records that nobody can read."""

import asyncio
from random import Random

from streams.chaos.attacks.registry import fault
from streams.chaos.scene import Scene
from streams.log import LogUnavailable, Record
from streams.topics import GOALS, JOB_EVENTS, SUBTASKS

AWAY_S, AGAIN_S = 60.0, 0.5
"""Seconds that brokers may be away when the goals are read, and between two tries to."""

POISON = (
    b"\xff\x00\xfe",
    b"{",
    b"",
    b'{"goal": 1}',
    b'"' + b"[" * 2_000,
    b'{"id":"x","plan":[{"id":"t1"}]}',
    None,
)


@fault()
async def goals_again(scene: Scene, chance: Random) -> None:
    """Every goal so far comes again, in another order and on any partition, as from a broken producer."""
    lanes = scene.settings.lanes
    there = await _goals_so_far(scene)
    chance.shuffle(there)
    for record in there:
        await scene.sender.deliver(
            GOALS, record.value, key=record.key or b"", partition=chance.randrange(lanes)
        )


async def _goals_so_far(scene: Scene) -> list[Record]:
    """Those that came, as soon as the brokers that another fault took away tell them.

    Raises:
        TimeoutError: They are away for too long.
    """
    async with asyncio.timeout(AWAY_S):
        while True:
            try:
                return [
                    record
                    for partition in range(scene.settings.lanes)
                    async for records in scene.log.read(GOALS, partition)
                    for record in records
                    if record.value is not None and record.value not in POISON
                ]
            except LogUnavailable:
                await asyncio.sleep(AGAIN_S)


@fault()
async def poison(scene: Scene, chance: Random) -> None:
    """Records that nobody can read stand among the goals, the events and the commands."""
    for value in chance.sample(POISON, len(POISON)):
        topic = chance.choice((GOALS, GOALS, JOB_EVENTS, SUBTASKS))
        await scene.sender.deliver(
            topic, value, key=b"nobody", partition=chance.randrange(scene.settings.lanes)
        )
        await asyncio.sleep(chance.uniform(0.0, 0.4))
