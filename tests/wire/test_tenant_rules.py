"""Goals with the defaults of their tenants, and what tenants may do."""

from typing import Any

import orjson
import pytest

from agents.configuration.reading import read_configuration
from agents.configuration.tenants import merged
from agents.configuration.values import Configuration
from streams.core.events import JobSubmitted
from streams.core.goal import JoinRule, KindTimeout, TenantRules
from streams.core.values import Grant
from streams.log import Record
from streams.wire.goals import BadGoal, read_goal
from streams.wire.tenant_rules import default_faults
from tests.agents.configuration.reading import read

CONFIGURED = """
    [kinds.default]
    models = ["m"]
    timeout_s = 60
    [kinds.planner]
    timeout_s = 300
    [defaults]
    deadline_s = 600
    answer_schema = { type = "string" }
    [defaults.join]
    min_success_ratio = 0.5
    quorum = 3
    [tenant]
    weight = 2
    [tenants.acme]
    weight = 3
    jobs = 4
    day = { usd = 10.0 }
    gate = { model = true }
    [tenants.acme.defaults]
    join = { min_success_ratio = 0.9 }
    answer_schema = { type = "object" }
"""


def taken_in(goal: dict[str, Any], configured: Configuration | None) -> JobSubmitted | BadGoal:
    record = Record("goals", 0, 7, 0, None, orjson.dumps(goal), ())
    return read_goal(record, lanes=2, configured=configured)


def job(goal: dict[str, Any], text: str = CONFIGURED) -> JobSubmitted:
    found = taken_in(goal, read(text))
    assert isinstance(found, JobSubmitted), found
    return found


def test_a_goal_has_the_defaults_of_its_tenant_under_its_own_words() -> None:
    """Objects key by key, JSON Schemas as a whole; the timeouts of kinds are the lowest."""
    goal = job({"goal": "x", "tenant": "acme", "join": {"quorum": 2}, "deadline_s": None}).goal
    assert goal.join == JoinRule(min_success_ratio=0.9, quorum=2)
    assert (goal.deadline_s, goal.answer_schema) == (600, {"type": "object"})
    assert (goal.limits.timeout_s, goal.limits.timeouts) == (60, (KindTimeout(kind="plan", timeout_s=300),))
    other = job({"goal": "x", "deadline_s": 5, "limits": {"timeout_s": 1}}).goal
    assert (other.deadline_s, other.limits.timeout_s, other.answer_schema) == (5, 1, {"type": "string"})


def test_what_a_tenant_may_do_stands_beside_what_a_goal_says() -> None:
    """No goal can say it."""
    acme = job({"goal": "x", "tenant": "acme"}).goal
    assert acme.rules == TenantRules(weight=3, jobs=4, day=Grant(usd=10.0))
    assert acme.gate
    assert job({"goal": "x", "tenant": "other"}).goal.rules == TenantRules(weight=2)
    for field in ("rules", "gate"):
        assert isinstance(taken_in({"goal": "x", field: {}}, read(CONFIGURED)), BadGoal)


def test_a_goal_that_comes_again_after_a_change_of_the_defaults_is_the_same() -> None:
    """The digest is of what it says itself."""
    goal = {"goal": "x", "tenant": "acme", "join": {"quorum": 2}}
    plain = taken_in(goal, None)
    assert isinstance(plain, JobSubmitted)
    assert plain.goal.digest == job(goal).goal.digest


def test_a_goal_that_contradicts_the_defaults_is_told_so() -> None:
    """With the tenant whose they are."""
    goal = {"goal": "x", "tenant": "acme", "join": {"candidates": 2, "strategy": "vote"}, "id": "j"}
    assert taken_in(goal, read(CONFIGURED)) == BadGoal(
        reason="with the defaults of tenant acme: `join`: the quorum is larger than the number of candidates",
        job="acme/j",
    )


@pytest.mark.parametrize(
    ("context", "chunk"), [(1_000, 4_096), (32_768, 49_152), (262_144, 262_144), (10_000_000, 262_144)]
)
def test_results_are_cut_to_the_context_of_the_model_that_joins_them(context: int, chunk: int) -> None:
    """Unless the goal says how."""
    text = f"""
        [models.a]
        [models.b]
        context_tokens = {context}
        [kinds.default]
        models = ["a"]
        [kinds.synthesis]
        models = ["b", "a"]
    """
    assert job({"goal": "x"}, text).goal.join.chunk_bytes == chunk
    assert job({"goal": "x", "model": "a"}, text).goal.join.chunk_bytes == JoinRule().chunk_bytes
    assert job({"goal": "x", "join": {"chunk_bytes": 5_000}}, text).goal.join.chunk_bytes == 5_000


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"deadline_s": -1}, [(("deadline_s",), "`deadline_s`: should be greater than 0")]),
        ({"join": {"near": 2}}, [(("join", "near"), "`join.near`: should be less than or equal to 1")]),
        ({"plan": []}, [(("plan",), "each goal has its own")]),
        ({"prio": 3}, [(("prio",), "`prio` is unknown, did you mean `priority`?")]),
        ({"hedge": {"share": 0.05}}, []),
    ],
)
def test_what_cannot_be_a_default(given: dict[str, Any], told: list[Any]) -> None:
    assert list(default_faults(given)) == told


def test_defaults_are_looked_at_when_the_file_is_read() -> None:
    """Each by itself, with its line; then all together."""
    one = "[defaults]\njoin = { quorum = 3 }\n[tenants.a.defaults]\n"
    for text, told in (
        (one + "deadline_s = 'soon'\n", "4: tenants.a.defaults.deadline_s is no default: `deadline_s`"),
        (one + "join = { candidates = 2 }\n", "3: tenants.a.defaults does not fit with all other defaults"),
    ):
        with pytest.raises(Exception, match=r"tenants\.a\.defaults") as raised:
            read_configuration(text, path="f", environment={}, goal_faults=default_faults)
        assert str(raised.value).startswith(f"f:{told}"), raised.value


def test_laying_objects_over_one_another() -> None:
    """Lists as a whole; null is nothing."""
    assert merged({"a": {"b": 1, "c": [1]}, "d": 1}, {"a": {"c": [2], "e": None}, "d": None}) == {
        "a": {"b": 1, "c": [2]},
        "d": 1,
    }
