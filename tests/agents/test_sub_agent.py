"""The sub-agent's turns, against a real HTTP endpoint that plays the model."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from agents.configuration.values import Bounds, Kind
from agents.models.one_model import OneModel
from agents.models.retry import PatientModel
from agents.ports import Done, GaveUp, ToolReply
from agents.sub_agent import ToolUsingAgent
from agents.tools.local import LocalTools, local_tool
from streams.core.commands import RunSubTask, TaskResult
from streams.core.values import Inline, Json, Reference, Usage
from tests.agents.memory_attempt import Journal, MemoryAttempt
from tests.agents.scripted_endpoint import Endpoint, Scripted, completion, endpoint, tool_call

pytestmark = pytest.mark.asyncio

CASES = [json.loads(line) for line in (Path(__file__).parent / "cases/turns.jsonl").read_text().splitlines()]
ALLOWED = ("search", "nothing", "fail", "big")
BIG = 3_000_000


class Workbench:
    """Tools that note what ran, and how many ran at once at most."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.most = 0
        self._now = 0

        async def search(q: str) -> str:
            """Search."""
            self.ran.append("search")
            self._now += 1
            self.most = max(self.most, self._now)
            for _ in range(5):
                await asyncio.sleep(0)  # let the others of this turn begin
            self._now -= 1
            return f"found {q}"

        async def nothing() -> str:
            """Do nothing."""
            self.ran.append("nothing")
            return "done"

        async def fail() -> str:
            """Fail."""
            self.ran.append("fail")
            raise RuntimeError("no luck")

        async def big() -> str:
            """Return much."""
            self.ran.append("big")
            return f"head{'x' * BIG}tail"

        async def shell(cmd: str) -> str:
            """Run a command."""
            self.ran.append("shell")
            return cmd

        async def launch() -> str:
            """Do it once."""
            self.ran.append("launch")
            raise RuntimeError("who knows")

        self.tools = LocalTools(
            [*(local_tool(one) for one in (search, nothing, fail, big, shell)), local_tool(launch, once=True)]
        )


def command(**fields: Any) -> RunSubTask:
    """A sub-task, with defaults."""
    known: dict[str, Any] = {
        "job": "t/j", "task": "a", "attempt": 1, "ordinal": 1, "timeout_s": 120.0,
        "goal": "look it up", "kind": "extract", "tools": ALLOWED,
    }  # fmt: skip
    return RunSubTask(**(known | fields))


def turn(*calls: Sequence[str], **more: Any) -> Scripted:
    """A turn with these tool calls: id, name and arguments each."""
    return Scripted(body=completion(None, calls=[tool_call(*call) for call in calls], **more))


def answer(text: str = "the answer", **more: Any) -> Scripted:
    """A last turn."""
    return Scripted(body=completion(text, **more))


@asynccontextmanager
async def agent_on(
    *replies: Scripted, bench: Workbench | None = None, **kind: Any
) -> AsyncIterator[tuple[ToolUsingAgent, Endpoint]]:
    """A sub-agent whose kinds are all like this, and the endpoint that gives it these replies."""
    async with endpoint(replies) as served:
        client = OneModel(base_url=served.url, api_key="k", model="kimi-k2.5")
        tools = (bench or Workbench()).tools
        try:
            own = Kind(name="default", **kind)
            yield ToolUsingAgent(PatientModel(client), tools, lambda _: own), served
        finally:
            await client.close()


def results(body: dict[str, Any]) -> dict[str, Any]:
    """What the model was told of each call id; every id exactly once."""
    told = [message for message in body["messages"] if message["role"] == "tool"]
    assert len({message["tool_call_id"] for message in told}) == len(told)
    return {message["tool_call_id"]: json.loads(message["content"])["data"] for message in told}


async def test_turns_that_broke_others(subtests: pytest.Subtests) -> None:
    """Each call gets one result, which says what was wrong; only good calls reach a tool."""
    replies = [reply for case in CASES for reply in (turn(*case["calls"]), answer())]
    bench = Workbench()
    async with agent_on(*replies, bench=bench) as (agent, served):
        for case in CASES:
            bench.ran.clear()
            attempt = MemoryAttempt()
            done = await agent.run(command(), attempt)
            with subtests.test(case["case"]):
                assert isinstance(done, Done)
                assert bench.ran == case["ran"]
                assert done.usage.tool_calls == len(case["ran"])
                told = results(served.bodies[-1])
                assert set(told) == set(case["results"])
                assert set(attempt.journal.tool_replies) == set(told)  # refusals are recorded too
                for call_id, want in case["results"].items():
                    if isinstance(want, str):
                        assert told[call_id] == want
                        continue
                    for name, value in want.items():
                        schema = bench.tools.specs(["search"])[0].parameters
                        assert told[call_id][name] == (schema if value == "schema" else value)
                    assert told[call_id]["message"]


async def test_an_answer_without_tools() -> None:
    """The user message is the task's data alone; text is the result; usage is counted."""
    dep = (
        TaskResult(task="b", goal="gb", outcome="succeeded", result=Inline(value={"x": 1})),
        TaskResult(task="c", goal="gc", outcome="failed", reason="timeout"),
    )
    async with agent_on(answer("  fine \n")) as (agent, served):
        done = await agent.run(
            command(tools=(), dep=dep, input=Inline(value=[0, 1, 2, 3]), items=(1, 2), model="other"),
            MemoryAttempt(),
        )
    assert done == Done(result="fine", usage=Usage(calls=1, tokens_in=100, tokens_out=20))
    body = served.bodies[0]
    assert body["messages"][0]["content"].startswith("Role: sub-agent\n")
    assert (body["model"], body["max_completion_tokens"], "tools" in body) == ("other", 800, False)
    assert json.loads(body["messages"][1]["content"]) == {
        "goal": "look it up",
        "kind": "extract",
        "data": {
            "input": [1, 2],
            "results": [
                {"task": "b", "goal": "gb", "outcome": "succeeded", "result": {"x": 1}},
                {"task": "c", "goal": "gc", "outcome": "failed", "reason": "timeout"},
            ],
        },
    }


@pytest.mark.parametrize(
    ("value", "items", "seen"),
    [
        ([1, 2, 3], None, [1, 2, 3]),
        ([1, 2, 3], (2, 2), [3]),
        ({"a": 1}, None, {"a": 1}),
        ("text", None, "text"),
    ],
)
async def test_a_share_of_the_input(value: Json, items: tuple[int, int] | None, seen: Json) -> None:
    """A share of a list is a list, also of one item."""
    async with agent_on(answer()) as (agent, served):
        await agent.run(command(input=Inline(value=value), items=items), MemoryAttempt())
    assert json.loads(served.bodies[0]["messages"][1]["content"])["data"]["input"] == seen


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ('{"a": 1}', {"a": 1}),
        ("```json\n[1, 2]\n```", [1, 2]),
        ("```\n{}\n```", {}),
        ('{"a": 1', '{"a": 1'),
        ("7", "7"),
        ("see: {}", "see: {}"),
    ],
)
async def test_json_in_the_answer(text: str, result: Json) -> None:
    """JSON, maybe fenced, is the result as JSON; what is broken or has prose around it stays text."""
    async with agent_on(answer(text)) as (agent, _):
        done = await agent.run(command(), MemoryAttempt())
    assert isinstance(done, Done)
    assert done.result == result


async def test_reasoning_goes_back_verbatim() -> None:
    """On the assistant message that carries the calls."""
    thinking = turn(("c1", "search", '{"q": "a"}'), reasoning_content="first A, then B")
    async with agent_on(thinking, answer()) as (agent, served):
        await agent.run(command(), MemoryAttempt())
    assert served.bodies[1]["messages"][2]["reasoning_content"] == "first A, then B"


async def test_a_crash_between_two_results() -> None:
    """After it every call id has one result all the same; what is on the journal is not done again."""
    calls = turn(("c1", "search", '{"q": "a"}'), ("c2", "search", '{"q": "b"}'))
    journal = Journal()

    class Crashing(MemoryAttempt):
        async def tool(self, call: Any, run: Any, *, once: bool = False) -> ToolReply:
            if call.id == "c2":
                while "c1" not in self.journal.tool_replies:
                    await asyncio.sleep(0)
                raise ConnectionError("the log is gone")
            return await super().tool(call, run, once=once)

    bench = Workbench()
    async with agent_on(calls, answer(), bench=bench) as (agent, served):
        with pytest.raises(ConnectionError):
            await agent.run(command(), Crashing(journal))
        done = await agent.run(command(), MemoryAttempt(journal))
    assert isinstance(done, Done)
    assert done.usage == Usage(calls=2, tokens_in=200, tokens_out=40, tool_calls=2)
    assert bench.ran == ["search", "search"]
    assert len(served.bodies) == 2
    assert results(served.bodies[1]) == {"c1": "found a", "c2": "found b"}


async def test_a_loop() -> None:
    """The third identical call ends the sub-task, however its arguments are written, and does not run."""
    bench = Workbench()
    turns = [turn(("c", "search", text)) for text in ('{"q":"same"}', '{"q": "same"}', '{ "q" : "same" }')]
    async with agent_on(*turns, bench=bench) as (agent, _):
        gave_up = await agent.run(command(), MemoryAttempt())
    assert isinstance(gave_up, GaveUp)
    assert (gave_up.kind, gave_up.final, bench.ran) == ("loop_detected", True, ["search", "search"])
    assert gave_up.usage == Usage(calls=3, tokens_in=300, tokens_out=60, tool_calls=2)


async def test_ids_that_begin_anew_each_turn() -> None:
    """A call of a later turn is not taken for an earlier one of the same id."""
    turns = [turn(("c", "search", '{"q": "a"}')), turn(("c", "search", '{"q": "b"}'))]
    bench = Workbench()
    attempt = MemoryAttempt()
    async with agent_on(*turns, answer(), bench=bench) as (agent, served):
        await agent.run(command(), attempt)
    assert bench.ran == ["search", "search"]
    told = [message["content"] for message in served.bodies[2]["messages"] if message["role"] == "tool"]
    assert told == [f'{{"data_from":"tool search","data":"found {q}"}}' for q in "ab"]
    assert len(attempt.journal.tool_replies) == 2


async def test_ids_that_are_missing_or_twice_in_a_turn() -> None:
    """Every call gets an id of its own, in the model's turn and in its result alike."""
    twice = turn(("c", "search", '{"q": "a"}'), ("c", "search", '{"q": "b"}'), ("", "search", '{"q": "d"}'))
    async with agent_on(twice, answer()) as (agent, served):
        await agent.run(command(), MemoryAttempt())
    asked = [one["id"] for one in served.bodies[1]["messages"][2]["tool_calls"]]
    told = results(served.bodies[1])
    assert list(told) == asked
    assert list(told.values()) == ["found a", "found b", "found d"]
    assert all(asked)


async def test_three_megabytes() -> None:
    """The model gets head, tail and a note; the journal has the whole."""
    attempt = MemoryAttempt()
    async with agent_on(turn(("c1", "big", "{}")), answer()) as (agent, served):
        await agent.run(command(), attempt)
    told = results(served.bodies[1])["c1"]
    assert "head" in told["head"][:10]
    assert "tail" in told["tail"][-10:]
    assert f"of {BIG + 10} bytes" in told["note"]
    assert len(orjson.dumps(served.bodies[1])) < 30_000
    assert attempt.journal.tool_replies["c1"].output == f"head{'x' * BIG}tail"


async def test_many_calls_in_one_turn() -> None:
    """64 run, eight at once; the rest are told so."""
    calls = [(f"c{n}", "search", json.dumps({"q": str(n)})) for n in range(70)]
    bench = Workbench()
    async with agent_on(turn(*calls), answer(), bench=bench) as (agent, served):
        done = await agent.run(command(), MemoryAttempt())
    told = results(served.bodies[1])
    assert len(bench.ran) == 64
    assert bench.most == 8
    assert [told[f"c{n}"] for n in range(64)] == [f"found {n}" for n in range(64)]
    assert all(told[f"c{n}"]["error"] == "not_allowed" for n in range(64, 70))
    assert isinstance(done, Done)
    assert done.usage.tool_calls == 64


async def test_after_three_rounds_the_model_must_answer() -> None:
    """It is offered no tools then; a model that asks for some all the same has no result."""
    turns = [turn((f"c{n}", "search", json.dumps({"q": str(n)}))) for n in range(4)]
    async with agent_on(*turns) as (agent, served):
        gave_up = await agent.run(command(), MemoryAttempt())
    assert isinstance(gave_up, GaveUp)
    assert (gave_up.kind, gave_up.final) == ("too_many_rounds", False)
    assert ["tools" in body for body in served.bodies] == [True, True, True, False]


async def test_output_tokens_of_a_task_are_bounded() -> None:
    """A turn gets no more room than the task has left; without any left there is no further turn."""
    turns = [turn((f"c{n}", "search", json.dumps({"q": str(n)}))) for n in range(4)]
    bounds = Bounds(rounds=9, turn_tokens=30, task_tokens=50)
    async with agent_on(*turns, bounds=bounds) as (agent, served):
        gave_up = await agent.run(command(), MemoryAttempt())
    assert isinstance(gave_up, GaveUp)
    assert gave_up.kind == "truncated"
    assert [body["max_completion_tokens"] for body in served.bodies] == [30, 30, 10]


@pytest.mark.parametrize(
    ("reply", "kind", "final"),
    [
        (answer("half an ans", finish="length"), "truncated", False),
        (answer("", finish="length"), "truncated", False),
        (turn(("c1", "search", '{"q": "a"}'), finish="length"), "truncated", False),
        (answer("", finish="content_filter"), "content_filter", True),
    ],
)
async def test_what_is_never_an_answer(reply: Scripted, kind: str, *, final: bool) -> None:
    """Cut off or withheld: no result, no tool runs, and what it cost is counted."""
    bench = Workbench()
    async with agent_on(reply, bench=bench) as (agent, _):
        gave_up = await agent.run(command(), MemoryAttempt())
    assert isinstance(gave_up, GaveUp)
    assert (gave_up.kind, gave_up.final, gave_up.usage.calls, bench.ran) == (kind, final, 1, [])


TOO_LONG = Scripted(
    status=400,
    body={"error": {"type": "invalid_request_error", "message": "Input token length too long"}},
)


async def test_a_full_context_shortens_the_oldest_results_once() -> None:
    """The call is repeated with them cut hard; the sub-task goes on."""
    async with agent_on(turn(("c1", "big", "{}")), TOO_LONG, answer()) as (agent, served):
        done = await agent.run(command(), MemoryAttempt())
    assert isinstance(done, Done)
    sizes = [len(body["messages"][3]["content"]) for body in served.bodies[1:]]
    assert sizes[0] > 16_000
    assert sizes[1] < 2_000
    assert "tail" in results(served.bodies[2])["c1"]["tail"]


@pytest.mark.parametrize(
    ("replies", "requests"),
    [
        ([turn(("c1", "big", "{}")), TOO_LONG, TOO_LONG], 3),  # shortened once, no second time
        ([TOO_LONG], 1),  # there is nothing to shorten
    ],
)
async def test_a_context_that_stays_full(replies: list[Scripted], requests: int) -> None:
    """The sub-task fails with that reason, for good."""
    async with agent_on(*replies) as (agent, served):
        gave_up = await agent.run(command(), MemoryAttempt())
    assert isinstance(gave_up, GaveUp)
    assert (gave_up.kind, gave_up.final, len(served.bodies)) == ("context_exceeded", True, requests)


async def test_an_endpoint_that_refuses() -> None:
    """The error's kind and words are the attempt's, with the usage until then."""
    no_key = Scripted(status=401, body={"error": {"message": "no"}})
    async with agent_on(turn(("c1", "search", '{"q": "a"}')), no_key) as (agent, _):
        gave_up = await agent.run(command(), MemoryAttempt())
    assert isinstance(gave_up, GaveUp)
    assert (gave_up.kind, gave_up.final, gave_up.usage.calls) == ("bad_key", True, 1)
    assert "OPENAI_API_KEY" in gave_up.reason


def direct(tool: str, args: Json = None, **more: Any) -> RunSubTask:
    """A sub-task that is one tool call, without a model."""
    return command(**{"goal": "", "tool": tool, "args": args, "tools": (*ALLOWED, "launch")} | more)


async def test_a_tool_alone() -> None:
    """A sub-task with a tool and no goal runs it with its arguments; the model is not asked."""
    attempt = MemoryAttempt()
    async with agent_on(answer()) as (agent, served):
        done = await agent.run(direct("search", {"q": "a"}), attempt)
    assert done == Done(result="found a", usage=Usage(tool_calls=1))
    assert served.bodies == []
    assert len(attempt.journal.calls) == 1


@pytest.mark.parametrize(
    ("sub_task", "kind", "final", "ran"),
    [
        (direct("fail"), "tool_error", False, 1),
        (direct("launch"), "tool_error", True, 1),
        (direct("search", {"q": 7}), "tool_error", True, 0),
        (direct("search", ["a"]), "tool_error", True, 0),
        (direct("browse"), "tool_error", True, 0),
        (direct("shell", {"cmd": "id"}), "tool_error", True, 0),
    ],
)
async def test_a_tool_alone_that_fails(sub_task: RunSubTask, kind: str, *, final: bool, ran: int) -> None:
    """What the plan got wrong is final; a tool's own error may be tried again, unless it runs once."""
    bench = Workbench()
    async with agent_on(answer(), bench=bench) as (agent, _):
        gave_up = await agent.run(sub_task, MemoryAttempt())
    assert isinstance(gave_up, GaveUp)
    assert (gave_up.kind, gave_up.final, len(bench.ran)) == (kind, final, ran)
    assert gave_up.usage == Usage(tool_calls=ran)
    assert str(sub_task.tool) in gave_up.reason


async def test_a_claim_check_is_a_broken_program() -> None:
    """Whoever runs an agent resolves references before."""
    check = Reference(topic="transcripts", partition=0, offsets=(1,), size=9, digest="d")
    async with agent_on(answer()) as (agent, _):
        with pytest.raises(TypeError, match="claim check"):
            await agent.run(command(input=check), MemoryAttempt())
