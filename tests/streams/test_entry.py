"""Entry and the gate's rules at intake: who may submit for whom, and what no tenant's goals may say."""

import asyncio
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.configuration.patterns import pattern
from agents.configuration.tenants import EntryKey, EntryRules
from streams.core.events import Event, GoalRejected, JobCancelled, JobSubmitted
from streams.dead_letters import DeadLetter
from streams.entry import Entry, NotAdmitted, SigningKey, sign, signing_key
from streams.log import Headers, Record
from streams.wire.headers import SIGNATURE
from tests.agents.configuration.reading import read
from tests.streams.test_intake import Town, told

RULES = EntryRules(
    header="x-principal",
    principals={"User:ci": ("acme",), "User:root": ("*",)},
    keys={
        "acme": EntryKey(name="acme", secret="the key of acme", tenants=("acme",)),
        "workers": EntryKey(name="workers", secret="the key of workers", tenants=("*",)),
    },
    worker="workers",
)
ACME = SigningKey(name="acme", secret="the key of acme")
WORKERS = SigningKey(name="workers", secret="the key of workers")
GOAL = orjson.dumps({"goal": "x", "tenant": "acme", "id": "j"})


def record(value: bytes | None, headers: Headers) -> Record:
    return Record("goals", 0, 7, 0, b"k", value, headers)


def admitted(headers: Headers, tenant: str = "acme", value: bytes = GOAL) -> str:
    """Who sent it, or why it may not come in."""
    found = Entry(RULES).admitted(record(value, headers), tenant)
    return found.reason if isinstance(found, NotAdmitted) else found


@pytest.mark.parametrize(
    ("headers", "tenant", "by"),
    [
        ((("X-Principal", b"User:ci"),), "acme", "User:ci"),
        ((("x-principal", b"User:root"),), "other", "User:root"),
        (sign(GOAL, (), ACME), "acme", "acme"),
        (sign(GOAL, (("traceparent", b"1"),), ACME), "acme", "acme"),
        (sign(GOAL, (), WORKERS), "other", "workers"),
        ((("x-principal", b"User:nobody"), *sign(GOAL, (), ACME)), "acme", "acme"),
    ],
)
def test_who_comes_in(headers: Headers, tenant: str, by: str) -> None:
    """By the header of a gateway, or by a signature; either is enough."""
    assert admitted(headers, tenant) == by


@pytest.mark.parametrize(
    ("headers", "tenant", "reason"),
    [
        ((), "acme", "nothing says who sent it: it needs the header x-principal or a signature in"),
        ((("x-principal", b"User:ci"),), "other", "'User:ci' may not submit for the tenant other"),
        ((("x-principal", b"acme"),), "acme", "'acme' in the header x-principal is nobody known here"),
        ((("x-principal", b"User:ci"), ("x-principal", b"User:ci")), "acme", "it has 2 headers x-principal"),
        (sign(GOAL, (), ACME), "other", "'acme' may not submit for the tenant other"),
        (sign(b"another", (), ACME), "acme", "its signature is not that of the key 'acme' for this record"),
        (sign(GOAL, (), SigningKey(name="acme", secret="x")), "acme", "is not that of the key 'acme'"),
        (
            sign(GOAL, (), SigningKey(name="root", secret="x")),
            "acme",
            "of a key that nobody knows here, 'root'",
        ),
        (sign(GOAL, (), ACME) * 2, "acme", "it has 2 signatures"),
        (((SIGNATURE, None),), "acme", "of a key that nobody knows here, ''"),
        (((SIGNATURE, b"acme:\xff\xfe"),), "acme", "is not that of the key 'acme'"),
    ],
)
def test_who_does_not(headers: Headers, tenant: str, reason: str) -> None:
    """And why, without any secret."""
    told = admitted(headers, tenant)
    assert reason in told
    assert "the key of" not in told


SAID = st.lists(
    st.tuples(
        st.sampled_from(("content-type", "ce_id", "CE_Type", "anabranch-x", "other")), st.binary(max_size=4)
    ),
    max_size=4,
)


@given(
    st.binary(max_size=20),
    st.binary(max_size=20),
    SAID,
    SAID,
)
def test_a_signature_is_of_one_record(
    value: bytes, other: bytes, said: list[tuple[str, bytes]], others: list[tuple[str, bytes]]
) -> None:
    """Of its value and of the headers that say what that means; what else travels along is free."""

    def meant(headers: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
        return [(name.lower(), content) for name, content in headers if name != "other"]

    *_, signature = sign(value, tuple(said), ACME)
    same = (value, meant(said)) == (other, meant(others))
    assert (admitted((*others, signature), "acme", other) == "acme") is same


def test_a_signature_can_be_made_by_hand() -> None:
    """As docs/security.md says: printf and openssl."""
    (header,) = sign(b'{"goal": "x"}', (), SigningKey(name="ci", secret="0123456789abcdef"))
    assert header == (
        SIGNATURE,
        b"ci:65a019ce0f0b0ec4a739a85f7c987bfa440cf8a27ecb63cbcb34e6e8a6d7504e",
    )


def test_a_key_is_a_name_and_a_secret() -> None:
    assert signing_key(" ci:a:b ") == SigningKey(name="ci", secret="a:b")
    for text in ("ci", "ci:", ":secret", ""):
        with pytest.raises(ValueError, match="NAME:SECRET"):
            signing_key(text)


def test_without_rules_everybody_comes_in() -> None:
    assert Entry(None).admitted(record(GOAL, ()), "acme") == ""


def test_a_worker_signs_what_its_sub_agents_submit() -> None:
    """And only a worker may say which call waits for the answer, whatever a gateway says."""
    entry = Entry(RULES)
    ours = record(GOAL, entry.sign(GOAL))
    assert entry.admitted(ours, "any", only_workers=True) == "workers"
    for headers in (sign(GOAL, (), ACME), (("x-principal", b"User:root"),)):
        found = entry.admitted(record(GOAL, headers), "acme", only_workers=True)
        assert isinstance(found, NotAdmitted)
    assert Entry(None).sign(GOAL, (("a", b"b"),)) == (("a", b"b"),)


CONFIGURED = """
    [entry]
    header = "x-principal"
    [entry.principals]
    "User:ci" = ["acme"]
    "User:other" = ["other"]
    [tenants.acme.gate]
    longest = 40
    refuse = [{ pattern = "(?i)pay-?roll", reason = "payroll stays in HR" }]
"""
CI: Headers = (("x-principal", b"User:ci"),)


def taken_in(*goals: tuple[object, Headers]) -> tuple[list[Event], list[DeadLetter]]:
    """What comes of these records."""
    found: list[Any] = []

    async def story(there: Town) -> None:
        for goal, headers in goals:
            there.send(goal, headers=headers)
        there.start()
        await asyncio.sleep(5)
        assert there.taken() == len(goals)
        found.extend((there.events(), there.buried()))

    told(story, configured=read(CONFIGURED))
    return found[0], found[1]


def test_of_a_goal_that_may_not_come_in_no_job_hears() -> None:
    """Its id may be another tenant's job, or one that is to be."""
    other: Headers = (("x-principal", b"User:other"),)
    events, buried = taken_in(
        ({"goal": "x", "tenant": "acme", "id": "mine"}, CI),
        ({"goal": "y", "tenant": "acme", "id": "mine"}, other),
        ({"goal": "y", "tenant": "acme", "id": "not-yet"}, other),
        ({"goal": "", "tenant": "acme", "id": "not-yet"}, other),
        ({"cancel": "acme/mine"}, other),
        ({"goal": "x"}, CI),
    )
    assert [(type(event), event.job) for event in events] == [(JobSubmitted, "acme/mine")]
    assert len(buried) == 5
    assert all(letter.reason.startswith("not admitted: ") for letter in buried)
    assert buried[0].headers == other


def test_who_may_not_submit_for_the_parent_cannot_answer_it() -> None:
    """Nor name one of its calls, which only workers do."""
    events, buried = taken_in(
        ({"goal": "x", "tenant": "acme", "parent": "acme/up"}, CI),
        ({"goal": "x", "tenant": "acme", "parent": "other/up"}, CI),
        ({"goal": "x", "tenant": "acme", "parent": {"job": "acme/up", "task": "t", "call": "c"}}, CI),
    )
    (event,) = events
    assert isinstance(event, JobSubmitted)
    assert event.goal.parent == "acme/up"
    assert ["tenant other" in buried[0].reason, "only workers" in buried[1].reason] == [True, True]


def test_a_word_of_somebody_known_bears_the_name() -> None:
    """And not the one that it claims."""
    (event,), _ = taken_in(({"cancel": "acme/j", "by": "the boss"}, CI))
    assert isinstance(event, JobCancelled)
    assert event.by == "User:ci"


def test_a_signature_does_not_come_back() -> None:
    """Other headers of the goal do."""
    headers: Headers = (*CI, ("traceparent", b"1"), (SIGNATURE, b"acme:00"))
    events, _ = taken_in(
        ({"goal": "x", "tenant": "acme"}, headers), ({"goal": " ", "tenant": "acme"}, headers)
    )
    for event in events:
        assert isinstance(event, JobSubmitted | GoalRejected)
        assert [header.name for header in event.headers] == ["x-principal", "traceparent"]


@pytest.mark.parametrize(
    ("goal", "reason"),
    [
        ({"goal": "Read the PAYROLL"}, "payroll stays in HR"),
        ({"goal": "Read", "plan": [{"id": "a", "goal": "the pay-roll"}]}, "payroll stays in HR"),
        ({"goal": "x" * 41}, "the goal has 41 characters, and its tenant's may have 40"),
    ],
)
def test_the_gates_rules_refuse_a_goal_by_its_words(goal: dict[str, Any], reason: str) -> None:
    """Those of a plan that it brings are among them. It is answered, and a dead letter, too."""
    events, (letter,) = taken_in(({"id": "j", "tenant": "acme", **goal}, CI))
    (event,) = events
    assert isinstance(event, GoalRejected)
    assert (event.job, event.rule, event.reason, letter.reason) == ("acme/j", "gate", reason, reason)


def test_the_gate_of_one_tenant_is_not_anothers() -> None:
    events, _ = taken_in(({"goal": "Read the payroll", "tenant": "other"}, (("x-principal", b"User:other"),)))
    assert [type(event) for event in events] == [JobSubmitted]


def test_a_pattern_takes_time_that_is_linear_in_the_text() -> None:
    """Python's own would not come back within the age of the world."""
    assert not pattern("(a+)+$")("a" * 100_000 + "b")
