"""Joins on a real Kafka, through a worker that is a process of its own: every strategy, every early end."""

from agents import simulator
from streams.core.commands import Answer
from streams.core.values import Json
from tests.acceptance.conftest import Programs
from tests.acceptance.running import running
from tests.conftest import NewSystem

MODELS = ("simulated", "simulated-a", "simulated-b")
BOATS = '[[say {"boats": 4}]]'


def job(name: str, goal: str, texts: dict[str, str] | None = None, **fields: Json) -> dict[str, Json]:
    """A goal for the simulated model, with the goals of its sub-tasks."""
    brought: dict[str, Json] = {"plan": [{"id": task, "goal": text} for task, text in (texts or {}).items()]}
    return {"id": name, "goal": goal, "model": "simulated", **(brought if texts else {}), **fields}


JOBS: tuple[dict[str, Json], ...] = (
    job(
        "vote",
        "Which town? [[say Paris. by simulated-a]] [[say Lyon by simulated-b]]",
        join={"strategy": "vote", "candidates": 3, "models": ["simulated-a", "simulated-b"]},
    ),
    job(
        "judged",
        "How many boats? [[alike a b]]",
        {"a": "[[say four]]", "b": "[[say 4 of them]]", "c": "[[say five]]"},
        join={"strategy": "vote", "equality": "judged"},
    ),
    job("tie", "x", {"a": "[[say four]]", "b": "[[say five]]"}, join={"strategy": "vote"}),
    job(
        "no-quorum",
        "x",
        {"a": "[[say four]]", "b": "[[say five]]", "c": "[[fail]]"},
        join={"strategy": "vote", "counting": "quorum", "quorum": 2, "min_success_ratio": 0.9},
    ),
    job("first", "x", {"a": "[[hang]]", "b": "[[say here]]"}, join={"strategy": "first"}),
    job("quorum", "x", {"a": "[[say one]]", "b": "[[say two]]", "c": "[[hang]]"}, join={"quorum": 2}),
    job(
        "fail-fast",
        "x",
        plan=[
            {"id": "a", "goal": "[[say one]]"},
            {"id": "b", "goal": "Do it [[fail]]", "dep": ["a"]},
            {"id": "c", "goal": "[[hang]]"},
        ],
        join={"fail_fast_ratio": 0.3},
    ),
    job("concat", "x", {"a": "[[say One.]]", "b": "[[say Two.]]"}, join={"strategy": "concat"}),
    job(
        "table",
        "x",
        {"a": BOATS, "b": '[[say {"ships": 1}]]', "c": '[[say {"boats": 2}]]'},
        join={"strategy": "table", "row": {"type": "object", "required": ["boats"]}},
    ),
    job(
        "rank",
        "x [[order c a]]",
        {"a": "[[say by a]]", "b": "[[say by b]]", "c": "[[say by c]]"},
        join={"strategy": "rank", "keep": 2},
    ),
    job(
        "settled",
        "x [[contradict a c]] [[cite]]",
        {
            "a": "[[say four boats]]",
            "b": "[[say Four boats.]]",
            "c": "[[say five boats]]",
            "d": "[[say four boats]]",
        },
        join={"duplicates": "exact", "check": True, "tie_break": True},
    ),
    job(
        "tree",
        "x [[cite]]",
        {f"t{n}": f"[[say {'boat ' * 14}{n}]]" for n in range(40)},
        join={"chunk_bytes": 1_024},
    ),
    job(
        "schema",
        "x",
        {"a": "[[say four]]", "b": "[[say five]]"},
        answer_schema={
            "type": "object",
            "properties": {"summary": {"type": "string", "minLength": 1}},
            "required": ["summary"],
        },
    ),
    job(
        "broken",
        "x",
        {"a": "[[say four]]"},
        answer_schema={"type": "integer", "minimum": 3},
        limits={"max_attempts": 1},
    ),
)


def ended(answer: Answer) -> tuple[str, str, Json]:
    """How a job ended, and its answer."""
    return answer.outcome, answer.rule, answer.value


async def test_every_strategy_on_a_real_kafka(new_system: NewSystem, programs: Programs) -> None:
    """One worker, one simulated model under three names, a job for each rule."""
    settings = await new_system(lanes=2, concurrency=60)
    async with running(settings, programs, simulator.Behaviour(models=MODELS)) as here:
        await programs.start(
            "worker",
            system=settings,
            OPENAI_BASE_URL=here.endpoint.url,
            OPENAI_API_KEY="test-key",
            ANABRANCH_MODEL=MODELS[0],
        )
        for number, goal in enumerate(JOBS):
            await here.send(goal, partition=number % 2)
        answers = await here.answers(len(JOBS))
    assert ended(answers["vote"]) == ("succeeded", "vote", "Paris.")
    assert answers["vote"].votes[0].tasks == ("candidate-1", "candidate-3")
    assert ended(answers["judged"]) == ("succeeded", "vote", "four")
    assert answers["judged"].used == ("a", "b")
    assert ended(answers["tie"]) == ("partial", "tie", {"a": "four", "b": "five"})
    assert ended(answers["no-quorum"]) == ("failed", "all_done", None)
    assert ended(answers["first"]) == ("succeeded", "first", "here")
    assert answers["quorum"].rule == "quorum"
    assert {line.task: line.outcome for line in answers["quorum"].subtasks}["c"] == "unfinished"
    assert ended(answers["fail-fast"])[:2] == ("partial", "fail_fast")
    assert ended(answers["concat"]) == ("succeeded", "all_done", "One.\n\nTwo.")
    table = answers["table"].value
    assert isinstance(table, dict)
    assert table["rows"] == [{"boats": 4}, {"boats": 2}]
    assert [each["task"] for each in table["left_out"]] == ["b"]
    assert ended(answers["rank"]) == ("succeeded", "all_done", ["by c", "by a"])
    settled = answers["settled"]
    assert [(each.task, each.of) for each in settled.duplicates] == [("d", "a")]
    assert [each.tasks for each in settled.contradictions] == [("a", "c")]
    assert (settled.used, settled.cites) == (("a", "b", "c"), ("a", "b", "c", "~tie"))
    tree = answers["tree"]
    assert (tree.outcome, len(tree.used), set(tree.cites)) == ("succeeded", 40, set(tree.used))
    assert tree.usage.calls > 44  # 40 sub-tasks, the leaves, and the levels above
    schema = answers["schema"]
    assert schema.outcome == "succeeded"
    assert isinstance(schema.value, dict)
    assert set(schema.value) == {"summary"}
    assert ended(answers["broken"]) == ("failed", "all_done", None)
    assert "bad_json" in answers["broken"].subtasks[0].reason
