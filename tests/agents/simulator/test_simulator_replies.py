"""What the simulated model says: plans, tool calls, answers, and the joined answer."""

from typing import Any

import orjson
import pytest

from agents.simulator import enumeration
from agents.simulator.problems import Rejected
from tests.agents.simulator.conftest import Say


def _plan(say: Say, goal: str, **data: Any) -> list[dict[str, Any]]:
    plan: list[dict[str, Any]] = orjson.loads(say("planner", {"goal": goal, **data}).text or "")
    return plan


def _graph(plan: list[dict[str, Any]]) -> dict[str, list[str]]:
    return {entry["id"]: entry["dep"] for entry in plan}


def _tool(name: str, *required: str) -> dict[str, Any]:
    properties = {parameter: {"type": "string"} for parameter in (*required, "version")}
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def _turn(reply: Any, *outputs: Any) -> list[dict[str, Any]]:
    """The messages of a turn in which these calls returned these outputs."""
    calls = [
        {"id": c, "type": "function", "function": {"name": n, "arguments": a}} for c, n, a in reply.calls
    ]
    told = [
        {"role": "tool", "tool_call_id": c, "content": o if isinstance(o, str) else orjson.dumps(o).decode()}
        for (c, _, _), o in zip(reply.calls, outputs, strict=True)
    ]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *told]


@pytest.mark.parametrize(
    ("goal", "things"),
    [
        ("Compare Kafka, Redis and Postgres for a job queue", ["Kafka", "Redis", "Postgres"]),
        ("Explain the difference between TCP and UDP.", ["TCP", "UDP"]),
        ("Name the risks: burnout, isolation, or distraction?", ["burnout", "isolation", "distraction"]),
        ("List the rivers of France, Spain, and Spain", ["France", "Spain"]),
        ("Read the file and report its size", []),
        ("Summarise the history of the canal", []),
        ("", []),
    ],
)
def test_things_that_a_goal_names(goal: str, things: list[str]) -> None:
    """Lists are found; two clauses are none."""
    assert enumeration.things(goal) == things


def test_named_things_are_worked_on_side_by_side_and_then_joined(say: Say) -> None:
    """One sub-task each, and one that needs them all."""
    plan = _plan(say, "Compare Kafka, Redis and Postgres", input="some text")
    assert _graph(plan) == {
        "kafka": [],
        "redis": [],
        "postgres": [],
        "summary": ["kafka", "redis", "postgres"],
    }
    assert [entry["kind"] for entry in plan] == ["analyze", "analyze", "analyze", "summarize"]
    assert [entry.get("input") for entry in plan] == ["all", "all", "all", None]


def test_steps_follow_each_other(say: Say) -> None:
    """Each needs the one before."""
    plan = _plan(say, "Find the capital of France. Then describe its river.")
    assert _graph(plan) == {"step-1": [], "step-2": ["step-1"]}


def test_a_list_is_planned_item_by_item(say: Say) -> None:
    """By one entry for all, which a share cut for the prompt does not mislead; markers are copied."""
    plan = _plan(say, "Audit these [[slow 1]]", input=[{"name": "a"}], items=250, max_subtasks=100)
    assert plan == [
        {"id": "item", "goal": "Audit these [[slow 1]]", "kind": "analyze", "dep": [], "input": "each"}
    ]


def test_shapes(say: Say) -> None:
    """Each directive makes its graph."""
    assert _graph(_plan(say, "[[plan 3]] go")) == {"t1": [], "t2": [], "t3": []}
    assert _graph(_plan(say, "go [[chain 3]]")) == {"t1": [], "t2": ["t1"], "t3": ["t2"]}
    assert _graph(_plan(say, "[[diamond]]")) == {"t1": [], "t2": ["t1"], "t3": ["t1"], "t4": ["t2", "t3"]}
    assert _graph(_plan(say, "[[join 2]]")) == {"t1": [], "t2": [], "t3": ["t1", "t2"]}
    assert _plan(say, "[[noop 1]]") == [{"id": "t1", "tool": "noop", "args": {}, "dep": []}]
    assert _plan(say, "[[chain 2 noop]]")[1] == {"id": "t2", "tool": "noop", "args": {}, "dep": ["t1"]}
    assert len(_plan(say, "[[plan 150]]", max_subtasks=100)) == 150


def test_a_cycle_is_mended_only_where_the_goal_says_so(say: Say) -> None:
    """For tests of the planner's second chance."""
    more = [{"role": "assistant", "content": "x"}, {"role": "user", "content": '{"refused": ["cycle"]}'}]
    cycle = {"t1": ["t2"], "t2": ["t1"]}
    for goal, again, graph in (
        ("[[cycle]]", (), cycle),
        ("[[cycle]]", more, cycle),
        ("[[cycle once]]", (), cycle),
        ("[[cycle once]]", more, {"t1": [], "t2": ["t1"]}),
    ):
        assert _graph(orjson.loads(say("planner", {"goal": goal}, again).text or "")) == graph


def test_a_directive_for_one_sub_task_goes_there_alone(say: Say) -> None:
    """Others go to all."""
    plan = _plan(say, "[[plan 3]] go [[fail @2]] [[slow 1]]")
    assert [entry["goal"] for entry in plan] == [
        "Part 1 of 3: go [[slow 1]]",
        "Part 2 of 3: go [[fail]] [[slow 1]]",
        "Part 3 of 3: go [[slow 1]]",
    ]


@pytest.mark.parametrize("goal", ["[[plan]]", "[[plan many]]", "[[plan 0]]", "[[chain 100000]]"])
def test_a_shape_that_makes_no_sense_is_told_so(say: Say, goal: str) -> None:
    """Rather than planned as something else."""
    with pytest.raises(Rejected, match="directive"):
        say("planner", {"goal": goal})


def test_a_plan_of_100_fits_into_a_planners_tokens(say: Say) -> None:
    """Of 4,096 tokens, with shares, markers, and a long goal."""
    goal = "[[plan 100]] " + "far and wide " * 200 + "[[slow 0.5]]"
    reply = say("planner", {"goal": goal, "input": [], "items": 100}, max_tokens=4096)
    assert reply.finish_reason == "stop"


def test_a_json_object_holds_the_plan_where_one_is_asked_for(say: Say) -> None:
    """Under ``tasks``."""
    reply = say("planner", {"goal": "[[plan 2]]"}, response_format={"type": "json_object"})
    assert [entry["id"] for entry in orjson.loads(reply.text or "")["tasks"]] == ["t1", "t2"]


def test_one_item_is_told_as_one_object(say: Say) -> None:
    """All fields of all tools; a contradiction is kept."""
    data = {"goal": "Audit", "input": [{"name": "a", "version": "1"}]}
    tools = [_tool("metadata", "name"), _tool("files", "name"), _tool("list_all")]
    first = say("sub-agent", data, tools=tools)
    assert [(name, orjson.loads(arguments)) for _, name, arguments in first.calls] == [
        ("metadata", {"name": "a", "version": "1"}),
        ("files", {"name": "a", "version": "1"}),
    ]
    turn = _turn(first, {"licence": "MIT", "requires": ["x"]}, {"licence": "GPL", "size": 3})
    answer = orjson.loads(say("sub-agent", data, turn, tools=tools).text or "")
    assert answer == {
        "name": "a",
        "version": "1",
        "licence": "MIT",
        "requires": ["x"],
        "files.licence": "GPL",
        "size": 3,
    }


def test_bare_names_and_items_without_a_name(say: Say) -> None:
    """A name is taken for the one required value; an item that no tool can take is still answered for."""
    data = {"goal": "Audit", "input": ["a", {"other": 1}]}
    tools = [_tool("metadata", "name")]
    first = say("sub-agent", data, tools=tools)
    assert [arguments for _, _, arguments in first.calls] == ['{"name":"a"}']
    answer = orjson.loads(say("sub-agent", data, _turn(first, "no JSON"), tools=tools).text or "")
    assert answer == {"items": [{"item": "a", "metadata": "no JSON"}, {"other": 1}]}


def test_the_same_item_twice_is_asked_once_and_answered_twice(say: Say) -> None:
    """A repeated call would end the sub-task as a loop."""
    data = {"goal": "Audit", "input": [{"name": "a"}, {"name": "a"}]}
    tools = [_tool("metadata", "name")]
    first = say("sub-agent", data, tools=tools)
    assert len(first.calls) == 1
    answer = orjson.loads(say("sub-agent", data, _turn(first, {"size": 1}), tools=tools).text or "")
    assert answer == {"items": [{"name": "a", "size": 1}] * 2}


def test_tools_without_required_values_are_called_once_where_no_other_fits(say: Say) -> None:
    """And the answer is what they returned."""
    tools = [_tool("list_all"), _tool("metadata", "name")]
    first = say("sub-agent", {"goal": "Audit"}, tools=tools)
    assert [(name, arguments) for _, name, arguments in first.calls] == [("list_all", "{}")]
    turn = _turn(first, ["a", "b"])
    assert orjson.loads(say("sub-agent", {"goal": "Audit"}, turn, tools=tools).text or "") == {
        "list_all": ["a", "b"]
    }


def test_the_last_turn_has_no_tools_and_still_knows_what_they_told(say: Say) -> None:
    """Who may call no more tells what the earlier calls brought, item by item."""
    data = {"goal": "Audit", "input": [{"name": "a"}, {"name": "b"}]}
    first = say("sub-agent", data, tools=[_tool("metadata", "name")])
    cut = {"note": "too long", "head": "{", "tail": "}"}
    answer = orjson.loads(say("sub-agent", data, _turn(first, {"size": 1}, cut)).text or "")
    assert answer == {"items": [{"name": "a", "size": 1}, {"name": "b", "metadata": cut}]}


def test_values_of_dependencies_serve_where_there_is_no_input(say: Say) -> None:
    """Objects in their results, also as items."""
    result = {"items": [{"name": "a"}, {"name": "b"}]}
    data = {"goal": "Audit", "results": [{"task": "x", "outcome": "succeeded", "result": result}]}
    first = say("sub-agent", data, tools=[_tool("metadata", "name")])
    assert [arguments for _, _, arguments in first.calls] == ['{"name":"a"}', '{"name":"b"}']
    answer = orjson.loads(say("sub-agent", data, _turn(first, {"size": 1}, {"size": 2})).text or "")
    assert answer == {"items": [{"name": "a", "size": 1}, {"name": "b", "size": 2}]}


def test_forbidden_tools_are_left_alone(say: Say) -> None:
    """As ``tool_choice`` says."""
    data = {"goal": "Audit", "input": [{"name": "a"}]}
    reply = say("sub-agent", data, tools=[_tool("metadata", "name")], tool_choice="none")
    assert (reply.calls, reply.text) == ((), '(simulated) Audit\n- input: {"name":"a"}')


def test_long_texts_are_shortened_to_fit(say: Say) -> None:
    """All fields stay, and the names too."""
    data = {"goal": "Audit", "input": [{"name": "a"}, {"name": "b"}]}
    tools = [_tool("metadata", "name")]
    first = say("sub-agent", data, tools=tools)
    output = {"licence": "MIT", "text": "word " * 4_000, "requires": [f"package-{k}" for k in range(200)]}
    reply = say("sub-agent", data, _turn(first, output, output), tools=tools, max_tokens=500)
    items = orjson.loads(reply.text or "")["items"]
    assert reply.finish_reason == "stop"
    assert [(item["name"], item["licence"]) for item in items] == [("a", "MIT"), ("b", "MIT")]
    assert all(item["text"].endswith("…") and item["requires"][-1].endswith("more") for item in items)


def test_without_tools_it_quotes_what_it_was_given(say: Say) -> None:
    """Or says that there is nothing."""
    results = [
        {"task": "a", "goal": "x", "outcome": "succeeded", "result": "(simulated) found it"},
        {"task": "b", "goal": "y", "outcome": "failed", "reason": "timeout"},
    ]
    reply = say("sub-agent", {"goal": "Sum up [[slow 1]]", "input": {"k": 1}, "results": results})
    assert reply.text == '(simulated) Sum up\n- input: {"k":1}\n- a: found it\n- b failed: timeout'
    assert "Nothing to extract" in (say("sub-agent", {"goal": "Sum up"}).text or "")


def test_objects_are_joined_as_one_table(say: Say) -> None:
    """With what stands out before it, and what is missing."""
    rows = [
        {"name": "a", "licence": "MIT", "verdict": "permissive", "requires": ["x", "y"], "deep": [{"z": 1}]},
        {"name": "b", "licence": "GPL|LGPL", "verdict": "copyleft", "requires": []},
        {"name": "c", "licence": None, "verdict": "unknown", "size": 7},
        {"name": "d", "licence": "BSD", "verdict": "permissive"},
    ]
    results = [
        {"task": "i-1", "goal": "g", "outcome": "succeeded", "result": {"items": rows[:2]}},
        {"task": "i-2", "goal": "g", "outcome": "succeeded", "result": rows[2]},
        {"task": "i-3", "goal": "g", "outcome": "succeeded", "result": orjson.dumps(rows[3]).decode()},
        {"task": "i-4", "goal": "see to e", "outcome": "failed", "reason": "timeout: 120 s"},
    ]
    assert say("synthesis", {"goal": "Audit", "results": results}).text == (
        "(simulated) Joined without a model from 3 of 4 results: Audit\n"
        "\n## Findings\n\n"
        "- verdict **copyleft**, 1 of 4: b\n"
        "- verdict **unknown**, 1 of 4: c\n"
        "- verdict **permissive**, 2 of 4\n"
        "\n## Without a result\n\n"
        "- i-4 (see to e) failed: timeout: 120 s\n"
        "\n| name | licence | verdict | requires | size |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| a | MIT | permissive | x, y |  |\n"
        "| b | GPL\\|LGPL | copyleft |  |  |\n"
        "| c |  | unknown |  | 7 |\n"
        "| d | BSD | permissive |  |  |\n"
    )


def test_a_wide_table_loses_columns_before_rows(say: Say) -> None:
    """And says which; names and verdicts stay."""
    rows = [
        {"summary": f"{k} " * 30, "name": f"p{k}", "verdict": "unknown", "requires": ["x" * 9] * 9}
        for k in range(100)
    ]
    results = [{"task": r["name"], "outcome": "succeeded", "result": r} for r in rows]
    reply = say("synthesis", {"goal": "Audit", "results": results}, max_tokens=1_200)
    text = reply.text or ""
    assert reply.finish_reason == "stop"
    assert all(f"| p{k} | unknown |" in text for k in range(100))
    assert "Left out for length: summary, requires." in text
    assert say("synthesis", {"goal": "Audit", "results": results}, max_tokens=50).finish_reason == "length"


def test_a_goal_that_names_columns_gets_these(say: Say) -> None:
    """In its order, with sizes for people; two words that happen to be fields are no request."""
    rows = [
        {"item": k, "size_bytes": size, "name": f"p{k}", "licence": "MIT", "home": "x"}
        for k, size in enumerate((7, 999_999, 12_345_678, 10**12, None))
    ]
    results = [{"task": r["name"], "outcome": "succeeded", "result": r} for r in rows]
    text = say("synthesis", {"goal": "A table of name, size and licence", "results": results}).text or ""
    assert text.endswith(
        "\n| name | size | licence |\n| --- | --- | --- |\n| p0 | 7 B | MIT |\n| p1 | 1 MB | MIT |\n"
        "| p2 | 12.3 MB | MIT |\n| p3 | 1,000 GB | MIT |\n| p4 |  | MIT |\n"
    )
    nameless = say("synthesis", {"goal": "Tell licence, home and size", "results": results}).text or ""
    assert "| name | licence | home | size |" in nameless
    other = say("synthesis", {"goal": "Which home has each item?", "results": results}).text or ""
    assert "| item | size | name | licence | home |" in other


def test_fields_that_no_cell_can_hold_make_no_table(say: Say) -> None:
    """Nor does what is left of a result that was too long."""
    results: list[dict[str, Any]] = [
        {"task": "a", "outcome": "succeeded", "result": {"verdict": None, "deep": {"x": 1}}},
        {"task": "b", "outcome": "succeeded", "result": {"note": "too long", "head": "{", "tail": "}"}},
    ]
    text = say("synthesis", {"goal": "Audit", "results": [results[0], results[1], results[1]]}).text or ""
    assert "|" not in text
    assert "- b: {" in text
    row = {"name": "n", "verdict": None, "a": "w " * 30, "b": "w " * 30, "c": "w " * 30}
    named = [{"task": "a", "outcome": "succeeded", "result": row}]
    text = say("synthesis", {"goal": "Audit", "results": named}, max_tokens=50).text or ""
    assert "| n |" in text
    assert "Left out for length: a, b, c." in text


def test_other_results_are_quoted(say: Say) -> None:
    """Texts, and objects that have nothing in common."""
    results = [
        {"task": "a", "outcome": "succeeded", "result": "(simulated) found it"},
        {"task": "b", "outcome": "succeeded", "result": {"x": 1}},
        {"task": "c", "outcome": "succeeded", "result": {"y": 2}},
    ]
    text = say("synthesis", {"goal": "Audit", "results": results}).text or ""
    assert text.endswith('## Results\n\n- a: found it\n- b: {"x":1}\n- c: {"y":2}\n')
    nothing = say("synthesis", {"goal": "Audit", "results": []}).text or ""
    assert nothing.endswith("There is no result to join.\n")


def test_an_unknown_role_gets_its_own_words_back(say: Say) -> None:
    """The endpoint serves other clients too."""
    assert say("critic", "hello there").text == '(simulated) "hello there"'


def test_a_request_without_max_tokens_gets_few(say: Say) -> None:
    """As on endpoints that have a small default."""
    reply = say("planner", {"goal": "[[plan 100]]"}, max_tokens=None)
    assert (reply.finish_reason, reply.tokens) == ("length", 1_024)


def _verdict(say: Say, asks: str, goal: str, **results: Any) -> Any:
    told = [{"task": task, "outcome": "succeeded", "result": result} for task, result in results.items()]
    return orjson.loads(say("judge", {"asks": asks, "goal": goal, "results": told}).text or "")


def test_a_judge_goes_by_words_and_directives(say: Say) -> None:
    """Verdicts in the form that each question asks for; directives name sub-tasks, others are passed over."""
    assert _verdict(say, "gate", "x") == {"allow": True, "reason": ""}
    assert _verdict(say, "gate", "x [[refuse no work]]") == {"allow": False, "reason": "no work"}
    assert _verdict(say, "check", "x", a=1, b=2) == {"contradictions": []}
    found = _verdict(say, "check", "x [[contradict a b]] [[contradict a nobody]]", a=1, b=2)
    assert [each["tasks"] for each in found["contradictions"]] == [["a", "b"]]
    votes = {"a": "Four", "b": "4", "c": "four", "d": {"n": 4}}
    assert _verdict(say, "equal", "x", **votes) == {"groups": [["a", "c"], ["b"], ["d"]]}
    assert _verdict(say, "equal", "x [[alike d b]]", **votes) == {"groups": [["a", "c"], ["b", "d"]]}
    assert _verdict(say, "rank", "x [[order c a]]", **votes) == {"order": ["c", "a", "b", "d"]}


def test_a_sub_agent_says_what_it_is_told_to_say(say: Say) -> None:
    """Words or JSON; by one model or by any; tools are not called then."""
    assert say("sub-agent", {"goal": 'x [[say {"boats": 4}]]'}).text == '{"boats": 4}'
    other = "[[say five by simulated-b]] [[say four by simulated]] [[say six]]"
    assert say("sub-agent", {"goal": other}).text == "four"
    assert say("sub-agent", {"goal": "[[say by me]]"}).text == "by me"


def test_a_summary_keeps_to_its_length_and_names_its_sources(say: Say) -> None:
    """Of many results the beginning of each."""
    results = [{"task": f"t{n}", "outcome": "succeeded", "result": "boat " * 200} for n in range(5)]
    results[4]["result"] = {"part": 2, "parts": 3, "text": "harbour " * 100}  # type: ignore[assignment]
    text = say("reduction", {"goal": "x", "at_most_bytes": 1_000, "results": results}).text or ""
    assert len(text) <= 1_000
    assert [f"[t{n}]" in text for n in range(5)] == [True] * 5
    assert "part 2 of 3: harbour" in text


def test_a_synthesis_cites_where_it_is_told_to(say: Say) -> None:
    """Those that have a result."""
    results = [
        {"task": "a", "goal": "a", "outcome": "succeeded", "result": "one"},
        {"task": "b", "goal": "b", "outcome": "failed", "reason": "no"},
    ]
    assert (say("synthesis", {"goal": "x [[cite]]", "results": results}).text or "").endswith(
        "Sources: [a]\n"
    )
