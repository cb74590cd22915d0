"""What a sub-agent proposes, and the notes that it reads and writes, call by call."""

import json
from typing import Any

import pytest

from agents.configuration.values import Kind
from agents.growing import ITEMS_BYTES, Growth
from agents.notes import Notebook
from agents.ports import Done, GaveUp, ToolCall, ToolReply
from agents.sub_agent import brief
from agents.tool_turn import Toolbox
from agents.tools.local import LocalTools
from streams.core.commands import NoteSeen, RunSubTask
from streams.core.notes import NOTE_BYTES
from streams.core.plan import SubTask
from streams.core.values import Inline, Json
from tests.agents.memory_attempt import Journal, MemoryAttempt

pytestmark = pytest.mark.asyncio


def command(**fields: Any) -> RunSubTask:
    """A sub-task that may propose five more."""
    known: dict[str, Any] = {
        "job": "t/j", "task": "list", "attempt": 1, "ordinal": 1, "timeout_s": 9.0, "goal": "list them",
        "kind": "extract", "tools": ("files.read",), "growth": 5,
    }  # fmt: skip
    return RunSubTask(**(known | fields))


async def propose(growth: Growth, *calls: dict[str, Json], journal: Journal | None = None) -> list[ToolReply]:
    """The calls of one turn."""
    box = Toolbox(LocalTools([]), (), own=growth.tools)
    made = [
        box.meant(ToolCall(id=f"c{n}", name="map_subtasks", arguments=json.dumps(call)))
        for n, call in enumerate(calls)
    ]
    return await box.run_all(made, MemoryAttempt(journal))


async def test_a_list_becomes_sub_tasks_that_have_its_items() -> None:
    """One each while there are places; they leave with the result."""
    growth = Growth(command(notes=()))
    [reply] = await propose(growth, {"goal": "count", "kind": "count", "items": ["a", {"b": 1}]})
    assert reply.output == {"proposed": 2, "sub_tasks": "list-1 to list-2"}
    one, two = growth.proposed
    assert one == SubTask(
        id="list-1", goal="count", kind="count", args={"items": ["a"]}, parent="list", notes=True
    )
    assert (two.id, two.args) == ("list-2", {"items": [{"b": 1}]})
    assert growth.with_proposals(Done(result=1)) == Done(result=1, proposed=growth.proposed)
    given_up = GaveUp(kind="x", reason="y", final=False)
    assert growth.with_proposals(given_up) is given_up
    told = brief(command(task=one.id, goal=one.goal, args=one.args), Kind(name="default"))
    assert told["data"] == {"input": ["a"]}


async def test_more_items_than_places_share_sub_tasks() -> None:
    """In runs of nearly one size; a second call has the places that are left."""
    growth = Growth(command())
    replies = await propose(
        growth,
        {"goal": "count", "items": [1]},
        {"goal": "weigh", "items": [*range(9)]},
        {"goal": "paint", "items": [1]},
    )
    assert [reply.error for reply in replies] == [None, None, "bad_arguments"]
    assert [task.args for task in growth.proposed[1:]] == [
        {"items": [0, 1, 2]}, {"items": [3, 4]}, {"items": [5, 6]}, {"items": [7, 8]},
    ]  # fmt: skip
    assert [task.id for task in growth.proposed] == [f"list-{n}" for n in range(1, 6)]


async def test_a_tool_is_called_once_for_each_item() -> None:
    """By its own name, with the item as its arguments; it needs as many places."""
    growth = Growth(command())
    good: dict[str, Json] = {"tool": "files__read", "items": [{"path": "a"}, {"path": "b"}]}
    many: dict[str, Json] = {"tool": "files__read", "items": [{"path": str(n)} for n in range(6)]}
    bare: dict[str, Json] = {"tool": "files__read", "items": ["a"]}
    other: dict[str, Json] = {"tool": "shell", "items": [{}]}
    none: dict[str, Json] = {"items": ["a"]}
    replies = await propose(growth, good, many, bare, other, none)
    assert [reply.error for reply in replies] == [None, *["bad_arguments"] * 4]
    assert [(task.tool, task.goal, task.args) for task in growth.proposed] == [
        ("files.read", "", {"path": "a"}),
        ("files.read", "", {"path": "b"}),
    ]


async def test_what_is_recalled_is_proposed_again_and_what_is_too_large_never() -> None:
    """A takeover knows what was proposed before it, from the journal."""
    journal = Journal()
    large: dict[str, Json] = {"goal": "count", "items": ["x" * ITEMS_BYTES]}
    calls: list[dict[str, Json]] = [{"goal": "count", "items": ["a", "b"]}, large]
    first = Growth(command(task="~hedge-1", hedge_of="list"))
    replies = await propose(first, *calls, journal=journal)
    assert [reply.error for reply in replies] == [None, "bad_arguments"]
    again = Growth(command(task="~hedge-1", hedge_of="list"))
    assert await propose(again, *calls, journal=journal) == replies
    assert again.proposed == first.proposed
    assert [task.id for task in again.proposed] == ["list-1", "list-2"]


async def test_what_was_proposed_before_a_wait_is_not_forgotten() -> None:
    """Others may have taken the places since: how many there were the replies say."""
    journal = Journal()
    calls: list[dict[str, Json]] = [
        {"goal": "count", "items": [*range(7)]},
        {"goal": "weigh", "items": ["a"]},
    ]
    first = Growth(command(growth=4))
    replies = await propose(first, *calls, journal=journal)
    assert [task.args for task in first.proposed] == [
        {"items": [0, 1]},
        *({"items": [n, n + 1]} for n in (2, 4)),
        {"items": [6]},
    ]
    again = Growth(command(growth=1))
    assert await propose(again, *calls, journal=journal) == replies
    assert again.proposed == first.proposed


async def test_no_room_no_tool() -> None:
    """Neither for plans that may not grow nor for notes that are not granted."""
    assert Growth(command(growth=0)).tools == ()
    notebook = Notebook(command(), MemoryAttempt())
    assert (notebook.tools, notebook.told()) == ((), {})


SEEN = (NoteSeen(topic="tide", version=3, value=Inline(value="high")),)


async def write(notebook: Notebook, attempt: MemoryAttempt, *calls: dict[str, Json]) -> list[ToolReply]:
    """The calls of one turn."""
    box = Toolbox(LocalTools([]), (), own=notebook.tools)
    made = [
        box.meant(ToolCall(id=f"c{n}", name="write_note", arguments=json.dumps(call)))
        for n, call in enumerate(calls)
    ]
    return await box.run_all(made, attempt)


async def test_a_note_names_the_version_that_its_writer_has_seen() -> None:
    """That of its command, and each of its own after that; so does a takeover, by the journal."""
    attempt = MemoryAttempt()
    notebook = Notebook(command(notes=SEEN), attempt)
    assert notebook.told() == {"notes": {"tide": "high"}}
    calls: list[dict[str, Json]] = [
        {"topic": "tide", "value": "low"},
        {"topic": "tide", "value": {"now": "ebb"}},
        {"topic": "new", "value": 1},
    ]
    await write(notebook, attempt, *calls[:2])
    assert attempt.journal.notes == [("c0", "tide", "low", 3), ("c1", "tide", {"now": "ebb"}, 4)]
    after = MemoryAttempt(attempt.journal)
    newer = (NoteSeen(topic="tide", version=5, value=Inline(value="ebb")),)
    await write(Notebook(command(notes=newer), after), after, *calls, {"topic": "tide", "value": "flood"})
    assert attempt.journal.notes[2:] == [("c2", "new", 1, 0), ("c3", "tide", "flood", 5)]
    calls += [{"topic": "tide", "value": "flood"}, {"topic": "tide", "value": "slack"}]
    after = MemoryAttempt(attempt.journal)
    after_a_wait = (NoteSeen(topic="tide", version=9, value=Inline(value="low")),)
    await write(Notebook(command(notes=after_a_wait), after), after, *calls)
    assert attempt.journal.notes[4:] == [("c4", "tide", "slack", 9)]


async def test_a_note_that_is_too_large_is_refused_with_the_reason() -> None:
    """And so are topics that nobody could print; nothing reaches the log."""
    attempt = MemoryAttempt()
    large: dict[str, Json] = {"topic": "tide", "value": "x" * NOTE_BYTES}
    odd: dict[str, Json] = {"topic": "\n", "value": 1}
    replies = await write(Notebook(command(notes=()), attempt), attempt, large, odd)
    assert [reply.error for reply in replies] == ["bad_arguments", "bad_arguments"]
    assert "8192 bytes" in str(replies[0].output)
    assert attempt.journal.notes == []
