"""Replies as real endpoints misbehave, over HTTP: what becomes of a call, and what its transcript is told."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from agents.configuration.values import Endpoint
from agents.models.client import ChatClient
from agents.models.retry import PatientModel
from agents.models.traffic import Traffic
from agents.ports import Attempt, ModelError, ModelReply, ModelRequest
from tests.agents.memory_attempt import MemoryAttempt
from tests.agents.scripted_client import REQUEST, configuration
from tests.agents.scripted_endpoint import Scripted, completion, endpoint


def refusal(status: int, kind: str, message: str) -> Scripted:
    """An error as Moonshot's endpoints send it."""
    return Scripted(status=status, body={"error": {"type": kind, "message": message}})


FINE = Scripted(body=completion("ok"))
LOGIN = Scripted(body="<html>login</html>", content_type="text/html")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One endpoint's replies, and what is wanted.

    Attributes:
        other: There is another model behind it, whose endpoint works.
        told: Kind, endpoint and decision of each failed call, as the transcript has them.
        answered: The endpoint that answers in the end, or None.
        final: Without an answer: no further attempt can help.
        says: Words of the last error.
    """

    name: str
    replies: Sequence[Scripted]
    other: bool = False
    told: Sequence[tuple[str, str, str]]
    answered: str | None = None
    final: bool = True
    says: Sequence[str] = ()


BAD_KEY = refusal(401, "invalid_authentication_error", "Invalid Authentication")
QUOTA = refusal(403, "exceeded_current_quota_error", "quota")
OVERLOADED = refusal(429, "engine_overloaded_error", "The engine is currently overloaded")
UPSTREAM = refusal(200, "server_error", "upstream failed")
HIGH_RISK = refusal(400, "content_filter", "high risk")
TOO_LONG = refusal(400, "invalid_request_error", "Input token length too long")

CASES = (
    Case(
        name="an error in a reply of 200",
        replies=[UPSTREAM, FINE],
        told=[("server_error", "a", "retry")],
        answered="a",
    ),
    Case(
        name="errors in replies of 200 for ever",
        replies=[UPSTREAM],
        told=[*[("server_error", "a", "retry")] * 4, ("server_error", "a", "give_up")],
        final=False,
        says=["upstream failed"],
    ),
    Case(
        name="a web page in a reply of 200, and another model",
        replies=[LOGIN],
        other=True,
        told=[("misconfigured", "a", "endpoint_out")],
        answered="b",
    ),
    Case(
        name="a web page in a reply of 200",
        replies=[LOGIN],
        told=[("misconfigured", "a", "fatal")],
        says=["http://127.0.0.1", "web page"],
    ),
    Case(
        name="an empty body",
        replies=[Scripted(body=""), FINE],
        told=[("malformed", "a", "retry")],
        answered="a",
    ),
    Case(
        name="overloaded five times, and another model",
        replies=[OVERLOADED],
        other=True,
        told=[*[("overloaded", "a", "retry")] * 4, ("overloaded", "a", "elsewhere")],
        answered="b",
    ),
    Case(
        name="the content filter",
        replies=[HIGH_RISK],
        other=True,
        told=[("content_filter", "a", "give_up")],
        says=["high risk"],
    ),
    Case(
        name="too long",
        replies=[TOO_LONG],
        other=True,
        told=[("context_exceeded", "a", "give_up")],
        says=["Input token length too long"],
    ),
    Case(
        name="a refused key, and another",
        replies=[BAD_KEY, FINE],
        told=[("bad_key", "a", "endpoint_out")],
        answered="a",
    ),
    Case(
        name="all keys refused",
        replies=[BAD_KEY],
        told=[("bad_key", "a", "endpoint_out"), ("bad_key", "a", "fatal")],
        says=["set A_KEY_2"],
    ),
    Case(
        name="quota, and another model",
        replies=[QUOTA],
        other=True,
        told=[("quota", "a", "endpoint_out")] * 2,
        answered="b",
    ),
    Case(
        name="quota",
        replies=[QUOTA],
        told=[("quota", "a", "endpoint_out"), ("quota", "a", "fatal")],
        says=["quota"],
    ),
    Case(name="usage null", replies=[Scripted(body=completion("ok", usage=None))], told=[], answered="a"),
)


class Noting(MemoryAttempt):
    """Notes what its failed calls are told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, str, str]] = []

    async def model(self, request: ModelRequest, call: Any) -> ModelReply:
        """As the port says."""
        try:
            return await super().model(request, call)
        except ModelError as error:
            self.told.append((error.kind, error.endpoint, error.decision))
            raise


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_what_becomes_of_the_call(case: Case) -> None:
    """Kind, endpoint and decision are there before the attempt sees the error, so that it records them."""
    async with endpoint(case.replies) as first, endpoint([FINE]) as second:
        a = Endpoint(
            name="a",
            base_url=first.url,
            keys=("sk-secret-1", "sk-secret-2"),
            key_variables=("A_KEY_1", "A_KEY_2"),
        )
        b = Endpoint(name="b", base_url=second.url, keys=("sk-secret-b",), key_variables=("B_KEY",))
        endpoints = (a, b) if case.other else (a,)
        clients = {each.name: ChatClient(each) for each in endpoints}
        traffic = Traffic(configuration(*endpoints), clients)
        attempt = Noting()
        try:
            answered = await asked(traffic, attempt)
        finally:
            for client in clients.values():
                await client.close()
    assert attempt.told == list(case.told)
    if isinstance(answered, ModelReply):
        assert answered.endpoint == case.answered
        assert answered.usage.estimated == int(case.name == "usage null")
        return
    assert case.answered is None
    assert answered.retry is not case.final
    assert all(words in answered.reason for words in case.says)
    assert "secret" not in answered.reason


async def asked(traffic: Traffic, attempt: Attempt) -> ModelReply | ModelError:
    """One call."""
    try:
        return await PatientModel(traffic).ask(REQUEST, attempt)
    except ModelError as error:
        return error
