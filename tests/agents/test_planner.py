"""The planner: what it asks, and what it makes of the replies."""

import json
from typing import Any

from agents.models.retry import PatientModel
from agents.planner import ModelPlanner
from agents.ports import GaveUp, ModelError, ModelReply, PlanMade, PlanRefused
from agents.tools.local import LocalTools, local_tool
from agents.tools.noop import noop
from streams.core.commands import MakePlan, TaskResult
from streams.core.values import Inline
from streams.memory_log.virtual_time import run
from tests.agents.memory_attempt import MemoryAttempt
from tests.agents.scripted_model import ONE_CALL, ScriptedModel, said

GOOD = '[{"id": "a", "goal": "look it up", "dep": []}]'
CYCLE = '[{"id": "a", "goal": "look it up", "dep": ["a"]}]'


def command(**fields: Any) -> MakePlan:
    """A command to plan, with defaults."""
    known: dict[str, Any] = {
        "job": "t/j", "task": "plan", "attempt": 1, "ordinal": 0, "timeout_s": 120.0,
        "text": Inline(value="find out"),
    }  # fmt: skip
    return MakePlan(**(known | fields))


def plan(
    *turns: ModelReply | ModelError, **fields: Any
) -> tuple[PlanMade | PlanRefused | GaveUp, ScriptedModel]:
    """What the planner makes of these turns, and the model that gave them."""
    model = ScriptedModel(*turns)
    planner = ModelPlanner(PatientModel(model), LocalTools([local_tool(noop)]))
    return run(planner.plan(command(**fields), MemoryAttempt())), model


def brief(model: ScriptedModel) -> dict[str, Any]:
    """The data of the first request."""
    asked: dict[str, Any] = json.loads(str(model.requests[0].messages[1]["content"]))
    return asked


def test_a_plan() -> None:
    """One call: the fixed prompt first, then the goal as data; the plan comes with its usage."""
    made, model = plan(said(GOOD), tools=("noop", "unheard"), max_subtasks=7, model="other")
    assert isinstance(made, PlanMade)
    assert ([task.id for task in made.plan], made.usage) == (["a"], ONE_CALL)
    request = model.requests[0]
    assert str(request.messages[0]["content"]).startswith("Role: planner\n")
    assert (request.max_tokens, request.model, request.tools) == (4_096, "other", ())
    tools = [{"name": "noop", "description": 'Do nothing and return "ok".'}]
    assert brief(model) == {"goal": "find out", "max_subtasks": 7, "tools": tools}


def test_one_re_ask_with_the_reasons() -> None:
    """The second request holds the first reply and why it was refused; both calls are paid."""
    made, model = plan(said(CYCLE), said(GOOD))
    assert isinstance(made, PlanMade)
    assert made.usage == ONE_CALL + ONE_CALL
    again = model.requests[1]
    assert again.messages[2] == {"role": "assistant", "content": CYCLE}
    refused = json.loads(str(again.messages[3]["content"]))["refused"]
    assert any("cycle a -> a" in reason for reason in refused)
    assert again.max_tokens == 4_096


def test_a_plan_that_was_cut_off_gets_twice_the_room() -> None:
    """It is asked for again, never run as the shorter plan that it seems to be."""
    made, model = plan(said(GOOD, finish="length"), said(GOOD))
    assert isinstance(made, PlanMade)
    assert [request.max_tokens for request in model.requests] == [4_096, 8_192]


def test_no_third_try() -> None:
    """Refused twice, the goal has no plan, and the last reasons say why."""
    refused, model = plan(said(CYCLE), said("I would rather not."))
    assert isinstance(refused, PlanRefused)
    assert len(model.requests) == 2
    assert refused.usage == ONE_CALL + ONE_CALL
    assert refused.reasons
    assert not any("cycle" in reason for reason in refused.reasons)


def test_a_model_that_fails() -> None:
    """The error's kind is the attempt's; what the first call cost is not lost."""
    error = ModelError("quota", "no money", retry=False)
    gave_up, _ = plan(said(CYCLE), error)
    assert gave_up == GaveUp(kind="quota", reason="no money", final=True, usage=ONE_CALL)


def test_a_model_that_withholds_its_reply() -> None:
    """A content filter is not asked again."""
    gave_up, model = plan(said("", finish="content_filter"))
    assert isinstance(gave_up, GaveUp)
    assert (gave_up.kind, gave_up.final, len(model.requests)) == ("content_filter", True, 1)


def test_a_small_input_is_shown_whole() -> None:
    """With the number of its items, and without a note."""
    items = ["a", "b"]
    _, model = plan(said('[{"id": "a", "goal": "g", "input": "each"}]'), input=Inline(value=items), items=2)
    asked = brief(model)
    assert (asked["input"], asked["items"], "input_note" in asked) == (items, 2, False)


def test_a_long_list_is_shown_in_part() -> None:
    """The first items, and a note of how many there are."""
    items = [f"package-{n}" for n in range(5_000)]
    made, model = plan(
        said('[{"id": "a", "goal": "g", "input": "each"}]'), input=Inline(value=items), items=5_000
    )
    asked = brief(model)
    assert asked["input"] == items[: len(asked["input"])]
    assert 100 < len(asked["input"]) < 5_000
    assert len(json.dumps(asked["input"], separators=(",", ":"))) <= 16_384
    assert f"first {len(asked['input'])} of 5000 items" in asked["input_note"]
    assert isinstance(made, PlanMade)  # and the plan is over all of them
    assert len(made.plan) == 100


def test_one_huge_item_is_shown_in_part() -> None:
    """Of what is no list, or a list whose first item is too long, head and tail are shown."""
    for value in (["x" * 50_000], {"text": "x" * 50_000}, "x" * 50_000):
        _, model = plan(said(GOOD), input=Inline(value=value))
        asked = brief(model)
        assert set(asked["input"]) == {"note", "head", "tail"}
        assert "sub-tasks get the whole" in asked["input_note"]
        assert len(json.dumps(asked)) < 20_000


def test_a_planner_that_is_asked_again_builds_on_what_is_known() -> None:
    """It is told what failed; its plan has new ids, and depends on what succeeded alone."""
    known = (
        TaskResult(task="a", goal="look", outcome="succeeded", result=Inline(value=3)),
        TaskResult(task="b", goal="listen", outcome="failed", reason="no sound"),
    )
    again = '[{"id": "b", "goal": "listen", "dep": ["b"]}]'
    other = '[{"id": "c", "goal": "feel", "dep": ["a"], "input": [1, 1], "notes": true}]'
    fields: dict[str, Any] = {"failure": "b: refused: no sound", "known": known, "notes": True, "items": 3}
    made, model = plan(said(again), said(other), input=Inline(value=[1, 2, 3]), **fields)
    assert isinstance(made, PlanMade)
    assert [(task.id, task.dep, task.notes) for task in made.plan] == [("c", ("a",), True)]
    told = brief(model)
    assert (told["failure"], told["notes"]) == ("b: refused: no sound", True)
    assert told["known"] == [
        {"task": "a", "goal": "look", "outcome": "succeeded", "result": 3},
        {"task": "b", "goal": "listen", "outcome": "failed", "reason": "no sound"},
    ]
    refused = json.loads(str(model.requests[1].messages[3]["content"]))["refused"]
    assert "id b is taken by an earlier sub-task" in refused
