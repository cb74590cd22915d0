"""Joins on the lanes: parts, summaries, tables and lists without a model, citations, answers by a schema."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.joins.citations import citations
from agents.joins.parts import in_parts, part_of
from agents.models.retry import PatientModel
from agents.ports import Done, GaveUp
from agents.synthesis import ModelSynthesiser
from streams.core.commands import Contradiction, MakeAnswer, Part, TaskResult
from streams.core.goal import JoinRule
from streams.core.values import Inline, Json
from streams.memory_log.virtual_time import run
from tests.agents.memory_attempt import MemoryAttempt
from tests.agents.scripted_model import ScriptedModel, said


def succeeded(task: str, value: Json) -> TaskResult:
    """A sub-task with this result."""
    return TaskResult(task=task, goal=f"do {task}", outcome="succeeded", result=Inline(value=value))


def joined(
    *values: Json, turns: tuple[str, ...] = (), rule: dict[str, Any] | None = None, **fields: Any
) -> tuple[Done | GaveUp, ScriptedModel]:
    """What a lane makes of these results, and the model that it asked."""
    model = ScriptedModel(*map(said, turns))
    command = MakeAnswer(
        job="t/j",
        task="answer",
        attempt=1,
        ordinal=9,
        timeout_s=120.0,
        text=Inline(value="find out"),
        results=tuple(succeeded(f"r{n}", value) for n, value in enumerate(values, 1)),
        join=JoinRule(**(rule or {})),
        **fields,
    )
    return run(ModelSynthesiser(PatientModel(model)).answer(command, MemoryAttempt())), model


@given(st.text(max_size=300), st.integers(1, 40))
def test_parts_are_together_the_whole(text: str, parts: int) -> None:
    """Every byte is in one part, no character is cut, and parts are about as long as each other."""
    encoded = text.encode()
    cut = [part_of(encoded, part, parts) for part in range(1, parts + 1)]
    assert "".join(cut) == text
    assert all(len(part.encode()) <= -(-len(encoded) // parts) + 3 for part in cut)


def test_a_part_of_json_is_its_text() -> None:
    """Of a text the text itself; what is meant as a whole stays as it is."""
    results = (succeeded("a", {"x": [1, 2]}), succeeded("b", "boats"), succeeded("c", [3]))
    parts = (Part(task="a", part=2, parts=2), Part(task="b", part=1, parts=2), Part(task="c"))
    assert [one.result for one in in_parts(results, parts)] == [
        Inline(value={"part": 2, "parts": 2, "text": "[1,2]}"}),
        Inline(value={"part": 1, "parts": 2, "text": "bo"}),
        Inline(value=[3]),
    ]


def test_a_summary_is_told_how_long_it_may_be() -> None:
    """Its prompt is another one than that of the answer, and nothing of its results is shortened."""
    long = "x" * 3_000
    part = (Part(task="r1", part=1, parts=2), Part(task="r2"))
    done, model = joined(
        long, "y", turns=("- two boats [r1]",), rule={"chunk_bytes": 2_048}, reduce=True, parts=part
    )
    assert isinstance(done, Done)
    assert (done.result, done.cites) == ("- two boats [r1]", ("r1",))
    (request,) = model.requests
    assert str(request.messages[0]["content"]).startswith("Role: reduction\n")
    told = json.loads(str(request.messages[1]["content"]))
    assert told["at_most_bytes"] == 1_024
    assert told["results"][0]["result"] == {"part": 1, "parts": 2, "text": "x" * 1_500}
    assert request.max_tokens == 512


def test_results_that_fit_are_not_shortened() -> None:
    """As many bytes as the goal allows, whatever their names and reasons add."""
    values = ["x" * 498] * 4  # 500 bytes of JSON each
    _, model = joined(*values, turns=("ok",), rule={"chunk_bytes": 2_000})
    told = json.loads(str(model.requests[0].messages[1]["content"]))
    assert [one["result"] for one in told["results"]] == values


def test_the_synthesis_is_told_of_contradictions_and_its_citations_are_read() -> None:
    """Names in brackets, several in one pair too; links and numbers are sorted out by the fold."""
    found = (Contradiction(tasks=("r1", "r2"), about="the year"),)
    done, model = joined(
        1, 2, turns=("It was 1969 [r1, ~tie], see [r2](x) [no such thing].",), contradictions=found
    )
    assert isinstance(done, Done)
    assert done.cites == ("r1", "~tie", "r2")
    told = json.loads(str(model.requests[0].messages[1]["content"]))
    assert told["contradictions"] == [{"tasks": ["r1", "r2"], "about": "the year"}]


@pytest.mark.parametrize(
    ("text", "known", "cited"),
    [
        ("[a] and [b; a] and [c]", None, ("a", "b", "c")),
        ("[a] and [b; a] and [c]", {"b"}, ("b",)),
        ("[] [ ] [[a]] a]", None, ("a",)),
        ({"x": "[a]"}, None, ()),
        (
            "[a]" * 3_000 + "".join(f"[t{n}]" for n in range(3_000)),
            None,
            ("a", *(f"t{n}" for n in range(499))),
        ),
    ],
)
def test_citations(text: Json, known: set[str] | None, cited: tuple[str, ...]) -> None:
    """Each once, in the text's order, not without end."""
    assert citations(text, known) == cited


ROWS = {"type": "object", "required": ["n"]}


@pytest.mark.parametrize(
    ("strategy", "values", "answer"),
    [
        ("concat", ["One.", "Two."], "One.\n\nTwo."),
        ("concat", [[1], [2, 3]], [1, 2, 3]),
        ("concat", ["One.", {"n": 2}], ["One.", {"n": 2}]),
        ("concat", [], ""),
        ("table", [{"n": 1}, [{"n": 2}], {"rows": [{"n": 3}]}], {"rows": [{"n": 1}, {"n": 2}, {"n": 3}]}),
        (
            "table",
            [[{"n": 1}, {"m": 2}, "text"]],
            {
                "rows": [{"n": 1}],
                "left_out": [
                    {"task": "r1", "row": 2, "reason": "$: 'n' is a required property"},
                    {"task": "r1", "row": 3, "reason": "$: 'text' is not of type 'object'"},
                ],
                "rows_left_out": 2,
            },
        ),
        ("rank", ["best", "next"], ["best", "next"]),
    ],
)
def test_answers_that_no_model_writes(strategy: str, values: list[Json], answer: Json) -> None:
    """Texts and lists one after the other, rows by their schema, candidates in their order."""
    done, model = joined(*values, rule={"strategy": strategy, "row": ROWS if strategy == "table" else None})
    assert done == Done(result=answer)
    assert model.requests == []


def test_an_answer_without_a_model_that_breaks_its_schema_is_none() -> None:
    """Nobody can be asked again, so that it is final."""
    done, _ = joined("One.", rule={"strategy": "concat"}, schema={"type": "array"})
    assert isinstance(done, GaveUp)
    assert (done.kind, done.final) == ("bad_json", True)
    assert "is not of type 'array'" in done.reason


SCHEMA = {"type": "object", "properties": {"boats": {"type": "integer"}}, "required": ["boats"]}


@pytest.mark.parametrize(
    ("turns", "answer"),
    [
        (('{"boats": 4}',), {"boats": 4}),
        (("Four boats.", '{"boats": 4}'), {"boats": 4}),
        (("Four boats.", '{"boats": "4"}'), None),
    ],
)
def test_an_answer_keeps_to_its_schema_or_is_asked_for_once_more(
    turns: tuple[str, ...], answer: Json
) -> None:
    """The model is told the schema, and why its first answer was none; a second one that is none fails."""
    done, model = joined(4, turns=turns, schema=SCHEMA)
    assert len(model.requests) == len(turns)
    assert model.requests[0].schema == SCHEMA
    assert json.loads(str(model.requests[0].messages[1]["content"]))["answer_schema"] == SCHEMA
    if len(turns) > 1:
        why = json.loads(str(model.requests[1].messages[-1]["content"]))
        assert why["refused"]
    if answer is None:
        assert isinstance(done, GaveUp)
        assert (done.kind, done.final, done.usage.calls) == ("bad_json", False, 2)
    else:
        assert isinstance(done, Done)
        assert (done.result, done.usage.calls) == (answer, len(turns))
