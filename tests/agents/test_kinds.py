"""What a sub-agent may do is its kind's business: tools, bounds, and the names tools go by."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.configuration.values import Bounds, Kind
from agents.models.metrics import Metrics
from agents.models.retry import PatientModel
from agents.ports import NOBODY, Caller, Done, GaveUp, ModelReply, ToolReply, ToolSpec
from agents.sub_agent import ToolUsingAgent
from agents.tool_names import MAX_CHARS, spellings
from agents.tool_turn import KEPT_BYTES, MAX_TOOLS, kept
from streams.core.commands import RunSubTask
from streams.core.values import Json
from tests.agents.memory_attempt import MemoryAttempt
from tests.agents.scripted_endpoint import tool_call
from tests.agents.scripted_model import ScriptedModel, said

GRANTED = ("search", "files.read", "files.write", "shell")


class NamedTools:
    """Tools by name that say who called them, and how many seconds they had."""

    def __init__(self, *names: str, error: str | None = None) -> None:
        self.names, self.error = names or GRANTED, error
        self.calls: list[tuple[str, dict[str, Json], float, Caller]] = []

    def specs(self, names: Sequence[str]) -> tuple[ToolSpec, ...]:
        schema: dict[str, Json] = {"type": "object", "properties": {}}
        return tuple(
            ToolSpec(name=name, description="d", parameters=schema) for name in names if name in self.names
        )

    async def call(
        self, name: str, arguments: Mapping[str, Json], *, timeout_s: float, caller: Caller = NOBODY
    ) -> ToolReply:
        self.calls.append((name, dict(arguments), timeout_s, caller))
        await asyncio.sleep(0)
        return ToolReply(output=f"{name} did", error=self.error)


def command(**fields: Any) -> RunSubTask:
    """A sub-task of an ordinary kind."""
    known: dict[str, Any] = {
        "job": "t/j", "task": "a", "attempt": 1, "ordinal": 1, "timeout_s": 120.0,
        "goal": "look it up", "kind": "extract", "tools": GRANTED,
    }  # fmt: skip
    return RunSubTask(**(known | fields))


def calls(*wanted: tuple[str, str, str]) -> ModelReply:
    """A turn that asks for these."""
    return said(None, calls=[tool_call(*one) for one in wanted])


async def work(
    *replies: ModelReply,
    tools: NamedTools | None = None,
    kinds: Sequence[Kind] = (),
    granted: tuple[str, ...] = GRANTED,
    **fields: Any,
) -> tuple[Done | GaveUp, ScriptedModel, MemoryAttempt]:
    """One sub-task to its end."""
    known = {kind.name: kind for kind in kinds}
    model, attempt = ScriptedModel(*replies), MemoryAttempt()

    def kind(name: str) -> Kind:
        return known.get(name) or known.get("default") or Kind(name="default")

    agent = ToolUsingAgent(PatientModel(model), tools or NamedTools(), kind)
    return await agent.run(command(tools=granted, **fields), attempt), model, attempt


def told(model: ScriptedModel) -> dict[str, Any]:
    """What the last request says of each call."""
    return {
        str(message["tool_call_id"]): json.loads(str(message["content"]))["data"]
        for message in model.requests[-1].messages
        if message["role"] == "tool"
    }


@pytest.mark.parametrize(
    ("own", "offered"),
    [
        (None, ["search", "files__read", "files__write", "shell"]),
        (("files.read", "search", "else"), ["search", "files__read"]),
        ((), []),
    ],
)
async def test_a_kind_takes_of_what_the_goal_grants(own: tuple[str, ...] | None, offered: list[str]) -> None:
    """Its allow-list grants nothing by itself; None stands for all that the goal grants."""
    _, model, _ = await work(said("done"), kinds=[Kind(name="extract", tools=own)])
    assert [spec.name for spec in model.requests[0].tools] == offered


async def test_what_the_kind_may_not_use_does_not_run() -> None:
    """Whether the model asks for it or the plan names it; both are told so, and recorded."""
    narrow = [Kind(name="extract", tools=("search",))]
    tools = NamedTools()
    ended, model, attempt = await work(
        calls(("c1", "shell", "{}"), ("c2", "search", "{}")), said("done"), tools=tools, kinds=narrow
    )
    assert isinstance(ended, Done)
    assert [call[0] for call in tools.calls] == ["search"]
    assert told(model)["c1"]["error"] == "not_allowed"
    assert told(model)["c1"]["tools"] == ["search"]
    assert attempt.journal.tool_replies["c1"].error == "not_allowed"
    ended, _, attempt = await work(said("never"), tools=tools, kinds=narrow, goal="", tool="shell")
    assert isinstance(ended, GaveUp)
    assert (ended.kind, ended.final, len(tools.calls)) == ("tool_error", True, 1)
    assert attempt.journal.tool_replies["direct"].error == "not_allowed"


async def test_a_plan_gets_no_other_roles_kind() -> None:
    """A sub-task that calls itself planner has neither its model nor its tools."""
    kinds = [Kind(name="planner"), Kind(name="default", tools=("search",))]
    for name, asked in (("planner", "default"), ("synthesis", "default"), ("own-word", "own-word")):
        tools = NamedTools()
        turns = (calls(("c", "shell", "{}"), ("d", "search", "{}")), said("done"))
        _, model, _ = await work(*turns, tools=tools, kinds=kinds, kind=name)
        assert [call[0] for call in tools.calls] == ["search"]
        assert {request.kind for request in model.requests} == {asked}


async def test_tools_know_for_whom_they_work() -> None:
    """Job, sub-task and kind; by their own names, however the model spells them."""
    tools = NamedTools()
    _, model, attempt = await work(
        calls(("c1", "files__read", '{"path": "a"}'), ("c2", "files.read", '{"path": "b"}')),
        said("done"),
        tools=tools,
    )
    caller = Caller(job="t/j", task="a", kind="extract")
    assert [(call[0], call[1], call[3]) for call in tools.calls] == [
        ("files.read", {"path": "a"}, caller),
        ("files.read", {"path": "b"}, caller),
    ]
    assert {call.name for call in attempt.journal.calls} == {"files.read"}
    assert told(model) == {"c1": "files.read did", "c2": "files.read did"}


async def test_the_kinds_own_bounds_hold() -> None:
    """Rounds, tokens, calls a turn, and the seconds of a call."""
    bounds = Bounds(rounds=1, turn_tokens=50, task_tokens=60, calls=2, tool_s=7.0)
    tools = NamedTools()
    three = calls(("c1", "search", "1"), ("c2", "search", '{"q": 1}'), ("c3", "search", '{"q": 2}'))
    ended, model, attempt = await work(
        three, calls(("c4", "search", "{}")), tools=tools, kinds=[Kind(name="extract", bounds=bounds)]
    )
    assert isinstance(ended, GaveUp)
    assert ended.kind == "too_many_rounds"
    assert [(request.max_tokens, len(request.tools)) for request in model.requests] == [(50, 4), (40, 0)]
    assert [(call[1], call[2]) for call in tools.calls] == [({"q": 1}, 7.0)]
    assert {name: reply.error for name, reply in attempt.journal.tool_replies.items()} == {
        "c1": "bad_arguments",
        "c2": None,
        "c3": "not_allowed",
    }


async def test_a_server_that_is_away_may_be_back() -> None:
    """A direct call of its tool is worth another attempt, and counts as none."""
    away = NamedTools(error="unavailable")
    ended, _, _ = await work(said("never"), tools=away, goal="", tool="search")
    assert isinstance(ended, GaveUp)
    assert (ended.kind, ended.final, ended.usage.tool_calls) == ("tool_error", False, 0)


async def test_a_granted_tool_of_a_server_that_is_away_is_not_unknown() -> None:
    """The server may list it again before the next attempt; a function that there is not will not come."""
    for name, kind, final in (("files.read", "unavailable", False), ("read", "unknown_tool", True)):
        ended, _, attempt = await work(
            said("never"), tools=NamedTools("search"), goal="", tool=name, granted=("search", name)
        )
        assert isinstance(ended, GaveUp)
        assert (attempt.journal.tool_replies["direct"].error, ended.final) == (kind, final)


async def test_refused_calls_are_counted_once() -> None:
    """Those that no tool hears of; the others the tools count themselves, and those recalled were counted."""
    metrics = Metrics()
    turns = (
        calls(("c1", "browse", "{}"), ("c2", "shell", "{}"), ("c3", "search", '{"q'), ("c4", "search", "{}")),
        said("done"),
    )
    first = MemoryAttempt()
    for attempt in (first, MemoryAttempt(first.journal)):
        agent = ToolUsingAgent(PatientModel(ScriptedModel(*turns)), NamedTools(), refused=metrics.tool)
        assert isinstance(await agent.run(command(tools=("search",)), attempt), Done)
    errors = {name: reply.error for name, reply in first.journal.tool_replies.items()}
    assert errors == {"c1": "unknown_tool", "c2": "not_allowed", "c3": "bad_arguments", "c4": None}
    assert (metrics.snapshot().refused_tool_calls, metrics.snapshot().tools) == (3, {})


async def test_no_request_offers_more_tools_than_endpoints_take() -> None:
    """The rest are not offered; an endpoint would refuse the whole request."""
    names = tuple(f"t{n}" for n in range(MAX_TOOLS + 5))
    _, model, _ = await work(said("done"), tools=NamedTools(*names), granted=names)
    assert len(model.requests[0].tools) == MAX_TOOLS


def test_a_result_too_large_for_the_journal_keeps_head_and_tail() -> None:
    """Three megabytes are kept whole; what is beyond all measure is not."""
    whole = ToolReply(output="x" * 3_000_000)
    assert kept(whole) is whole
    cut = kept(ToolReply(output=["head", "x" * KEPT_BYTES, "tail"])).output
    assert isinstance(cut, dict)
    assert str(cut["head"]).startswith('["head"')
    assert str(cut["tail"]).endswith('"tail"]')
    assert "left out" in str(cut["note"])


NAMES = st.text(st.sampled_from("ab._-é1"), min_size=1, max_size=90)


@given(st.lists(NAMES, max_size=12))
def test_every_tool_has_a_name_that_endpoints_take(names: list[str]) -> None:
    """Another one for each tool, and its own where that is fine."""
    found = spellings(names)
    assert set(found) == set(names)
    assert len(set(found.values())) == len(found)
    for name, spelled in found.items():
        assert spelled.isascii()
        assert spelled[0].isalpha()
        assert len(spelled) <= MAX_CHARS
        assert spelled.replace("_", "").replace("-", "").isalnum()
        if name.isascii() and name[0].isalpha() and "." not in name and len(name) <= MAX_CHARS:
            assert spelled == name
