"""What must hold for every request, every goal and every load."""

import itertools
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.simulator import Behaviour, LogNormal
from agents.simulator.chance import Repetitions, draw
from agents.simulator.limits import Account
from agents.simulator.prefix_cache import BLOCK_TOKENS, BYTES_A_TOKEN, PrefixCache
from agents.simulator.window import Window
from tests.agents.simulator.conftest import Say

WORDS = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "Zs"), include_characters=",.;:-?!\n"), max_size=80
)
GOALS = st.one_of(
    WORDS,
    st.lists(st.sampled_from(["Compare", "a", "b", "plan", "the", "and", ",", ". ", "then", "of", "or"])).map(
        " ".join
    ),
)
SCALARS = st.one_of(st.integers(0, 10**6), st.booleans(), WORDS)
NAMES = st.text("abcdefgh", min_size=1, max_size=6)
LOADS = st.lists(st.tuples(st.floats(0, 20), st.integers(1, 50)), max_size=60)


@given(
    goal=GOALS,
    given_input=st.one_of(st.none(), WORDS, st.lists(SCALARS, max_size=8), st.dictionaries(NAMES, SCALARS)),
    most=st.integers(1, 100),
    again=st.booleans(),
)
def test_a_plan_can_be_admitted(say: Say, *, goal: str, given_input: Any, most: int, again: bool) -> None:
    """Distinct ids, known dependencies, no cycle, within the limit, and no item of the input dropped."""
    data: dict[str, Any] = {"goal": goal, "max_subtasks": most, "tools": []}
    if given_input is not None:
        data["input"] = given_input
    if isinstance(given_input, list):
        data["items"] = len(given_input)
    more = [{"role": "assistant", "content": "x"}, {"role": "user", "content": '{"refused": ["y"]}'}]
    plan = orjson.loads(say("planner", data, more if again else ()).text or "")
    assert 1 <= len(plan) <= most
    _admit(plan)
    roots = [entry for entry in plan if not entry["dep"]]
    if given_input is None:
        assert not any("input" in entry for entry in plan)
    elif isinstance(given_input, list) and given_input:
        assert [entry.get("input") for entry in plan] == ["each"]
    else:
        assert all(entry["input"] == "all" for entry in roots)


def _admit(plan: list[dict[str, Any]]) -> None:
    known: set[str] = set()
    for entry in plan:
        assert entry["id"] not in known | {"plan", "answer", ""}
        assert set(entry["dep"]) <= known  # so there is no cycle either
        known.add(entry["id"])


@given(
    shape=st.sampled_from(["plan {}", "chain {}", "join {}", "noop {}", "chain {} noop", "diamond"]),
    number=st.integers(1, 30),
    items=st.integers(0, 60),
)
def test_a_shape_drops_no_item(say: Say, shape: str, number: int, items: int) -> None:
    """However the sub-tasks and the items of the input relate, each item is in just one share."""
    data = {"goal": f"[[{shape.format(number)}]] go", "input": ["cut short"], "items": items}
    plan = orjson.loads(say("planner", data).text or "")
    _admit(plan)
    shares = [entry["input"] for entry in plan if isinstance(entry.get("input"), list)]
    assert [k for first, last in shares for k in range(first, last + 1)] == list(range(items))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from itertools.chain.from_iterable(_leaves(v) for v in value.values())
    elif isinstance(value, list):
        yield from itertools.chain.from_iterable(_leaves(v) for v in value)
    else:
        yield value


@given(
    items=st.lists(st.dictionaries(NAMES, SCALARS, max_size=3), max_size=6),
    names=st.lists(NAMES, min_size=6, max_size=6, unique=True),
    outputs=st.lists(st.dictionaries(NAMES, SCALARS, max_size=4) | SCALARS, min_size=12, max_size=12),
    max_tokens=st.sampled_from([40, 4096]),
)
def test_a_sub_agent_answers_for_every_item_and_from_nothing_else(
    say: Say, items: list[Any], names: list[str], outputs: list[Any], max_tokens: int
) -> None:
    """It calls each tool for each item that it can, once, then tells all that came back and no more."""
    items = [{**item, "name": name} for item, name in zip(items, names, strict=False)]
    data = {"goal": "go", "kind": "extract", "input": items, "results": []}
    tools = [
        {"type": "function", "function": {"name": tool, "parameters": {"required": ["name"]}}}
        for tool in ("first", "second")
    ]
    told = iter(outputs)
    calls: list[tuple[str, str]] = []
    more: list[dict[str, Any]] = []
    seen: list[Any] = []
    while (reply := say("sub-agent", data, more, tools=tools, max_tokens=max_tokens)).calls:
        assert reply.finish_reason == "tool_calls"
        asked = [
            {"id": c, "type": "function", "function": {"name": name, "arguments": arguments}}
            for c, name, arguments in reply.calls
        ]
        more.append({"role": "assistant", "content": None, "tool_calls": asked})
        for call, name, arguments in reply.calls:
            calls.append((name, orjson.loads(arguments)["name"]))
            seen.append(next(told))
            more.append({"role": "tool", "tool_call_id": call, "content": orjson.dumps(seen[-1]).decode()})
    assert calls == [(tool, item["name"]) for item in items for tool in ("first", "second")]
    if not items:
        assert (reply.text or "").startswith("(simulated) ")
    elif reply.finish_reason == "stop":
        answer = orjson.loads(reply.text or "")
        answers = answer["items"] if len(items) > 1 else [answer]
        assert len(answers) == len(items)
        for k, (item, told_of_it) in enumerate(zip(items, answers, strict=True)):
            returned = list(_leaves(seen[2 * k : 2 * k + 2]))
            assert all(leaf in _leaves(told_of_it) for leaf in returned)
            assert all(leaf in [*_leaves(item), *returned] for leaf in _leaves(told_of_it))


@given(
    role=st.sampled_from(["planner", "sub-agent", "synthesis", "someone"]),
    goal=GOALS,
    results=st.lists(
        st.fixed_dictionaries(
            {"task": NAMES, "outcome": st.sampled_from(["succeeded", "failed"])},
            optional={
                "result": st.one_of(WORDS, st.dictionaries(NAMES, SCALARS | st.lists(SCALARS))),
                "reason": WORDS,
            },
        ),
        max_size=6,
    ),
    max_tokens=st.integers(1, 400),
    json_object=st.booleans(),
)
def test_no_reply_is_longer_than_allowed(
    say: Say, *, role: str, goal: str, results: list[Any], max_tokens: int, json_object: bool
) -> None:
    """A reply that had to be cut says so; another one is whole."""
    data = {"goal": goal, "results": results}
    form = {"response_format": {"type": "json_object"}} if json_object else {}
    whole = say(role, data, max_tokens=10**6, **form)
    reply = say(role, data, max_tokens=max_tokens, **form)
    assert reply.tokens <= max_tokens
    assert len((reply.text or "").encode()) <= BYTES_A_TOKEN * max_tokens
    assert whole.finish_reason == "stop"
    if json_object:
        assert isinstance(orjson.loads(whole.text or ""), dict)
    if role != "synthesis":  # which makes its table narrower first
        assert (reply.finish_reason == "stop") == (whole.tokens <= max_tokens)


@given(loads=LOADS)
def test_a_window_forgets_neither_too_early_nor_much_too_late(loads: list[tuple[float, int]]) -> None:
    """Its sum lies between the exact one, and that over a span longer by one slot."""
    window = Window(60.0, 600)
    now, past = 1_000.0, list[tuple[float, int]]()
    for pause, amount in loads:
        now += pause
        window.add(now, amount)
        past.append((now, amount))
        exact = sum(a for t, a in past if t > now - 60.0)
        longer = sum(a for t, a in past if t > now - 60.2)
        assert exact <= window.total(now) <= longer
        assert window.total(now) <= window.most


@given(loads=LOADS, requests=st.integers(1, 20), tokens=st.integers(50, 400))
def test_no_minute_exceeds_the_limits(loads: list[tuple[float, int]], requests: int, tokens: int) -> None:
    """And who waits as long as told gets in."""
    account = Account(Behaviour(requests_per_minute=requests, tokens_per_minute=tokens))
    now, taken = 1_000.0, list[tuple[float, int]]()
    for pause, amount in loads:
        now += pause
        over = account.admit(now, in_flight=0, tokens=amount)
        if over is not None:
            now += over.wait_s + 1e-6
            assert account.admit(now, in_flight=0, tokens=amount) is None or over.limit == "requests"
            if over.limit == "requests":
                continue
        taken.append((now, amount))
        minute = [a for t, a in taken if t > now - 60.0]
        assert len(minute) <= requests
        assert sum(minute) <= tokens


@given(first=st.binary(max_size=2_000), shared=st.integers(0, 2_000), rest=st.binary(max_size=2_000))
def test_cached_is_what_two_conversations_share_from_the_beginning(
    first: bytes, shared: int, rest: bytes
) -> None:
    """In whole blocks, and never all of a conversation."""
    second = first[:shared] + rest
    common = sum(
        1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    )
    cache = PrefixCache()
    assert cache.note(first) == 0
    size = BLOCK_TOKENS * BYTES_A_TOKEN
    blocks = min(common // size, max(0, len(first) - 1) // size, max(0, len(second) - 1) // size)
    assert cache.note(second) == blocks * BLOCK_TOKENS


def test_a_full_cache_keeps_what_is_used() -> None:
    """What is shared at the beginning stays, the ends of old conversations go."""
    cache = PrefixCache(blocks=4)
    size = BLOCK_TOKENS * BYTES_A_TOKEN
    shared = b"s" * size
    for k in range(20):
        cached = cache.note(shared + bytes([k]) * 3 * size)
        assert cached == (BLOCK_TOKENS if k else 0)
    assert cache.note(shared + bytes([0]) * 3 * size) == BLOCK_TOKENS


def test_a_conversation_is_forgotten_from_its_end() -> None:
    """Without its beginning the rest would be of no use."""
    cache = PrefixCache(blocks=4)
    size = BLOCK_TOKENS * BYTES_A_TOKEN
    old = b"".join(bytes([k]) * size for k in range(5))
    cache.note(old)
    cache.note(b"n" * (2 * size + 1))
    assert cache.note(old) == 2 * BLOCK_TOKENS


def test_a_block_counts_in_its_place_only() -> None:
    """The same words after other words are something else to a model."""
    cache = PrefixCache()
    size = BLOCK_TOKENS * BYTES_A_TOKEN
    cache.note(b"a" * size + b"b" * size + b".")
    assert cache.note(b"b" * size + b"a" * size + b".") == 0


@given(st.integers(), st.text(max_size=40), st.integers(0, 100))
def test_chance_lies_between_0_and_1(seed: int, digest: str, nth: int) -> None:
    """Both excluded, or a log-normal latency could be endless; and each purpose has its own."""
    chance = draw(seed, digest, nth, "failure")
    assert 0 < chance < 1
    assert chance == draw(seed, digest, nth, "failure") != draw(seed, digest, nth, "latency")


def test_drawn_latencies_have_their_quantiles() -> None:
    """Over many calls, half stay below p50, and 99 of 100 below p99."""
    latency = LogNormal(p50=0.38, p99=1.12)
    drawn = sorted(latency.draw(draw(0, str(k), 0, "latency")) for k in range(4_000))
    assert drawn[2_000] == pytest.approx(0.38, rel=0.03)
    assert drawn[3_960] == pytest.approx(1.12, rel=0.08)


@given(st.lists(st.sampled_from("abc"), max_size=30))
def test_repetitions_are_counted(digests: list[str]) -> None:
    """Each for itself."""
    repetitions = Repetitions()
    assert [repetitions.note(d) for d in digests] == [digests[:k].count(d) for k, d in enumerate(digests)]


def test_repetitions_are_bounded() -> None:
    """What was seen longest ago is forgotten."""
    repetitions = Repetitions(capacity=2)
    assert [repetitions.note(d) for d in "abacba"] == [0, 0, 1, 0, 0, 0]
