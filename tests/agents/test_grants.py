"""An attempt stays inside its grant: what a call may cost is looked at before it, what it did after."""

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.configuration.values import (
    DEFAULT,
    PLANNER,
    Configuration,
    Endpoint,
    Kind,
    ModelSettings,
    Prices,
)
from agents.grants import BYTES_PER_TOKEN, LEAST, LEAST_OF_OTHERS, Price, input_tokens, unfinished
from agents.models.client import ChatClient
from agents.models.prices import PriceList, own_price
from agents.models.retry import PatientModel
from agents.models.traffic import Traffic
from agents.ports import ModelError, ModelReply, ModelRequest
from agents.verdicts import unfit
from streams.core.values import NO_USAGE, Grant, Usage
from streams.memory_log.virtual_time import run
from tests.agents.memory_attempt import MemoryAttempt

PRICE = own_price(Prices(tokens_in=1.0, tokens_out=4.0))
MESSAGE = {"role": "user", "content": "x" * 270}
REQUEST = ModelRequest(messages=[MESSAGE], max_tokens=800)
TOKENS_IN = input_tokens(REQUEST)
SURELY = {"rate_limited", "server_error", "overloaded"}
"""Errors of a call that costs nothing."""

Fate = tuple[str, float, float]
"""A kind of error, or ``reply``; which part of the input it had, and which of the output it could."""


@dataclass(kw_only=True)
class Account:
    """An endpoint that counts what it worked for, whether or not its replies arrive.

    Attributes:
        fates: What becomes of its calls, in order, the last for ever.
        asked: The requests that came.
        worked: What it will bill.
    """

    fates: list[Fate]
    priced: bool = True
    asked: list[ModelRequest] = field(default_factory=list)
    worked: Usage = NO_USAGE

    async def price(self, model: ModelSettings) -> Price | None:
        """Known or not."""
        return PRICE if self.priced else None

    async def chat(
        self,
        request: ModelRequest,
        *,
        model: ModelSettings,
        key: str,
        timeout_s: float,
        thinking: bool | None,
    ) -> ModelReply:
        """The next fate."""
        self.asked.append(request)
        kind, part_in, part_out = self.fates.pop(0) if len(self.fates) > 1 else self.fates[0]
        cost = Usage(
            calls=1,
            tokens_in=int(input_tokens(request) * part_in),
            tokens_out=int(request.max_tokens * part_out),
        )
        cost = Usage(
            calls=1,
            tokens_in=cost.tokens_in,
            tokens_out=cost.tokens_out,
            usd=PRICE(cost) if self.priced else 0.0,
        )
        if kind not in SURELY:
            self.worked += cost
        if kind == "reply":
            message = {"role": "assistant", "content": "ok"}
            return ModelReply(message=message, finish_reason="stop", usage=cost, model=model.id)
        raise ModelError(kind, "no", retry=True)


def model_on(account: Account) -> PatientModel:
    """All that a worker has between an agent and an endpoint, but the endpoint's client."""
    configuration = Configuration(
        endpoints={DEFAULT: Endpoint(name=DEFAULT)},
        models={"m": ModelSettings(name="m", endpoint=DEFAULT, id="m-1")},
        kinds={DEFAULT: Kind(name=DEFAULT, models=("m",))},
    )
    return PatientModel(Traffic(configuration, {DEFAULT: account}))


def ask(
    account: Account, *requests: ModelRequest, grant: Grant | None
) -> tuple[MemoryAttempt, ModelError | None]:
    """Make these calls in one attempt, up to the first that brings no reply."""

    async def story() -> tuple[MemoryAttempt, ModelError | None]:
        attempt, model = MemoryAttempt(grant=grant), model_on(account)
        for request in requests:
            try:
                await model.ask(request, attempt)
            except ModelError as error:
                return attempt, error
        return attempt, None

    return run(story())


GRANTS = st.builds(
    Grant,
    calls=st.none() | st.integers(0, 6),
    tokens=st.none() | st.integers(0, 4_000),
    usd=st.none() | st.floats(0.0, 0.01),
)
FATES = st.tuples(
    st.sampled_from(["reply", "reply", "reply", "timeout", "malformed", "connection", *SURELY]),
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 0.5, 1.0]),
)


@settings(max_examples=60)
@given(GRANTS, st.lists(FATES, min_size=1, max_size=12))
def test_an_attempt_never_spends_more_than_its_grant(grant: Grant, fates: list[Fate]) -> None:
    """As counted by the endpoint, the calls among them whose replies never arrived."""
    account = Account(fates=fates)
    attempt, error = ask(account, *[REQUEST] * 9, grant=grant)
    worked = account.worked
    assert worked.calls <= (9**9 if grant.calls is None else grant.calls)
    assert worked.tokens <= (9**9 if grant.tokens is None else grant.tokens)
    assert worked.usd <= (9**9 if grant.usd is None else grant.usd * (1 + 1e-12))
    assert attempt.usage.calls >= worked.calls
    assert attempt.usage.tokens >= worked.tokens
    assert (error is not None and error.kind == "budget") <= (error is not None and not error.retry)


def test_without_a_grant_the_requests_go_out_as_they_are() -> None:
    """The same requests as ever."""
    account = Account(fates=[("reply", 1.0, 1.0)], priced=False)
    attempt, error = ask(account, *[REQUEST] * 3, grant=None)
    assert error is None
    assert [request.max_tokens for request in account.asked] == [800] * 3
    assert attempt.usage == account.worked


def test_what_does_not_fit_is_not_asked_and_the_reason_says_why() -> None:
    """Which limit, how much is left of it, and that nobody need try again."""
    each = TOKENS_IN + 800
    for grant, made, reason in (
        (Grant(calls=2), 2, "all 2 model calls that were granted are made"),
        (
            Grant(tokens=2 * each + 100),
            2,
            f"100 of {2 * each + 100} granted tokens are left, and the call needs",
        ),
        (
            Grant(usd=PRICE(Usage(tokens_in=TOKENS_IN, tokens_out=800)) + 0.0002),
            1,
            "0.000200 of 0.003504 granted",
        ),
    ):
        account = Account(fates=[("reply", 1.0, 1.0)])
        _, error = ask(account, *[REQUEST] * 9, grant=grant)
        assert error is not None
        assert (error.kind, error.retry, error.decision) == ("budget", False, "give_up")
        assert len(account.asked) == made
        assert error.reason.startswith(f"not asked: {reason}")
        assert error.reason.endswith("; asking again would find no more")


def test_output_is_cut_to_what_is_left() -> None:
    """Of tokens, and of dollars at the model's price; the input is paid first."""
    account = Account(fates=[("reply", 1.0, 1.0)])
    ask(account, REQUEST, grant=Grant(tokens=TOKENS_IN + 300))
    assert account.asked[0].max_tokens == 300
    account = Account(fates=[("reply", 1.0, 1.0)])
    ask(account, REQUEST, grant=Grant(usd=PRICE(Usage(tokens_in=TOKENS_IN, tokens_out=250))))
    assert account.asked[0].max_tokens == 250


def test_a_plan_needs_more_room_than_a_turn() -> None:
    """One that is cut off is no plan; what asks for less at once is content with that."""
    least = LEAST[PLANNER]
    for room, kind, goes in (
        (least - 1, PLANNER, False),
        (least, PLANNER, True),
        (LEAST_OF_OTHERS, "x", True),
    ):
        account = Account(fates=[("reply", 1.0, 0.0)])
        request = ModelRequest(messages=[MESSAGE], kind=kind)
        _, error = ask(account, request, grant=Grant(tokens=TOKENS_IN + room))
        assert (error is None) == goes
    account = Account(fates=[("reply", 1.0, 0.0)])
    little = ModelRequest(messages=[MESSAGE], max_tokens=5)
    assert ask(account, little, grant=Grant(tokens=TOKENS_IN + 5))[1] is None


def test_no_budget_in_dollars_is_kept_where_nobody_knows_the_price() -> None:
    """It would be no limit at all, without a word."""
    account = Account(fates=[("reply", 1.0, 1.0)], priced=False)
    _, error = ask(account, REQUEST, grant=Grant(usd=5.0))
    assert error is not None
    assert not account.asked
    assert error.kind == "budget"
    assert "nobody knows what m costs: give it prices in anabranch.toml" in error.reason


def test_a_try_without_a_reply_counts_where_it_may_have_cost() -> None:
    """All that it could have; marked as an estimate, with the model's price."""
    account = Account(fates=[("timeout", 1.0, 1.0), ("rate_limited", 1.0, 1.0), ("reply", 1.0, 1.0)])
    attempt, error = ask(account, REQUEST, grant=Grant(calls=9))
    assert error is None
    most = Usage(calls=1, tokens_in=TOKENS_IN, tokens_out=800, estimated=1)
    assert attempt.usage.calls == 2
    assert attempt.usage.estimated == 1
    assert attempt.usage.tokens == 2 * most.tokens
    assert attempt.usage.usd == pytest.approx(2 * PRICE(most))


def test_what_a_call_that_was_cut_off_may_have_cost_is_within_its_grant() -> None:
    """Its price is not known there, so all dollars count."""
    assert unfinished(REQUEST, None, NO_USAGE).tokens == TOKENS_IN + 800
    used = Usage(calls=1, tokens_in=100, usd=0.25)
    for tokens in (100, 150, 100 + TOKENS_IN + 10, 9_000):
        cost = unfinished(REQUEST, Grant(tokens=tokens, usd=1.0), used)
        assert cost.tokens == min(TOKENS_IN + 800, tokens - 100)
        assert (cost.calls, cost.estimated, cost.usd) == (1, 1, 0.75)


def test_the_input_is_estimated_from_all_that_is_sent() -> None:
    """Messages, tools and the schema of the result."""
    plain = ModelRequest(messages=[MESSAGE])
    wide = ModelRequest(messages=[MESSAGE], schema={"type": "object", "description": "y" * 300})
    assert input_tokens(wide) - input_tokens(plain) >= 300 // BYTES_PER_TOKEN


def test_a_reply_that_its_grant_cut_off_says_so() -> None:
    """Another attempt may be granted more; one that reached its own limit needs no money."""
    usage = Usage(calls=1, tokens_in=9, tokens_out=100)
    reply = ModelReply(message={}, finish_reason="length", usage=usage, model="m-1")
    cut = unfit(reply, 800, usage, Grant(tokens=109))
    assert cut is not None
    assert (cut.kind, cut.final, cut.usage) == ("budget", True, usage)
    assert cut.reason == "the reply of m-1 was cut off at 100 of 800 tokens: no more was granted"
    for other in (unfit(reply, 100, usage, Grant(tokens=109)), unfit(reply, 800, usage, Grant(calls=3))):
        assert other is not None
        assert other.kind == "truncated"


def test_only_prices_that_somebody_knows_are_prices() -> None:
    """By the list, by the configuration, or that of the simulated endpoint: nothing."""

    async def known(model: str, own: Prices | None = None) -> bool:
        return await PriceList("https://api.example/v1").price(model, own=own) is not None

    async def story() -> None:
        assert await known("gpt-4o-mini")
        assert await known("nobody-s-model", Prices(tokens_in=1.0, tokens_out=1.0))
        assert await known("simulated-large")
        assert not await known("nobody-s-model")

    asyncio.run(story())


def test_what_was_never_sent_costs_nothing() -> None:
    """Nobody listens there."""

    async def story() -> ModelError:
        client = ChatClient(Endpoint(name="e", base_url="http://127.0.0.1:9/v1"))
        try:
            await client.chat(
                REQUEST, model=ModelSettings(name="m", endpoint="e", id="m"), key="", timeout_s=20
            )
        except ModelError as error:
            return error
        finally:
            await client.close()
        raise AssertionError

    error = asyncio.run(story())
    assert (error.kind, error.usage) == ("connection", NO_USAGE)
