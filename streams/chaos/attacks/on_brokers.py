"""Faults of the brokers, and of the lines to them."""

import asyncio
from random import Random
from typing import Final

from streams.broker.cluster import Cluster
from streams.chaos.attacks.registry import fault
from streams.chaos.proxy import Api, Moment, Trap
from streams.chaos.scene import Scene
from streams.chaos.stranger import take_over
from streams.log import LogUnavailable

UNTRAPPED_S: Final = 10.0
"""Seconds to wait for a request that a trap is set for; without work there is none."""

_MOMENTS: Final[tuple[Moment, ...]] = ("before", "after")


def _cluster(scene: Scene) -> Cluster:
    assert scene.cluster is not None  # the registry knows what a fault needs
    return scene.cluster


@fault("brokers")
async def brokers_stopped(scene: Scene, chance: Random) -> None:
    """All brokers are stopped in order and started again where they were."""
    cluster, seconds = _cluster(scene), chance.uniform(0.5, 5.0)
    async with scene.brokers_turn, scene.outage():
        await asyncio.gather(*(cluster.stop(number) for number in range(len(cluster))))
        await asyncio.sleep(seconds)
        await asyncio.gather(*(cluster.start(number) for number in range(len(cluster))))


@fault("brokers")
async def brokers_killed(scene: Scene, chance: Random) -> None:
    """All brokers are gone at once (SIGKILL) and are started again where they were."""
    cluster, seconds = _cluster(scene), chance.uniform(0.5, 5.0)
    async with scene.brokers_turn, scene.outage():
        await asyncio.gather(*(cluster.kill(number) for number in range(len(cluster))))
        await asyncio.sleep(seconds)
        await asyncio.gather(*(cluster.start(number) for number in range(len(cluster))))


@fault("three")
async def broker_lost(scene: Scene, chance: Random) -> None:
    """One of three brokers is gone at once; the others go on with what it led, until it is back in step."""
    cluster, number, seconds = _cluster(scene), chance.randrange(3), chance.uniform(2.0, 7.0)
    async with scene.brokers_turn:
        await cluster.kill(number)
        await asyncio.sleep(seconds)
        await cluster.start(number)
        await cluster.whole()


@fault()
async def stranger(scene: Scene, chance: Random) -> None:
    """Somebody else takes over the transactional identity of a partition's owner, and goes again."""
    partition = chance.randrange(scene.settings.lanes)
    hold_s, abort = chance.uniform(0.0, 2.0), chance.choice((True, False))
    try:
        await take_over(scene.settings, partition, hold_s=hold_s, abort=abort)
    except LogUnavailable as error:
        scene.notes.append(f"the stranger found no broker: {error}")


@fault("proxy")
async def commit_cut(scene: Scene, chance: Random) -> None:
    """The connection is cut exactly around the commit of a transaction, before or after it, a few times."""
    await _trapped(scene, chance, Api.END_TXN, hold_s=None)


@fault("proxy")
async def commit_held_up(scene: Scene, chance: Random) -> None:
    """The commit of a transaction, or the word that it is done, is held up for seconds."""
    await _trapped(scene, chance, Api.END_TXN, hold_s=chance.uniform(0.5, 5.0))


@fault("proxy")
async def sending_cut(scene: Scene, chance: Random) -> None:
    """The connection is cut around the sending of records, so that nobody knows whether they landed."""
    await _trapped(scene, chance, Api.PRODUCE, hold_s=None)


@fault("proxy")
async def all_cut(scene: Scene, chance: Random) -> None:
    """All connections of all workers are cut at once, a few times in a row."""
    for _ in range(chance.randint(1, 3)):
        for proxy in scene.proxies:
            proxy.cut()
        await asyncio.sleep(chance.uniform(0.0, 1.0))


async def _trapped(scene: Scene, chance: Random, api: Api, *, hold_s: float | None) -> None:
    """Trap the next few requests of a kind on one way, and wait until the first was."""
    proxy = chance.choice(scene.proxies)
    moment = chance.choice(_MOMENTS)
    trap = proxy.set(
        Trap(api=api, moment=moment, hold_s=hold_s, skip=chance.randint(0, 3), times=chance.randint(1, 3))
    )
    try:
        async with asyncio.timeout(UNTRAPPED_S):
            await trap.once.wait()
            await asyncio.sleep(hold_s or 1.0)
    except TimeoutError:
        scene.notes.append(f"no {api.name} came within {UNTRAPPED_S:g} s")
    finally:
        proxy.lift(trap)
