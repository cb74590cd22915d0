"""What the tests of the simulated endpoint share: requests as the agents write them, and endpoints."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import orjson
import pytest
import pytest_asyncio

from agents.simulator import Behaviour, Simulator, asked, replies, start
from agents.simulator.replies import Reply

Request = Callable[..., dict[str, Any]]
Say = Callable[..., Reply]
Endpoint = Callable[[Behaviour], Awaitable[Simulator]]


def _request(
    role: str, data: Any, more: Sequence[dict[str, Any]] = (), *, max_tokens: int = 4096, **fields: Any
) -> dict[str, Any]:
    return {
        "model": "simulated",
        "max_tokens": max_tokens,
        "messages": [
            {"role": "system", "content": f"Role: {role}\nDo the work."},
            {"role": "user", "content": orjson.dumps(data).decode()},
            *more,
        ],
        **fields,
    }


@pytest.fixture(scope="session")
def request_of() -> Request:
    """Makes a chat request from a role and its data."""
    return _request


@pytest.fixture(scope="session")
def say() -> Say:
    """What the model says to a request, without HTTP."""

    def said(*args: Any, **fields: Any) -> Reply:
        return replies.reply(asked.read(orjson.dumps(_request(*args, **fields))))

    return said


@pytest_asyncio.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    """Starts endpoints, and closes them at the end."""
    started: list[Simulator] = []

    async def begin(behaviour: Behaviour) -> Simulator:
        started.append(await start(behaviour))
        return started[-1]

    yield begin
    for simulator in started:
        await simulator.close()
