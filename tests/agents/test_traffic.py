"""Models that misbehave, as stories: who is asked when, what is made of it, and what a transcript is told."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.configuration.values import Endpoint, Kind, ModelSettings, one_endpoint
from agents.models.breaker import EARLY_S, OPEN_S
from agents.models.concurrency import START
from agents.models.deadlines import ENOUGH, SHORTEST_S
from agents.models.decisions import RULES
from agents.models.faults import RETRY
from agents.models.not_now import NotNow
from agents.models.purse import EARLIER_S
from agents.models.retry import MAX_TRIES, PatientModel
from agents.models.traffic import Traffic
from agents.ports import ModelError, ModelReply, ModelRequest
from streams.core.backoff import LONGEST_S
from streams.memory_log.virtual_time import run
from tests.agents.scripted_client import REQUEST, Client, configuration, reply
from tests.agents.test_rates import most
from tests.agents.timed_attempt import TimedAttempt

T = TypeVar("T")

A = Endpoint(name="a", base_url="http://a/v1", keys=("key-1",), key_variables=("A_KEY",))
B = Endpoint(name="b", base_url="http://b/v1", keys=("key-b",), key_variables=("B_KEY",))

OVERLOADED = {"error": {"type": "engine_overloaded_error", "message": "The engine is currently overloaded"}}
SLOW_DOWN = {"error": {"type": "rate_limit_reached_error", "message": "slow down"}}
BAD_KEY = {"error": {"type": "invalid_authentication_error", "message": "Invalid Authentication"}}
QUOTA = {"error": {"type": "exceeded_current_quota_error", "message": "quota"}}


class Stage:
    """Endpoints of a configuration, and everything that calls them."""

    def __init__(self, *clients: Client, **more: Any) -> None:
        endpoints = [client.faults._endpoint for client in clients]
        self.traffic = Traffic(
            configuration(*endpoints, **more),
            {endpoint.name: client for endpoint, client in zip(endpoints, clients, strict=True)},
        )
        self.patient = PatientModel(self.traffic)

    async def ask(
        self, request: ModelRequest = REQUEST, *, attempt: TimedAttempt | None = None
    ) -> tuple[ModelReply | ModelError, TimedAttempt]:
        """One call: its reply or its error, and the attempt that made it."""
        attempt = attempt or TimedAttempt()
        try:
            return await self.patient.ask(request, attempt), attempt
        except ModelError as error:
            return error, attempt
        finally:
            attempt.end()

    async def ask_all(self, count: int, **attempt: Any) -> list[tuple[ModelReply | ModelError, TimedAttempt]]:
        """So many calls at once, each of an attempt of its own."""
        return await asyncio.gather(*(self.ask(attempt=TimedAttempt(**attempt)) for _ in range(count)))


def story(told: Callable[[], Awaitable[T]]) -> T:
    """Run it on virtual time."""

    async def begin() -> T:
        return await told()

    return run(begin())


def test_every_kind_of_error_has_a_rule() -> None:
    """Those of the client among them; what may succeed later is tried again, the rest is not."""
    assert RETRY.keys() <= RULES.keys()
    for kind, retry in RETRY.items():
        assert (RULES[kind].decision in ("retry", "elsewhere")) == retry


def test_an_overloaded_model_is_left_alone_and_nobody_fails() -> None:
    """Five failures open the breaker for 30 s; the other model takes over; then one call tries the first."""

    async def told() -> None:
        a, b = Client(A), Client(B, reply(), latency_s=0.1)
        a.turns = [a.http(429, OVERLOADED)]
        stage = Stage(a, b)
        ended = await stage.ask_all(50)
        assert all(isinstance(each, ModelReply) and each.endpoint == "b" for each, _ in ended)
        asked = len(a.calls)
        decisions = {error for _, attempt in ended for error in attempt.errors}
        assert ("overloaded", "a", "a", "elsewhere") in decisions
        opened = a.moments[-1]
        while asyncio.get_running_loop().time() < opened + OPEN_S:
            assert len(a.calls) == asked
            await stage.ask()
            await asyncio.sleep(1)
        a.turns = [reply("a is back")]
        a.latency_s = 1.0
        ended = await stage.ask_all(10)
        assert len(a.calls) == asked + 1  # one probe; the others did not wait for it
        told = [each.endpoint for each, _ in ended if isinstance(each, ModelReply)]
        assert sorted(told) == ["a"] + ["b"] * 9
        answered, _ = await stage.ask()
        assert isinstance(answered, ModelReply)
        assert answered.endpoint == "a"

    story(told)


def test_where_nobody_can_take_over_the_half_open_moment_is_waited_for() -> None:
    """No slot is held meanwhile, and no call is made but the one that tries."""

    async def told() -> None:
        a = Client(replace(A, concurrency=1))
        a.turns = [*[a.http(429, OVERLOADED)] * 5, reply()]
        stage, slots = Stage(a), asyncio.Semaphore(3)
        waiting = asyncio.ensure_future(stage.ask_all(20, slots=slots))
        await asyncio.sleep(OPEN_S / 2)
        assert len(a.calls) == 5
        assert slots._value == 3
        ended = await waiting
        assert all(isinstance(each, ModelReply) for each, _ in ended)
        assert a.moments[5] >= a.moments[4] + OPEN_S

    story(told)


def test_who_has_no_time_for_that_tries_sooner() -> None:
    """An endpoint that was away for a moment fails nobody who has nine seconds."""

    async def told() -> None:
        a = Client(replace(A, concurrency=1))
        a.turns = [*[a.http(503, OVERLOADED)] * 7, reply()]
        ended = await Stage(a).ask_all(20, time_s=9.0)
        assert all(isinstance(each, ModelReply) for each, _ in ended)
        tries = a.moments[4:8]
        assert all(later - earlier >= EARLY_S for earlier, later in pairwise(tries))

    story(told)


def test_a_breaker_that_never_closes_is_bounded_by_the_attempts_time() -> None:
    """The error names what was asked last, and may be retried by the next attempt."""

    async def told() -> None:
        a = Client(A)
        a.turns = [a.http(429, OVERLOADED)]
        error, attempt = await Stage(a).ask()
        assert isinstance(error, ModelError)
        assert (error.kind, error.retry, error.endpoint, error.decision) == (
            "overloaded",
            True,
            "a",
            "give_up",
        )
        assert attempt.left() < LONGEST_S
        assert len(a.calls) < 15

    story(told)


def test_a_provider_that_says_how_long_is_obeyed() -> None:
    """At least two seconds, without a slot, and not as a failed try."""

    async def told() -> None:
        a = Client(A)
        a.turns = [*[a.http(429, SLOW_DOWN, {"Retry-After": "2"})] * 10, reply()]
        stage, slots = Stage(a), asyncio.Semaphore(1)
        attempt = TimedAttempt(slots=slots)
        asked = asyncio.ensure_future(stage.ask(attempt=attempt))
        await asyncio.sleep(1)
        assert slots._value == 1
        answered, _ = await asked
        assert isinstance(answered, ModelReply)
        assert all(later - earlier >= 2 for earlier, later in pairwise(a.moments))
        assert len(a.calls) == 11 > MAX_TRIES
        assert attempt.errors == [("rate_limited", "a", "a", "retry")] * 10

    story(told)


@pytest.mark.parametrize(("asked", "calls"), [("2", 2), ("6", 1)])
def test_the_second_refusal_holds_all_others_back(asked: str, calls: int) -> None:
    """One may be a single call's bad luck; where the wait is long it is none."""

    async def told() -> None:
        a = Client(replace(A, concurrency=1), latency_s=0.01)
        a.turns = [*[a.http(429, SLOW_DOWN, {"Retry-After": asked})] * calls, reply()]
        ended = await Stage(a).ask_all(10)
        assert all(isinstance(each, ModelReply) for each, _ in ended)
        assert a.moments[calls] - a.moments[calls - 1] >= float(asked)

    story(told)


def test_a_thousand_calls_to_an_endpoint_that_misbehaves() -> None:
    """One in twenty is refused, others fail or hang: all but a few succeed, and the account is used."""

    async def told() -> None:
        account = replace(A, requests_per_minute=1_200, concurrency=50)
        a, chance = Client(account, latency_s=0.4), Random(1)  # noqa: S311 - a story

        def next_turn() -> ModelReply | ModelError:
            drawn = chance.random()
            if drawn < 0.05:
                return a.faults.error("rate_limited", "slow down", wait_s=1.0)
            if drawn < 0.09:
                return a.faults.error("malformed" if drawn < 0.07 else "server_error", "broken")
            return reply()

        a.turns = [next_turn]
        a.hangs = lambda: chance.random() < 0.01
        ended = await Stage(a).ask_all(1_000, slots=asyncio.Semaphore(100))
        assert sum(isinstance(each, ModelReply) for each, _ in ended) >= 995
        assert asyncio.get_running_loop().time() < 100
        assert most(a.moments, 60) <= 1_200
        assert most(a.moments, 1) <= 20
        assert a.most <= 50

    story(told)


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After-Ms": "3000"},
        {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "3"},
        {"X-RateLimit-Remaining-Requests": "0", "X-RateLimit-Reset-Requests": "3s"},
    ],
)
def test_waits_in_headers(headers: dict[str, str]) -> None:
    """However the provider says it."""

    async def told() -> None:
        a = Client(A)
        a.turns = [a.http(429, SLOW_DOWN, headers), reply()]
        await Stage(a).ask()
        assert a.moments[1] >= 3

    story(told)


def test_a_wait_that_stands_only_in_the_words() -> None:
    """Moonshot's own."""

    async def told() -> None:
        a = Client(A)
        body = {"error": {"type": "rate_limit_reached_error", "message": "try again after 3 seconds"}}
        a.turns = [a.http(429, body), reply()]
        await Stage(a).ask()
        assert a.moments[1] >= 3

    story(told)


def test_a_provider_that_asks_for_long_is_left_for_another_model() -> None:
    """And for a short one is waited for."""

    async def told() -> None:
        for asked, endpoints in (("60", ["a", "b"]), ("2", ["a", "a"])):
            a, b = Client(A), Client(B, reply())
            a.turns = [a.http(429, SLOW_DOWN, {"Retry-After": asked}), reply()]
            answered, attempt = await Stage(a, b).ask()
            assert isinstance(answered, ModelReply)
            assert ["a", answered.endpoint] == endpoints
            assert attempt.errors[0][3] == ("elsewhere" if asked == "60" else "retry")

    story(told)


def test_a_refused_key_gives_way_to_the_next_and_with_the_last_the_endpoint_is_out() -> None:
    """No key is asked again; the words name the variable and never the key."""

    async def told() -> None:
        both = replace(A, keys=("key-1", "key-2"), key_variables=("A_KEY_1", "A_KEY_2"))
        a, b = Client(both), Client(B, reply())
        a.turns = [a.http(401, BAD_KEY)]
        stage = Stage(a, b)
        answered, attempt = await stage.ask()
        assert isinstance(answered, ModelReply)
        assert [key for _, _, key, _ in a.calls] == ["key-1", "key-2"]
        assert attempt.errors == [("bad_key", "a", "a", "endpoint_out")] * 2
        assert attempt.calls[-1] == attempt.calls[0]  # nobody waited
        await stage.ask_all(10)
        assert len(a.calls) == 2

        b.turns = [b.http(401, BAD_KEY)]
        error, attempt = await stage.ask()
        assert isinstance(error, ModelError)
        assert attempt.errors == [("bad_key", "b", "b", "fatal")]
        assert (error.kind, error.retry) == ("bad_key", False)
        assert "B_KEY" in error.reason
        ended = await stage.ask_all(10)
        assert (len(a.calls), len(b.calls)) == (2, 12)
        for late, _ in ended:
            assert isinstance(late, ModelError)
            assert (late.kind, late.retry, late.decision) == ("bad_key", False, "fatal")
            assert "A_KEY" in late.reason
            assert "key-" not in late.reason

    story(told)


@pytest.mark.parametrize(
    ("kind", "status", "body"),
    [
        ("quota", 403, QUOTA),
        ("quota", 402, {"error": {"message": "payment required"}}),
        ("quota", 429, {"error": {"type": "insufficient_quota", "message": "you exceeded your quota"}}),
        ("misconfigured", 200, "<html>login</html>"),
        ("misconfigured", 404, "<html>nothing here</html>"),
        ("no_such_model", 404, {"error": {"code": "model_not_found", "message": "no model a-id"}}),
    ],
)
def test_what_is_out_is_asked_once_and_another_model_takes_over(kind: str, status: int, body: Any) -> None:
    """Without another one the call fails with that reason, at once and without a storm of retries."""

    async def told() -> None:
        a, b = Client(A), Client(B, reply())
        a.turns = [a.http(status, body)]
        stage = Stage(a, b)
        for _ in range(5):
            answered, _ = await stage.ask()
            assert isinstance(answered, ModelReply)
            assert answered.endpoint == "b"
        assert len(a.calls) == 1

        alone = Client(A)
        alone.turns = [alone.http(status, body)]
        stage = Stage(alone)
        errors = [await stage.ask() for _ in range(3)]
        for error, attempt in errors:
            assert isinstance(error, ModelError)
            assert (error.kind, error.retry, error.decision) == (kind, False, "fatal")
            assert attempt.errors == [(kind, "a", "a", "fatal")]
            assert attempt.calls == [0.0]
        assert len(alone.calls) == 1

    story(told)


@pytest.mark.parametrize("kind", ["content_filter", "bad_request", "context_exceeded"])
def test_what_only_this_sub_task_can_mend_goes_nowhere_else(kind: str) -> None:
    """One call, no other model, and neither the model nor its endpoint is worse off for it."""

    async def told() -> None:
        a, b = Client(A), Client(B, reply())
        a.turns = [lambda: a.faults.error(kind, "no")]
        stage = Stage(a, b)
        for _ in range(10):
            error, attempt = await stage.ask()
            assert isinstance(error, ModelError)
            assert attempt.errors == [(kind, "a", "a", "give_up")]
        assert (len(a.calls), len(b.calls)) == (10, 0)

    story(told)


def test_a_hanging_call_is_made_elsewhere() -> None:
    """Once it is known what such calls take, none has the attempt's whole time."""

    async def told() -> None:
        a, b = Client(A, reply(), latency_s=0.5), Client(B, reply())
        stage = Stage(a, b)
        for _ in range(ENOUGH):
            await stage.ask()
        a.turns = [None]
        answered, attempt = await stage.ask()
        assert isinstance(answered, ModelReply)
        assert attempt.errors == [("timeout", "a", "a", "elsewhere")]
        assert attempt.calls[1] - attempt.calls[0] == SHORTEST_S
        assert a.calls[0][3] == 120 - EARLIER_S

    story(told)


def test_a_call_that_hangs_from_the_beginning_is_found_by_those_after_it() -> None:
    """It began when nothing was known of what such calls take."""

    async def told() -> None:
        a = Client(A)
        a.turns = [None, reply()]
        stage = Stage(a)
        hanging = asyncio.ensure_future(stage.ask())
        await asyncio.sleep(1)
        await stage.ask_all(ENOUGH)
        answered, attempt = await hanging
        assert isinstance(answered, ModelReply)
        assert attempt.errors == [("timeout", "a", "a", "retry")]
        assert attempt.calls[1] < SHORTEST_S + 2

    story(told)


def test_an_endpoint_that_has_become_slow_is_given_time() -> None:
    """Each end of patience makes it longer, so that not all calls are cut for ever."""

    async def told() -> None:
        a = Client(A, reply(), latency_s=0.5)
        stage = Stage(a)
        for _ in range(ENOUGH):
            await stage.ask()
        a.latency_s = 30.0
        a.turns = [None]
        for _ in range(20):
            await stage.ask(attempt=TimedAttempt(time_s=300.0))
        assert a.calls[-1][3] > 30

    story(told)


def test_all_models_take_turns_before_one_is_asked_again() -> None:
    """Connections that fail at both: each once without a pause, then again after one; five tries in all."""

    async def told() -> None:
        a, b = Client(A), Client(B)
        a.turns = [lambda: a.faults.error("connection", "gone")]
        b.turns = [lambda: b.faults.error("connection", "gone")]
        error, attempt = await Stage(a, b).ask(attempt=TimedAttempt(chance=1.0))
        assert isinstance(error, ModelError)
        assert [model for _, _, model, _ in attempt.errors] == ["a", "b", "a", "b", "a"]
        decisions = [decision for *_, decision in attempt.errors]
        assert decisions == ["elsewhere", "retry", "elsewhere", "retry", "give_up"]
        assert attempt.calls == [0, 0, 1, 1, 3]

    story(told)


def test_the_keys_limits_add_up() -> None:
    """Two keys of 60 calls a minute: 120 a minute, each key within its own."""

    async def told() -> None:
        both = replace(A, keys=("key-1", "key-2"), requests_per_minute=60)
        a = Client(both, reply(), latency_s=0.01)
        ended = await Stage(a).ask_all(110, time_s=120.0)
        assert all(isinstance(each, ModelReply) for each, _ in ended)
        assert max(a.moments) < 65
        for key in both.keys:
            mine = [moment for moment, _, used, _ in a.calls if used == key]
            assert most(mine, 60) <= 60
            assert most(mine, 1) == 1

    story(told)


def test_a_limited_key_rests_while_the_other_goes_on() -> None:
    """It is used again when its wait is over."""

    async def told() -> None:
        both = replace(A, keys=("key-1", "key-2"))
        a = Client(both)
        a.turns = [a.http(429, SLOW_DOWN, {"Retry-After": "20"}), reply()]
        stage = Stage(a)
        answered, attempt = await stage.ask()
        assert isinstance(answered, ModelReply)
        assert attempt.calls == [0, 0]
        for _ in range(4):
            await stage.ask()
        assert {key for _, _, key, _ in a.calls[1:]} == {"key-2"}
        await asyncio.sleep(20)
        for _ in range(2):
            await stage.ask()
        assert {key for _, _, key, _ in a.calls[-2:]} == {"key-1", "key-2"}

    story(told)


@settings(max_examples=20)
@given(
    limit=st.integers(30, 400),
    share=st.sampled_from([1.0, 0.5, 0.25]),
    tokens=st.sampled_from([None, 20_000, 60_000]),
    slots=st.integers(1, 30),
)
def test_what_leaves_is_within_the_accounts_limits(
    limit: int, share: float, tokens: int | None, slots: int
) -> None:
    """By the second, by the minute and at once, whatever waits; nobody fails for it, and all is used."""

    async def told() -> None:
        account = replace(A, requests_per_minute=limit, tokens_per_minute=tokens, concurrency=20)
        a = Client(account, reply(tokens=100), latency_s=0.7)
        stage = Stage(a)
        stage.traffic.share(share)
        ended = await stage.ask_all(60, time_s=3_600.0, slots=asyncio.Semaphore(slots))
        assert all(isinstance(each, ModelReply) for each, _ in ended)
        assert most(a.moments, 60) <= limit * share
        assert most(a.moments, 1) <= max(1, math.ceil(limit / 60) * share)
        assert a.most <= 20 * share
        if tokens is not None:
            assert most(a.moments, 60) * 100 <= tokens * share

    story(told)


@pytest.mark.parametrize("account", [replace(A, requests_per_minute=30), replace(A, concurrency=1)])
def test_who_came_first_goes_first(account: Endpoint) -> None:
    """Also before those who come with a slot in the moment when a turn is there."""

    async def told() -> None:
        stage = Stage(Client(account, reply(), latency_s=1.0))
        came: list[int] = []
        went: list[int] = []

        async def one(number: int) -> None:
            await asyncio.sleep(number // 2)
            came.append(number)
            await stage.ask(attempt=TimedAttempt(time_s=600))
            went.append(number)

        await asyncio.gather(*(one(number) for number in range(30)))
        assert went == came

    story(told)


def test_nobody_jumps_the_line() -> None:
    """Who comes in the very moment when a turn is free goes behind those who wait for it."""

    async def told() -> None:
        stage = Stage(Client(replace(A, concurrency=1), reply()))
        take = partial(stage.traffic.take, REQUEST, avoid=frozenset(), ends=math.inf)
        permit = take(ticket=None)
        waiting = asyncio.ensure_future(stage.ask())
        await asyncio.sleep(1)
        stage.traffic.give_back(permit)
        with pytest.raises(NotNow):
            take(ticket=None)
        await waiting
        assert take(ticket=None)

    story(told)


def test_turns_follow_each_other_at_once() -> None:
    """What one call leaves free is used by the next without a pause."""

    async def told() -> None:
        await Stage(Client(replace(A, concurrency=1), reply(), latency_s=0.01)).ask_all(100)
        assert asyncio.get_running_loop().time() == pytest.approx(1.0, rel=0.1)

    story(told)


def test_who_leaves_makes_room_for_who_needs_less() -> None:
    """The first in line waits for more tokens than the second does; when it leaves, the second goes."""

    async def told() -> None:
        a = Client(replace(A, tokens_per_minute=6_000), reply(tokens=3_000))
        stage = Stage(a)
        large, small = (replace(REQUEST, max_tokens=tokens) for tokens in (5_000, 1_000))
        await stage.ask(small)
        leaving = asyncio.ensure_future(stage.ask(large))
        await asyncio.sleep(1)
        waiting = asyncio.ensure_future(stage.ask(small))
        await asyncio.sleep(1)
        leaving.cancel()
        await waiting
        assert a.moments[1] == pytest.approx(30, abs=1)

    story(told)


def test_those_who_leave_the_line_hold_nobody_up() -> None:
    """Their time is over, or they are cancelled, while they wait or in the moment of their turn."""

    async def told() -> None:
        account = replace(A, requests_per_minute=60, concurrency=1)
        a = Client(account, reply(), latency_s=0.2)
        stage = Stage(a)
        waiting = [asyncio.ensure_future(stage.ask()) for _ in range(20)]
        for number, each in enumerate(waiting):
            if number % 3 == 1:
                asyncio.get_running_loop().call_later(1.1 * number, each.cancel)
        await asyncio.sleep(0.1)
        short = await stage.ask(attempt=TimedAttempt(time_s=3.0))
        assert isinstance(short[0], ModelError)
        assert (short[0].kind, short[0].retry) == ("unavailable", True)
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert sum(isinstance(each, tuple) and isinstance(each[0], ModelReply) for each in ended) >= 13
        assert a.running == 0
        assert isinstance((await stage.ask())[0], ModelReply)
        assert not stage.traffic._lines

    story(told)


def test_a_reply_on_the_journal_needs_no_turn() -> None:
    """A model that is out, or a line in front of it, is nothing to an attempt that only remembers."""

    class Remembering(TimedAttempt):
        async def model(self, request: ModelRequest, call: Any) -> ModelReply:
            return reply("from the journal")

    async def told() -> None:
        a = Client(A)
        a.turns = [a.http(403, QUOTA)]
        stage = Stage(a)
        await stage.ask()
        answered, _ = await stage.ask(attempt=Remembering())
        assert isinstance(answered, ModelReply)
        assert len(a.calls) == 1

    story(told)


def test_it_starts_low() -> None:
    """A hundred calls at once are no hundred calls at once in the beginning; later they are."""

    async def told() -> None:
        a = Client(A, reply(), latency_s=1.0)
        stage = Stage(a)
        slots = asyncio.Semaphore(100)
        waiting = asyncio.ensure_future(stage.ask_all(600, slots=slots, time_s=600))
        await asyncio.sleep(0.5)
        assert a.running == START
        await waiting
        assert a.most > 50

    story(told)


def test_a_named_model_takes_the_first_place_of_the_chain() -> None:
    """What the kind falls back on stays; a kind has its own chain; what is not configured is refused."""

    async def told() -> None:
        a, b = Client(A, reply()), Client(B, reply())
        models = {
            name: ModelSettings(name=name, endpoint=endpoint, id=name)
            for name, endpoint in (("small", "a"), ("large", "a"), ("other", "b"))
        }
        kinds = {
            "default": Kind(name="default", models=("small", "other")),
            "hard": Kind(name="hard", models=("large",), thinking=True),
        }
        stage = Stage(a, b, models=models, kinds=kinds)
        await stage.ask(replace(REQUEST, model="large"))
        await stage.ask(replace(REQUEST, kind="hard"))
        await stage.ask(replace(REQUEST, kind="unheard"))
        assert [model for _, model, *_ in a.calls] == ["large", "large", "small"]
        a.turns = [a.http(403, QUOTA)]
        answered, _ = await stage.ask(replace(REQUEST, model="large"))
        assert isinstance(answered, ModelReply)
        assert answered.endpoint == "b"
        error, attempt = await stage.ask(replace(REQUEST, model="gpt-9"))
        assert isinstance(error, ModelError)
        assert (error.kind, error.retry) == ("no_such_model", False)
        assert "large, other, small" in error.reason
        assert attempt.errors == [("no_such_model", "", "gpt-9", "give_up")]

    story(told)


def test_another_attempt_asks_the_next_model_of_the_chain_first() -> None:
    """And begins again with the first one after the last; a model that is named has the first place once."""

    async def told() -> None:
        a, b = Client(A, reply()), Client(B, reply())
        models = {
            name: ModelSettings(name=name, endpoint=endpoint, id=name)
            for name, endpoint in (("small", "a"), ("large", "a"), ("other", "b"))
        }
        stage = Stage(a, b, models=models, kinds={"default": Kind(name="default", models=("small", "other"))})

        async def asked(named: str | None, before: int) -> str:
            attempt = TimedAttempt()
            attempt.fallback = before
            answered, _ = await stage.ask(replace(REQUEST, model=named), attempt=attempt)
            assert isinstance(answered, ModelReply)
            return ((a.calls if answered.endpoint == "a" else b.calls)[-1])[1]

        assert [await asked(None, n) for n in range(4)] == ["small", "other", "small", "other"]
        assert [await asked("large", n) for n in range(3)] == ["large", "other", "large"]

    story(told)


def test_without_a_file_any_model_may_be_named_and_only_that_one_is_asked() -> None:
    """One that its endpoint does not have is out, and the others are not."""

    async def told() -> None:
        only = one_endpoint(base_url="http://a/v1", api_key="k", model="m")
        a = Client(only.endpoints["default"])
        a.turns = [a.http(404, {"error": {"code": "model_not_found", "message": "no model x"}}), reply()]
        patient = PatientModel(Traffic(only, {"default": a}))
        with pytest.raises(ModelError, match="no model x"):
            await patient.ask(replace(REQUEST, model="x"), TimedAttempt())
        await patient.ask(REQUEST, TimedAttempt())
        await patient.ask(replace(REQUEST, model="y"), TimedAttempt())
        assert [model for _, model, *_ in a.calls] == ["x", "m", "y"]

    story(told)


def test_a_model_that_is_too_small_is_passed_over() -> None:
    """Where all are, nobody is asked, and the kind says that a shorter request may do."""

    async def told() -> None:
        a, b = Client(A, reply()), Client(B, reply())
        models = {
            "a": ModelSettings(name="a", endpoint="a", id="a", context_tokens=2_000),
            "b": ModelSettings(name="b", endpoint="b", id="b", context_tokens=10_000),
        }
        stage = Stage(a, b, models=models)
        for size, endpoint in ((100, "a"), (8_000, "b")):
            long = replace(REQUEST, messages=({"role": "user", "content": "x" * size},))
            answered, _ = await stage.ask(long)
            assert isinstance(answered, ModelReply)
            assert answered.endpoint == endpoint
        error, _ = await stage.ask(replace(REQUEST, max_tokens=20_000))
        assert isinstance(error, ModelError)
        assert (error.kind, error.decision, error.model) == ("context_exceeded", "give_up", "b")
        assert len(a.calls) + len(b.calls) == 2

    story(told)


def test_a_cancelled_call_gives_back_what_it_took() -> None:
    """Nothing is known of the endpoint, and nobody is held up by it."""

    async def told() -> None:
        a = Client(replace(A, concurrency=1), None)
        stage = Stage(a)
        hanging = asyncio.ensure_future(stage.ask())
        await asyncio.sleep(1)
        hanging.cancel()
        await asyncio.wait([hanging])
        a.turns = [reply()]
        answered, _ = await stage.ask()
        assert isinstance(answered, ModelReply)
        assert stage.traffic.metrics.snapshot().breakers == {}

    story(told)


def test_it_is_counted_in_one_place() -> None:
    """Errors by kind, retries, decisions, breakers, calls at once."""

    async def told() -> None:
        a, b = Client(A), Client(B, reply())
        a.turns = [a.http(429, OVERLOADED)]
        stage = Stage(a, b)
        await stage.ask()
        seen = stage.traffic.metrics.snapshot()
        assert seen.models["a"].errors == {"overloaded": 5}
        assert seen.models["b"].replies == 1
        assert seen.retries == {"overloaded": 5}
        assert seen.decisions == {"retry": 4, "elsewhere": 1}
        assert (seen.breakers, seen.breaker_changes) == ({"a": "open"}, {"open": 1})
        assert seen.concurrency["a"] < START
        assert seen.concurrency_changes >= 1

    story(told)
