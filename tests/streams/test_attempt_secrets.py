"""What comes from outside loses its secrets before the agent sees it, and the journal has the same."""

import pytest

from agents.ports import ModelError, ModelReply, ModelRequest
from streams.core.values import Inline, Json
from streams.memory_log.virtual_time import run
from streams.redaction import HIDDEN, Redactor
from streams.transcript import ModelCalled, ModelFailed, ToolCalled
from tests.streams.desk import LOOK, Desk, asks, says, tool, user

KEY = "the-key-of-7-parts"
SECRETS = Redactor([KEY])
"""Of the process that runs the attempt."""


def test_a_model_that_says_the_key_is_heard_without_it() -> None:
    """The agent goes on with what whoever takes over would read; what looks like a key stays."""

    async def story() -> None:
        desk = Desk(redactor=SECRETS)
        request = asks(user("?"))
        reply = await desk.attempt.model(request, says(f"It is {KEY}, or sk-proj-8hTqLm2VbN4c."))
        assert reply.text == f"It is {HIDDEN}, or sk-proj-8hTqLm2VbN4c."
        await desk.attempt.recorded()
        (called,) = desk.journal()
        assert isinstance(called, ModelCalled)
        assert called.reply == reply
        later = Desk(before=desk, redactor=SECRETS)
        assert await later.attempt.model(request, says("never asked")) == reply

    run(story())


def test_a_tool_that_tells_secrets_tells_none() -> None:
    """Neither those of the process nor what looks like one."""
    output: Json = {
        "key": KEY,
        "headers": {"Authorization": "Bearer x"},
        "rows": [1, f"at https://a:b@c/ {KEY}"],
    }
    hidden: Json = {
        "key": HIDDEN,
        "headers": {"Authorization": HIDDEN},
        "rows": [1, f"at https://{HIDDEN}@c/ {HIDDEN}"],
    }

    async def story() -> None:
        desk = Desk(redactor=SECRETS)
        reply = await desk.attempt.tool(LOOK, tool(output))
        assert reply.output == hidden
        await desk.attempt.recorded()
        (called,) = desk.journal()
        assert isinstance(called, ToolCalled)
        assert called.output == Inline(value=hidden)

    run(story())


def test_an_error_of_a_model_quotes_no_secret() -> None:
    """Not to the agent, and not on the journal."""

    async def quotes(request: ModelRequest, timeout_s: float) -> ModelReply:
        raise ModelError("bad_key", f"401 {KEY}; Authorization: Bearer {KEY}", retry=False)

    async def story() -> None:
        desk = Desk(redactor=SECRETS)
        with pytest.raises(ModelError) as raised:
            await desk.attempt.model(asks(user("?")), quotes)
        assert str(raised.value) == raised.value.reason == f"401 {HIDDEN}; Authorization: Bearer {HIDDEN}"
        await desk.attempt.end()
        (failed,) = desk.journal()
        assert isinstance(failed, ModelFailed)
        assert failed.reason == raised.value.reason

    run(story())
