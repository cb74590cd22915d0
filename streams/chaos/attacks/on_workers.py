"""Faults of the worker processes: killed, stopped, asleep, coming and going."""

import asyncio
from contextlib import suppress
from random import Random
from typing import Final

from streams.chaos import disk
from streams.chaos.attacks.registry import fault
from streams.chaos.fault_points import POINTS
from streams.chaos.scene import Scene
from streams.chaos.wiping import wipe_table

POINT_S: Final = 8.0
"""Seconds to wait for a worker to come to the point at which it is to be struck."""


@fault()
async def kill(scene: Scene, chance: Random) -> None:
    """A worker is gone at once (SIGKILL), and another is started a moment later, or at once."""
    worker = scene.workers.pick(chance)
    pause = chance.choice((0.0, 0.5, 3.0))
    if worker is not None:
        await worker.kill()
        await asyncio.sleep(pause)
        await (await scene.workers.start()).ready()


@fault()
async def kill_all(scene: Scene, chance: Random) -> None:
    """All workers are gone at once, as when the power fails, and come back together."""
    pause = chance.uniform(0.0, 2.0)
    workers = list(scene.workers.living)
    await asyncio.gather(*(worker.kill() for worker in workers))
    await asyncio.sleep(pause)
    await scene.workers.heal(scene.count)


@fault()
async def stop(scene: Scene, chance: Random) -> None:
    """A worker is told to stop (SIGTERM), drains and leaves; another is started meanwhile or after it."""
    worker = scene.workers.pick(chance)
    before = chance.choice((True, False))
    if worker is None:
        return
    worker.taken = True
    if before:
        await (await scene.workers.start()).ready()
        await worker.stop()
    else:
        await worker.stop()
        await (await scene.workers.start()).ready()


@fault()
async def asleep(scene: Scene, chance: Random) -> None:
    """A worker takes no step for longer than its session (SIGSTOP), then goes on (SIGCONT) as a zombie."""
    worker = scene.workers.pick(chance)
    seconds = scene.settings.session_timeout_s * chance.uniform(1.3, 2.2)
    if worker is None:
        return
    worker.taken = True
    worker.pause()
    await asyncio.sleep(seconds)
    worker.resume()
    await asyncio.sleep(1.0)
    worker.taken = False


@fault()
async def doze(scene: Scene, chance: Random) -> None:
    """A worker takes no step for shorter than its session, and goes on as if nothing had been."""
    worker = scene.workers.pick(chance)
    seconds = scene.settings.session_timeout_s * chance.uniform(0.3, 0.8)
    if worker is None:
        return
    worker.taken = True
    worker.pause()
    await asyncio.sleep(seconds)
    worker.resume()
    worker.taken = False


@fault()
async def crowd(scene: Scene, chance: Random) -> None:
    """Rebalances in a row: more and more workers come, then all but one leave, some killed."""
    extra = [await scene.workers.start() for _ in range(chance.randint(1, 2))]
    for worker in extra:
        worker.taken = True
        await worker.ready()
    leaving = [worker for worker in scene.workers.living if not worker.how][:-1]
    for worker in leaving:
        worker.taken = True
        await asyncio.sleep(chance.uniform(0.0, 0.5))
        await (worker.kill() if chance.choice((True, False)) else worker.stop())
    for worker in extra:
        worker.taken = False
    await scene.workers.heal(scene.count)


@fault()
async def killed_at_a_point(scene: Scene, chance: Random) -> None:
    """A worker is gone at once just before or after it begins, sends, commits or acknowledges something."""
    worker = scene.workers.pick(chance)
    point = f"{chance.choice(POINTS)}:{chance.choice(('before', 'after'))}:{chance.randint(1, 5)}"
    if worker is None:
        return
    worker.taken = True
    striking = await scene.workers.start("--kill-at", point)
    striking.taken = True
    await striking.ready()
    await worker.stop()
    for number in range(3):  # so that there is something to do
        await scene.ask("[[plan 4]]", id=f"point-{number}-{chance.getrandbits(16)}")
    try:
        async with asyncio.timeout(POINT_S):
            await striking.end()
        scene.notes.append(f"killed at {point}")
    except TimeoutError:
        striking.taken = False


@fault()
async def clocks_apart(scene: Scene, chance: Random) -> None:
    """A worker is replaced by one whose clock is minutes ahead or behind, until the end of the round."""
    worker = scene.workers.pick(chance)
    seconds = chance.choice((-1, 1)) * chance.uniform(60.0, 600.0)
    if worker is None:
        return
    worker.taken = True
    scene.clocks_apart = True
    await (await scene.workers.start("--clock", f"{seconds:.0f}")).ready()
    await worker.stop()


@fault()
async def disk_full(scene: Scene, chance: Random) -> None:
    """A worker cannot write to any file for some seconds."""
    worker = scene.workers.pick(chance)
    seconds = chance.uniform(1.0, 5.0)
    if worker is None:
        return
    worker.taken = True
    with suppress(ProcessLookupError):  # another fault may have ended it
        disk.fill(worker.process.pid)
        await asyncio.sleep(seconds)
        disk.clear(worker.process.pid)
    worker.taken = False


@fault()
async def table_wiped(scene: Scene, chance: Random) -> None:
    """The table is deleted with all its rows while no worker runs, and is made again from the log."""
    pause = chance.uniform(0.0, 1.0)
    async with scene.brokers_turn:
        scene.rebuilt = True
        await asyncio.gather(*(worker.kill() for worker in scene.workers.living))
        await wipe_table(scene.settings, replication=scene.replication)
    await asyncio.sleep(pause)
    await scene.workers.heal(scene.count)
