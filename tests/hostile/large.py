"""A crew whose results are as large as their goals ask for, in memory and as a worker of its own."""

import asyncio
from typing import Final

import structlog

from agents.ports import Attempt, Done, GaveUp
from streams.app import run_parts
from streams.cli.environment import settings
from streams.core.commands import MakeAnswer, RunSubTask
from streams.core.values import Inline, Json
from streams.kafka.log import KafkaLog
from tests.streams.scripted import Script, flat

RESULT_BYTES: Final = 200_000


async def large(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
    """200 KB, or as many bytes as the goal says."""
    size = int(command.goal) if command.goal.isdigit() else RESULT_BYTES
    return Done(result=f"{command.task}:".ljust(size, "x"))


class Large(Script):
    """Its answers say how large each result was that came with the command."""

    async def answer(self, command: MakeAnswer, attempt: Attempt) -> Done | GaveUp:
        """The number of characters by sub-task; of steps of a tree what they counted."""
        if isinstance(command.text, Inline) and command.text.value == "3":
            return GaveUp(kind="bad_request", reason="three are too many", final=True)
        sizes: dict[str, Json] = {}
        for item in command.results:
            assert isinstance(item.result, Inline)
            if isinstance(item.result.value, dict):
                sizes |= item.result.value
                continue
            assert isinstance(item.result.value, str)
            assert item.result.value.startswith(f"{item.task}:")
            sizes[item.task] = len(item.result.value)
        return Done(result=sizes)


async def work() -> None:
    """A worker on the Kafka that the environment names, until it is stopped."""
    ours = settings()
    async with KafkaLog(ours) as log:
        logger = structlog.get_logger()
        await run_parts(
            ours,
            log,
            Large({"[[plan 1]]": flat(1)}, large).crew(),
            stop=asyncio.Event(),
            ready=lambda: logger.info("large_worker_ready"),
        )


def main() -> None:
    """Run it."""
    asyncio.run(work())
