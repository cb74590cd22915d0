"""Journals that an earlier owner of a lane wrote in words that this program does not know."""

import asyncio

import orjson
import pytest

from agents.ports import Attempt, Done, GaveUp, ToolCall, ToolReply
from streams.core.commands import RunSubTask
from streams.core.events import SubTaskFailed, SubTaskSucceeded
from streams.memory_log.virtual_time import run
from streams.topics import SUBTASKS, TRANSCRIPTS
from tests.hostile import samples
from tests.streams.lanes_in_memory import LanesInMemory, sub_task, until


@pytest.mark.parametrize("once", [False, True])
def test_a_tool_that_must_run_once_does_not_run_where_a_later_version_may_have_begun_it(once: bool) -> None:
    """What may be repeated is repeated: at worst a call is paid for again."""
    ran: list[str] = []

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        async def tool(timeout_s: float) -> ToolReply:
            ran.append(command.task)
            await asyncio.sleep(5)
            return ToolReply(output="ok")

        found = await attempt.tool(ToolCall(id="c", name="t", arguments="{}"), tool, once=once)
        return Done(result=found.output)

    async def story() -> None:
        here = LanesInMemory(work=work)
        await here.put(sub_task("t"))
        newer = orjson.dumps(samples.of("transcripts")[0] | {"v": 2, "type": "ToolBegun"})
        journal = here.cluster.partition(TRANSCRIPTS, 0)
        journal.append(b"default/g/t/1", newer, (), here.cluster.now_ms())
        here.worker()
        await until(lambda: here.committed() == here.cluster.partition(SUBTASKS, 0).end)
        (event,) = here.events()
        if once:
            assert isinstance(event, SubTaskFailed)
            assert (event.kind, event.final, ran) == ("unknown_outcome", True, [])
        else:
            assert isinstance(event, SubTaskSucceeded)
            assert ran == ["t"]

    run(story())
