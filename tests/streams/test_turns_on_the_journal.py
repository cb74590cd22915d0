"""A sub-agent's turns as the journal has them: refusals too, and large results whole."""

from dataclasses import replace

from agents.models.retry import PatientModel
from agents.ports import Done
from agents.sub_agent import ToolUsingAgent
from agents.tools.local import LocalTools, local_tool
from streams.claims import Resolver
from streams.core.values import Inline, Reference
from streams.memory_log.virtual_time import run
from streams.transcript import ModelCalled, ToolCalled
from tests.agents.scripted_endpoint import tool_call
from tests.agents.scripted_model import ScriptedModel, said
from tests.streams.desk import Desk
from tests.streams.lanes_in_memory import sub_task

LARGE = f"head{'x' * 3_000_000}tail"


def test_three_megabytes_are_whole_on_the_journal() -> None:
    """The model has seen head and tail; whoever debugs reads all of it, also after a takeover."""

    async def dump() -> str:
        """Return much."""
        return LARGE

    tools = LocalTools([local_tool(dump)])

    async def story() -> None:
        desk = Desk()
        turns = (said(None, calls=[tool_call("c1", "dump", "{}")]), said("done"))
        model = ScriptedModel(*turns)
        command = replace(sub_task("t", attempt=3), tools=("dump",))
        assert isinstance(await ToolUsingAgent(PatientModel(model), tools).run(command, desk.attempt), Done)
        await desk.attempt.recorded()
        (called,) = [entry for entry in desk.journal() if isinstance(entry, ToolCalled)]
        assert isinstance(called.output, Reference)
        assert called.output.size > 3_000_000
        assert await Resolver(desk.log).resolve(called.output) == LARGE
        content = str(model.requests[1].messages[-1]["content"])
        assert len(content) < 20_000
        second = [entry for entry in desk.journal() if isinstance(entry, ModelCalled)][1]
        assert isinstance(second.request.messages, Inline)  # what the model saw stands in the record itself
        again = Desk(before=desk)
        idle = ScriptedModel(said("never asked"))
        done = await ToolUsingAgent(PatientModel(idle), tools).run(command, again.attempt)
        assert isinstance(done, Done)
        assert (done.result, idle.requests) == ("done", [])

    run(story())


def test_what_was_refused_stands_on_the_journal() -> None:
    """An unknown tool, one that is not granted, and arguments that break off: each with its kind."""

    async def shell(cmd: str) -> str:
        """Run it."""
        raise AssertionError(cmd)

    async def story() -> None:
        desk = Desk()
        asked = [
            tool_call("c1", "browse", "{}"),
            tool_call("c2", "shell", '{"cmd": "id"}'),
            tool_call("c3", "shell", '{"cmd": "i'),
        ]
        agent = ToolUsingAgent(
            PatientModel(ScriptedModel(said(None, calls=asked), said("done"))),
            LocalTools([local_tool(shell)]),
        )
        await agent.run(sub_task("t", attempt=3), desk.attempt)
        await desk.attempt.recorded()
        recorded = {e.call.id: (e.call.name, e.error) for e in desk.journal() if isinstance(e, ToolCalled)}
        assert recorded == {
            "c1": ("browse", "unknown_tool"),
            "c2": ("shell", "not_allowed"),
            "c3": ("shell", "not_allowed"),
        }

    run(story())
