"""Bearer tokens: got in time, kept while they are good, asked for again before they end, never shown."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from streams.access import Access
from streams.kafka.tokens import TokenRefused, Tokens, TokenUnavailable
from tests.secured.token_endpoint import TokenEndpoint, token_endpoint

CLIENT = "with: odd/characters"


@pytest_asyncio.fixture
async def endpoint() -> AsyncIterator[TokenEndpoint]:
    async with token_endpoint() as running:
        yield running


def access(endpoint: TokenEndpoint) -> Access:
    return Access(
        protocol="SASL_SSL",
        mechanism="OAUTHBEARER",
        token_url=endpoint.url,
        client_id=CLIENT,
        client_secret=endpoint.secrets[CLIENT],
    )


class Clock:
    """Moved by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


async def test_a_token_is_kept_until_four_fifths_of_its_life(endpoint: TokenEndpoint) -> None:
    """Then the next one is asked for, once for all who want one at the same time."""
    clock = Clock()
    endpoint.life_s = 100
    tokens = Tokens(access(endpoint), clock=clock)
    first = await tokens.token()
    clock.now += 79
    assert await tokens.token() == first
    clock.now += 2
    several = await asyncio.gather(*(tokens.token() for _ in range(5)))
    assert set(several) == {endpoint.given[1]}
    assert endpoint.asked == 2


@pytest.mark.parametrize("status", [401, 500])
async def test_the_last_token_helps_over_an_endpoint_that_fails(endpoint: TokenEndpoint, status: int) -> None:
    """As long as it is valid."""
    clock = Clock()
    endpoint.life_s = 100
    tokens = Tokens(access(endpoint), clock=clock)
    first = await tokens.token()
    endpoint.fails_with = status
    clock.now += 99
    assert await tokens.token() == first
    clock.now += 2
    with pytest.raises((TokenRefused, TokenUnavailable)):
        await tokens.token()
    endpoint.fails_with = 0
    assert await tokens.token() == endpoint.given[-1] != first


async def test_whom_the_endpoint_does_not_know_gets_none_and_reads_why(endpoint: TokenEndpoint) -> None:
    """Without the secret that the endpoint repeats."""
    wrong = replace(access(endpoint), client_secret="not-this-one-1")
    with pytest.raises(TokenRefused) as refused:
        await Tokens(wrong).token()
    said = str(refused.value)
    assert "invalid_client" in said
    assert "ANABRANCH_KAFKA_CLIENT_SECRET" in said
    assert "not-this-one-1" not in said


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/token", "http://nowhere.invalid/token"])
async def test_an_endpoint_that_is_not_there_is_named(endpoint: TokenEndpoint, url: str) -> None:
    """An error of Kafka's kind: any other would end aiokafka's client."""
    with pytest.raises(TokenUnavailable, match=url):
        await Tokens(replace(access(endpoint), token_url=url)).token()


@pytest.mark.parametrize(
    "answer", ["no JSON", "[]", "{}", '{"access_token": 7}', '{"access_token": "x", "expires_in": "y"}']
)
async def test_an_answer_without_a_token_is_none(endpoint: TokenEndpoint, answer: str) -> None:
    """Whatever it is."""
    endpoint.says = answer
    with pytest.raises(TokenUnavailable, match="without a token"):
        await Tokens(access(endpoint)).token()


async def test_two_loops_share_one_token(endpoint: TokenEndpoint) -> None:
    """Faust's consumer has a thread and a loop of its own."""
    tokens = Tokens(access(endpoint))
    found: list[str] = []
    mine = await tokens.token()
    await asyncio.to_thread(lambda: found.append(asyncio.run(tokens.token())))
    assert found == [mine]
    assert mine not in repr(vars(tokens))
