"""A sub-agent's turns as the journal has them: refusals too, and large results whole."""

import asyncio
from dataclasses import replace

from agents.configuration.values import Endpoint
from agents.models.retry import PatientModel
from agents.models.traffic import Traffic
from agents.ports import Crew, Done, GaveUp, Tools
from agents.sub_agent import ToolUsingAgent
from agents.tools.local import LocalTools, local_tool
from streams.claims import Resolver
from streams.core.commands import RunSubTask
from streams.core.values import Inline, Reference
from streams.delivery import Sender
from streams.memory_log.virtual_time import run
from streams.outcome import Outcomes
from streams.transcript import ModelCalled, ModelFailed, ToolCalled
from tests.agents.scripted_client import REQUEST, Client, configuration
from tests.agents.scripted_endpoint import tool_call
from tests.agents.scripted_model import ScriptedModel, said
from tests.agents.timed_attempt import TimedAttempt
from tests.streams.desk import Desk
from tests.streams.lanes_in_memory import sub_task
from tests.streams.scripted import Script

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


async def ended(desk: Desk, command: RunSubTask, model: PatientModel, tools: Tools) -> object:
    """How a lane tells the end of this command's attempt; all of it is on the journal then."""

    async def close() -> None:
        pass

    agent = ToolUsingAgent(model, tools)
    crew = Crew(
        planner=Script(), sub_agent=agent, synthesiser=Script(), judge=Script(), tools=tools, close=close
    )
    outcomes = Outcomes(Sender(desk.log.producer), lanes=2, run=desk.run, chance=lambda: 0.5)
    end = await outcomes.run(command, desk.attempt, crew, Resolver(desk.log))
    await desk.attempt.end()
    return end


def test_a_call_that_takes_all_of_its_attempts_time_is_told_of_with_its_endpoint() -> None:
    """It ends a little before its attempt: of one that is cut off with it nobody knows whom it had asked."""

    async def story() -> None:
        desk = Desk(timeout_s=60.0)
        moon = Endpoint(name="moon", base_url="http://moon/v1")
        traffic = Traffic(configuration(moon), {"moon": Client(moon, None)})
        end = await ended(desk, sub_task("t", timeout_s=60.0), PatientModel(traffic), LocalTools([]))
        assert isinstance(end, GaveUp)
        assert (end.kind, end.final, end.usage.estimated) == ("timeout", False, 1)
        (failed,) = desk.journal()
        assert isinstance(failed, ModelFailed)
        assert (failed.kind, failed.endpoint, failed.decision) == ("timeout", "moon", "give_up")
        assert sum(traffic.metrics.snapshot().decisions.values()) == 1

    run(story())


def test_an_attempt_that_got_no_turn_says_whose_turn_it_waited_for() -> None:
    """And not only that its time is over."""

    async def story() -> None:
        desk = Desk(timeout_s=60.0)
        moon = Endpoint(name="moon", base_url="http://moon/v1", concurrency=1)
        patient = PatientModel(Traffic(configuration(moon), {"moon": Client(moon, None)}))
        before = asyncio.create_task(patient.ask(REQUEST, TimedAttempt(time_s=600.0)))
        await asyncio.sleep(1)
        end = await ended(desk, sub_task("t", timeout_s=60.0), patient, LocalTools([]))
        before.cancel()
        assert isinstance(end, GaveUp)
        assert (end.kind, end.final, end.usage.calls) == ("unavailable", False, 0)
        assert "no turn at moon within this attempt's time" in end.reason

    run(story())


def test_a_tool_that_must_run_once_and_is_cut_off_with_its_attempt_ends_the_sub_task() -> None:
    """Another attempt would have it called again, and it may have done its work."""

    async def send() -> str:
        """Send it."""
        await asyncio.sleep(3_600)
        return "sent"

    async def story(*, once: bool) -> None:
        desk = Desk(timeout_s=30.0)
        tool = local_tool(send)
        tools = LocalTools([replace(tool, spec=replace(tool.spec, once=once))])
        command = replace(sub_task("t", timeout_s=30.0), tools=("send",))
        model = ScriptedModel(said(None, calls=[tool_call("c1", "send", "{}")]))
        end = await ended(desk, command, PatientModel(model), tools)
        assert isinstance(end, GaveUp)
        assert (end.kind, end.final) == (("unknown_outcome", True) if once else ("timeout", False))
        assert ("send must not run twice" in end.reason) == once

    run(story(once=True))
    run(story(once=False))
