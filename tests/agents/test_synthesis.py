"""The synthesiser: one answer from all results, within a stated size."""

import json
from typing import Any

import pytest

from agents.models.retry import PatientModel
from agents.ports import Done, GaveUp, ModelError, ModelReply
from agents.synthesis import ModelSynthesiser
from streams.core.commands import MakeAnswer, TaskResult
from streams.core.values import Inline, Json
from streams.memory_log.virtual_time import run
from tests.agents.memory_attempt import MemoryAttempt
from tests.agents.scripted_model import ONE_CALL, ScriptedModel, said


def answer(
    *turns: ModelReply | ModelError, results: tuple[TaskResult, ...] = (), **options: Any
) -> tuple[Done | GaveUp, ScriptedModel]:
    """The answer made of these turns, and the model that gave them."""
    model = ScriptedModel(*turns)
    command = MakeAnswer(
        job="t/j", task="answer", attempt=1, ordinal=9, timeout_s=120.0,
        text=Inline(value="find out"), results=results,
    )  # fmt: skip
    return run(ModelSynthesiser(PatientModel(model), **options).answer(command, MemoryAttempt())), model


def succeeded(task: str, value: Json) -> TaskResult:
    """A sub-task with this result."""
    return TaskResult(task=task, goal=f"do {task}", outcome="succeeded", result=Inline(value=value))


def test_an_answer() -> None:
    """One call with goal and results as data; the text is the answer."""
    results = (
        succeeded("a", {"x": 1}),
        TaskResult(task="b", goal="do b", outcome="failed", reason="timeout"),
        succeeded("c", None),
    )
    done, model = answer(said("# Found"), results=results)
    assert done == Done(result="# Found", usage=ONE_CALL)
    request = model.requests[0]
    assert str(request.messages[0]["content"]).startswith("Role: synthesis\n")
    assert (request.max_tokens, request.tools) == (8_192, ())
    assert json.loads(str(request.messages[1]["content"])) == {
        "goal": "find out",
        "results": [
            {"task": "a", "goal": "do a", "outcome": "succeeded", "result": {"x": 1}},
            {"task": "b", "goal": "do b", "outcome": "failed", "reason": "timeout"},
            {"task": "c", "goal": "do c", "outcome": "succeeded", "result": None},
        ],
    }


def test_an_answer_in_json() -> None:
    """Where the model replied with JSON, that is the answer."""
    done, _ = answer(said('```json\n{"rows": []}\n```'))
    assert isinstance(done, Done)
    assert done.result == {"rows": []}


def test_long_results_are_cut_and_short_ones_are_not() -> None:
    """The prompt stays within its size, no result is left out, and what was cut says so."""
    results = (
        *(succeeded(f"s{n}", "short") for n in range(50)),
        *(succeeded(f"l{n}", '"' * 20_000) for n in range(50)),
    )
    _, model = answer(said("ok"), results=results, results_bytes=100_000)
    content = str(model.requests[0].messages[1]["content"])
    told = json.loads(content)["results"]
    assert len(content.encode()) < 110_000
    assert [one["task"] for one in told] == [one.task for one in results]
    assert all(one["result"] == "short" for one in told[:50])
    assert all("left out" in one["result"]["note"] and one["result"]["head"] for one in told[50:])


@pytest.mark.parametrize(
    ("turn", "kind", "final", "calls"),
    [
        (said("half", finish="length"), "truncated", False, 1),
        (said("", finish="content_filter"), "content_filter", True, 1),
        (ModelError("bad_key", "no", retry=False), "bad_key", True, 0),
        (ModelError("server_error", "no", retry=True), "server_error", False, 0),
    ],
)
def test_no_answer(turn: ModelReply | ModelError, kind: str, *, final: bool, calls: int) -> None:
    """A reply that was cut off, or none, is no answer."""
    gave_up, _ = answer(turn)
    assert isinstance(gave_up, GaveUp)
    assert (gave_up.kind, gave_up.final, gave_up.usage.calls) == (kind, final, calls)
