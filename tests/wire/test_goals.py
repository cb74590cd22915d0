"""Goals as people and programs send them, and what is said to those who send something else."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships without types
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.events import JobSubmitted
from streams.core.goal import Budget, Goal, Header, JoinRule, Limits, Source
from streams.core.plan import SubTask
from streams.core.values import Inline
from streams.log import Headers, Record
from streams.wire.goal_fields import GoalFields
from streams.wire.goals import BadGoal, read_goal
from streams.wire.schemas import schemas
from tests.wire.strategies import JSON, TEXT

NOOPS = [{"id": "t1", "tool": "noop", "args": {}, "dep": []}]
GOAL_OF_NOOPS: dict[str, Any] = {"goal": "x", "tools": ["noop"], "plan": NOOPS}


def read(value: Any, headers: Headers = (), *, offset: int = 7) -> JobSubmitted | BadGoal:
    data = value if isinstance(value, bytes | None) else orjson.dumps(value)
    return read_goal(Record("goals", 2, offset, 1_790_000_000_000, None, data, headers), lanes=4)


def job(value: Any, headers: Headers = (), *, offset: int = 7) -> JobSubmitted:
    goal = read(value, headers, offset=offset)
    assert isinstance(goal, JobSubmitted), goal
    return goal


def refused(value: Any, headers: Headers = ()) -> BadGoal:
    goal = read(value, headers)
    assert isinstance(goal, BadGoal), goal
    return goal


def test_plain_text_is_a_goal() -> None:
    submitted = job(b"Compare three message brokers\n")
    assert submitted.goal.text == Inline(value="Compare three message brokers")
    assert submitted.job == "default/goals-2-7"
    assert submitted.source == Source(topic="goals", partition=2, offset=7)
    assert submitted.lanes == 4


@pytest.mark.parametrize(
    "value", [b"\xef\xbb\xbfCompare", b'"Compare"', b"  Compare ", {"goal": "Compare"}, {"goal": " Compare "}]
)
def test_ways_to_say_the_same_goal(value: Any) -> None:
    """A byte order mark, a JSON serialiser's quotes, and blanks around make no difference."""
    assert job(value).goal == job(b"Compare").goal


@pytest.mark.parametrize("text", ["[Urgent] compare", "42 brokers", "null and void", "été", "-"])
def test_text_that_begins_like_json(text: str) -> None:
    assert job(text.encode()).goal.text == Inline(value=text)


def test_every_field_counts() -> None:
    submitted = job(
        {
            "id": "audit.7_~-",
            "tenant": "acme",
            "goal": "Audit",
            "priority": 9,
            "input": ["a", {"b": None}],
            "tools": ["read", "list", "read"],
            "model": "kimi-k2.6",
            "deadline_s": 600,
            "budget": {"tokens": 1000, "calls": 10, "usd": 0.5},
            "limits": {"max_subtasks": 1, "concurrency": 2, "timeout_s": 0.5, "max_attempts": 1},
            "join": {"min_success_ratio": 1, "fail_fast_ratio": 0},
        }
    )
    assert submitted.job == "acme/audit.7_~-"
    assert submitted.goal == Goal(
        text=Inline(value="Audit"),
        input=Inline(value=["a", {"b": None}]),
        items=2,
        tenant="acme",
        priority=9,
        tools=("read", "list"),
        model="kimi-k2.6",
        deadline_s=600.0,
        budget=Budget(tokens=1000, calls=10, usd=0.5),
        limits=Limits(max_subtasks=1, concurrency=2, timeout_s=0.5, max_attempts=1),
        join=JoinRule(min_success_ratio=1.0, fail_fast_ratio=0.0),
        digest=submitted.goal.digest,
    )


def test_null_is_a_field_left_out() -> None:
    left_out = dict.fromkeys(GoalFields.model_fields.keys() - {"goal"})
    assert job({"goal": "x", **left_out}) == job({"goal": "x"})


def test_a_goal_may_bring_its_plan() -> None:
    """As planners reply it: by any name a field has, expanded over the items, dependencies first."""
    brought = [
        {"id": "sum", "prompt": "Sum up", "depends_on": ["read"], "type": "summarize"},
        {"id": "read", "tool": "read", "args": {"fast": True}, "input": "each"},
    ]
    submitted = job({"goal": "x", "input": ["a", "b"], "tools": ["read"], "plan": brought})
    assert submitted.plan == (
        SubTask(id="read-1", goal="", tool="read", args={"fast": True}, input=(0, 0)),
        SubTask(id="read-2", goal="", tool="read", args={"fast": True}, input=(1, 1)),
        SubTask(id="sum", goal="Sum up", kind="summarize", dep=("read-1", "read-2")),
    )
    assert submitted.goal == replace(
        job({"goal": "x", "input": ["a", "b"], "tools": ["read"]}).goal, digest=submitted.goal.digest
    )


IDS = st.text("ab", min_size=1, max_size=2)
ENTRY = st.fixed_dictionaries(
    {"id": IDS},
    optional={
        "goal": st.sampled_from(["x", "", None]),
        "tool": st.sampled_from(["noop", None]),
        "dep": st.lists(IDS, max_size=1),
        "args": JSON | st.just({}),
        "input": st.sampled_from(["all", "each", None, [0, 1]]),
        "model": JSON | st.just("m"),
    },
)


@given(JSON | st.lists(ENTRY, min_size=1, max_size=3) | st.lists(ENTRY | JSON, max_size=3))
def test_any_plan_is_admitted_or_says_why(plan: Any) -> None:
    """And what is admitted fits the printed schema."""
    goal = {"goal": "x", "tools": ["noop"], "plan": plan}
    found = read(goal)
    if isinstance(found, BadGoal):
        assert found.reason.startswith("`plan`: ")
        assert len(found.reason) < 1000
    else:
        assert (found.plan == ()) == (plan is None)
        jsonschema.validate(goal, orjson.loads(schemas()["goals"]))


def test_a_goal_with_a_refused_plan_is_answered_where_its_id_can_be_read() -> None:
    bad = refused({"id": "g1", "goal": "x", "plan": [{"id": "a", "goal": "y", "dep": ["a"]}]})
    assert (bad.job, bad.reason) == ("default/g1", "`plan`: cycle a -> a")


@pytest.mark.parametrize(("given_input", "items"), [([], 0), ([1, 2], 2), ({"a": 1}, None), ("x", None)])
def test_items_of_a_list_are_counted(given_input: Any, items: int | None) -> None:
    assert job({"goal": "x", "input": given_input}).goal.items == items


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "tombstone"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"\x00\x00\x00\x00\x07Compare", "zero byte"),
        (b"", "`goal`: is empty"),
        (b" \n", "`goal`: is empty"),
        (b'{"goal": "x"', "not JSON"),
        (b'{"goal": "\\ud800"}', "not JSON"),
        (b'{"goal": "x", "input": NaN}', "not JSON"),
        (b'{"a":' * 3000, "not JSON"),
        (b'{"goal":"x","input":' + b"[" * 200 + b"]" * 200 + b"}", "deep"),
        (b"[1, 2]", "not a list"),
        (b"null", "not null"),
        (b"42", "not a number"),
        (b"true", "not a boolean"),
        ({"goal": 5}, "`goal`: should be a valid string"),
        ({"goal": "x", "id": "a/b"}, "`id`: should be 1 to 128 letters"),
        ({"goal": "x", "id": "a" * 129}, "`id`: should be 1 to 128 letters"),
        ({"goal": "x", "id": ""}, "`id`: should be 1 to 128 letters"),
        ({"goal": "x", "id": "a\n"}, "`id`: should be 1 to 128 letters"),
        ({"goal": "x", "id": 7}, "`id`: should be a valid string"),
        ({"goal": "x", "tenant": "a b"}, "`tenant`: should be 1 to 128 letters"),
        ({"goal": "x", "priority": 10}, "`priority`: should be less than or equal to 9"),
        ({"goal": "x", "priority": True}, "`priority`"),
        ({"goal": "x", "priority": "5"}, "`priority`"),
        ({"goal": "x", "deadline_s": 0}, "`deadline_s`: should be greater than 0"),
        ({"goal": "x", "tools": "read"}, "`tools`: should be a valid list"),
        ({"goal": "x", "tools": ["read", ""]}, "`tools`"),
        ({"goal": "x", "budget": 5}, "`budget`: should be a JSON object"),
        ({"goal": "x", "budget": {"usd": -1}}, "`budget.usd`: should be greater than 0"),
        ({"goal": "x", "budget": {"tokens": 1.5}}, "`budget.tokens`"),
        ({"goal": "x", "limits": {"max_subtasks": 101}}, "`limits.max_subtasks`: should be less than or eq"),
        ({"goal": "x", "limits": {"concurrency": 0}}, "`limits.concurrency`: should be greater than or eq"),
        ({"goal": "x", "limits": {"timeout_s": 0}}, "`limits.timeout_s`: should be greater than 0"),
        ({"goal": "x", "join": {"min_success_ratio": 1.1}}, "`join.min_success_ratio`"),
        ({"goal": "x", "deadlin_s": 5}, "`deadlin_s` is unknown, did you mean `deadline_s`?"),
        ({"goal": "x", "timeout_s": 5}, "`timeout_s` is unknown, did you mean `limits.timeout_s`?"),
        ({"goal": "x", "limits": {"max_subtask": 5}}, "did you mean `limits.max_subtasks`?"),
        ({"prompt": "x"}, "`goal` is missing; `prompt` is unknown, did you mean `goal`?"),
        ({"plan": NOOPS}, "`goal` is missing"),
        ({"goal": "x", "tasks": NOOPS}, "`tasks` is unknown, did you mean `plan`?"),
        ({"goal": "x", "plan": {"tasks": NOOPS}}, "`plan`: the sub-tasks must be a list, are an object"),
        ({"goal": "x", "plan": []}, "`plan`: no sub-tasks"),
        ({"goal": "x", "plan": [{"goal": "y"}]}, "`plan`: sub-task 1: id must be a string, is missing"),
        (GOAL_OF_NOOPS | {"plan": [*NOOPS, *NOOPS]}, "`plan`: duplicate id t1"),
        ({"goal": "x", "plan": [{"id": "a", "goal": "y", "dep": ["b"]}]}, "`plan`: a depends on unknown b"),
        (GOAL_OF_NOOPS | {"input": ["a"]}, "`plan`: no sub-task sees any of the 1 items"),
        (
            GOAL_OF_NOOPS | {"plan": NOOPS * 2, "limits": {"max_subtasks": 1}},
            "`plan`: 2 sub-tasks, at most 1",
        ),
        (
            {"goal": "x", "plan": NOOPS, "tools": ["read", "write"]},
            "`plan`: sub-task 1: tool 'noop' is not among the goal's tools (read, write)",
        ),
        (
            {"goal": "x", "plan": [{"id": "a", "goal": "y", "tool": "noop"}]},
            "`plan`: sub-task 1: tool 'noop' is not among the goal's tools (none)",
        ),
        (
            {"goal": "x", "plan": [{"id": "a", "goal": "y", "depend_on": []}]},
            "`plan`: sub-task 1: 'depend_on' is unknown, did you mean depends_on?",
        ),
        ({"goal": "x", "plan": [0] * 1001}, "`plan`: 1001 sub-tasks, at most 100"),
        (
            {"goal": "x", "plan": [{"id": "a", "goal": "y", "dep": ["b"] * 1001}]},
            "`plan`: sub-task 1: dep is a list of 1001 ids",
        ),
        ({"goal": "x", "plan": [{"id": "a", "goal": "y" * 262_144}]}, "`plan`: the plan has 262"),
        ({"goal": "x", "zzz": 5}, "`zzz` is unknown, known are goal, id, tenant"),
    ],
)
def test_what_is_no_goal_says_why(value: Any, reason: str) -> None:
    assert reason in refused(value).reason


def test_a_goal_without_goal_is_answered_where_its_id_can_be_read() -> None:
    bad = refused({"id": "g1", "text": "x"})
    assert bad.job == "default/g1"
    assert "`goal` is missing" in bad.reason


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"id": "g1", "tenant": "acme"}, "acme/g1"),
        ({"id": "g/1"}, None),
        ({"id": "g1", "tenant": "a b"}, None),
        ({"id": 5}, None),
        ({}, None),
        (b"", None),
    ],
)
def test_whose_answer_says_rejected(value: Any, named: str | None) -> None:
    assert refused(value).job == named


def test_the_same_goal_again_is_the_same_job_and_meaning() -> None:
    first = job({"id": "g2", "goal": "x", "priority": 5, "limits": {"concurrency": 32}}, offset=1)
    again = job(b' {"limits": {}, "goal": "x", "id": "g2"}', offset=9)
    assert (first.job, first.goal) == (again.job, again.goal)


@pytest.mark.parametrize(
    "other",
    [
        {"goal": "y"},
        {"goal": "x", "input": 1},
        {"goal": "x", "tools": ["a"]},
        {"goal": "x", "tenant": "t"},
        GOAL_OF_NOOPS,
    ],
)
def test_another_goal_has_another_digest(other: Any) -> None:
    assert job({"goal": "x"}).goal.digest != job(other).goal.digest


def test_the_digest_is_that_of_what_was_said() -> None:
    """Nothing at its default is in it: another default some day leaves old goals as they are."""
    said = sha256(b'{"goal":"x","input":null,"limits":{"concurrency":5}}').hexdigest()
    assert job({"goal": "x", "priority": 5, "limits": {"concurrency": 5}}).goal.digest == said


@given(JSON)
def test_the_order_of_keys_means_nothing(value: Any) -> None:
    def turned(inner: Any) -> Any:
        if isinstance(inner, dict):
            return {key: turned(inner[key]) for key in reversed(inner)}
        return [turned(item) for item in inner] if isinstance(inner, list) else inner

    one = job({"goal": "x", "input": value})
    other = job({"input": turned(value), "goal": "x"})
    assert one.goal.digest == other.goal.digest


def test_headers_are_kept() -> None:
    headers = (("traceparent", b"00-ab"), ("raw", b"\xff\x00"), ("empty", None), ("raw", b""))
    assert job(b"x", headers).headers == (
        Header(name="traceparent", value="00-ab"),
        Header(name="raw", value="/wA=", base64=True),
        Header(name="empty", value=None),
        Header(name="raw", value=""),
    )


def test_more_headers_than_an_answer_can_carry() -> None:
    assert "262144" in refused(b"x", (("h", b"x" * 262_144),)).reason


@given(
    st.binary() | TEXT.map(str.encode) | JSON.map(orjson.dumps) | st.none(),
    st.lists(
        st.tuples(
            st.sampled_from(["content-type", "ce_specversion", "ce_id", "ce_source", "ce_type"]) | TEXT,
            st.none()
            | st.binary()
            | st.sampled_from([b"1.0", b"application/cloudevents+json", b"application/json", b"text/plain"]),
        ),
        max_size=6,
    ),
)
def test_any_record_is_a_job_or_says_why(value: bytes | None, headers: list[Any]) -> None:
    goal = read(value, tuple(headers))
    assert isinstance(goal, JobSubmitted) or 0 < len(goal.reason) < 1000


FIELDS = [
    *(
        "id",
        "tenant",
        "goal",
        "input",
        "plan",
        "tools",
        "model",
        "priority",
        "deadline_s",
        "budget",
        "limits",
        "join",
    ),
    *("specversion", "data", "source", "type", "data_base64", "datacontenttype"),
]


@given(st.dictionaries(st.sampled_from(FIELDS) | TEXT, JSON), st.booleans())
def test_any_object_is_a_job_or_says_why(value: Any, named: bool) -> None:
    goal = read(value | ({"goal": "x"} if named else {}))
    assert isinstance(goal, JobSubmitted) or 0 < len(goal.reason) < 1000
