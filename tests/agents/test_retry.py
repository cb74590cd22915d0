"""When a model call is made again, and how long that waits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.models.decisions import RULES
from agents.models.faults import RETRY
from agents.models.retry import MAX_TRIES, PatientModel
from agents.ports import ModelError, ModelReply, ModelRequest
from streams.core.backoff import LONGEST_S
from streams.memory_log.virtual_time import run
from tests.agents.memory_attempt import MemoryAttempt
from tests.agents.scripted_model import ScriptedModel, said

REQUEST = ModelRequest(messages=({"role": "user", "content": "u"},))


def error(kind: str, wait_s: float | None = None) -> ModelError:
    """An error of this kind."""
    return ModelError(kind, f"{kind}!", retry=RETRY[kind], wait_s=wait_s)


def ask(model: ScriptedModel, attempt: MemoryAttempt) -> ModelReply:
    """One call, on virtual time."""
    return run(PatientModel(model).ask(REQUEST, attempt))


COUNTED = [kind for kind, retry in RETRY.items() if retry and RULES[kind].counted]


@pytest.mark.parametrize("kind", COUNTED)
def test_passing_trouble_is_tried_five_times(kind: str) -> None:
    """The waits double from one second to eight; then the last error is the result."""
    model, attempt = ScriptedModel(error(kind)), MemoryAttempt()
    with pytest.raises(ModelError) as raised:
        ask(model, attempt)
    assert raised.value.kind == kind
    assert len(model.requests) == MAX_TRIES == 5
    assert attempt.waits == [1, 2, 4, 8]


@pytest.mark.parametrize("kind", [kind for kind, retry in RETRY.items() if not retry])
def test_what_no_retry_can_help_ends_at_once(kind: str) -> None:
    """One call, no wait."""
    model, attempt = ScriptedModel(error(kind)), MemoryAttempt()
    with pytest.raises(ModelError) as raised:
        ask(model, attempt)
    assert (raised.value.kind, len(model.requests), attempt.waits) == (kind, 1, [])


def test_a_call_that_recovers() -> None:
    """The reply after two failures is the reply, and only it is on the journal."""
    model, attempt = ScriptedModel(error("server_error"), error("connection"), said("fine")), MemoryAttempt()
    assert ask(model, attempt).text == "fine"
    assert len(attempt.journal.replies) == 1
    assert model.timeouts == [119.75, 118.75, 116.75]  # a little less than what is left of the attempt's time


def test_a_wait_the_provider_asks_for_is_no_failed_try() -> None:
    """Twenty waits of a second outlast five tries; each is at least what was asked for."""
    model = ScriptedModel(*[error("rate_limited", wait_s=2)] * 20, said("fine"))
    attempt = MemoryAttempt(chances=[0.0, 1.0, 0.5])
    assert ask(model, attempt).text == "fine"
    assert len(attempt.waits) == 20
    assert attempt.waits[:3] == [2, 2.5, 2.25]


def test_a_provider_that_always_asks_to_wait_is_bounded_by_the_attempts_time() -> None:
    """The error says that the next try would come too late."""
    model, attempt = ScriptedModel(error("rate_limited", wait_s=50)), MemoryAttempt(chances=[0.0])
    with pytest.raises(ModelError, match="beyond this attempt's time") as raised:
        ask(model, attempt)
    assert (raised.value.kind, raised.value.retry) == ("rate_limited", True)
    assert attempt.waits == [50, 50]


@given(wait_s=st.floats(0, 0.99), chance=st.floats(0, 1))
def test_a_provider_that_asks_for_no_real_wait_is_not_asked_for_ever(wait_s: float, chance: float) -> None:
    """A wait below a second counts as a failure, and is kept all the same."""
    model = ScriptedModel(error("rate_limited", wait_s=wait_s))
    attempt = MemoryAttempt(chances=[chance])
    with pytest.raises(ModelError):
        ask(model, attempt)
    assert len(model.requests) == MAX_TRIES
    assert all(waited >= wait_s for waited in attempt.waits)


@given(chances=st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_backoffs_are_full_jitter(chances: list[float]) -> None:
    """Each wait is the attempt's chance of the doubled backoff, never above eight seconds."""
    attempt = MemoryAttempt(chances=[*chances, 0.0])
    with pytest.raises(ModelError):
        ask(ScriptedModel(error("server_error")), attempt)
    assert attempt.waits == [chance * most for chance, most in zip(chances, (1, 2, 4, 8), strict=True)]
    assert max(attempt.waits) <= LONGEST_S
