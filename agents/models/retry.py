"""The one place that decides whether a model call is made again, and when."""

import structlog

from agents.ports import Attempt, Model, ModelError, ModelReply, ModelRequest
from streams.core.backoff import backoff

log = structlog.get_logger()

MAX_TRIES = 5
"""Failed tries of one call in one attempt of a sub-task."""

MIN_PROVIDER_WAIT_S = 1.0
"""A provider that asks for less is counted like any failure, or a wait of 0 could repeat for ever."""

SPREAD = 0.25
"""Share of a provider's wait that is added by chance, so that all do not come back at once."""


class PatientModel:
    """A model whose calls are made again where that can help.

    Full jitter as in https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/.
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    async def ask(self, request: ModelRequest, attempt: Attempt) -> ModelReply:
        """Make one model call of *attempt*, with retries.

        A wait that the provider asks for is no failed try: it is bounded by the attempt's time alone.

        Raises:
            ModelError: the last error, where no retry can help, tries are used up, or the wait
                before the next one goes beyond the attempt's time.
        """
        failures = 0
        while True:
            try:
                return await attempt.model(request, self._call)
            except ModelError as error:
                if not error.retry:
                    raise
                asked = error.wait_s
                if asked is not None and asked >= MIN_PROVIDER_WAIT_S:
                    pause = asked * (1 + SPREAD * attempt.jitter())
                else:
                    failures += 1
                    if failures >= MAX_TRIES:
                        raise
                    pause = max(asked or 0.0, backoff(failures, attempt.jitter()))
                log.debug("model_call_retried", kind=error.kind, failures=failures, wait_s=round(pause, 3))
                await self._pause(pause, error, attempt)

    async def _pause(self, seconds: float, error: ModelError, attempt: Attempt) -> None:
        try:
            await attempt.wait(seconds)
        except TimeoutError:
            raise ModelError(
                error.kind,
                f"{error.reason}; the next try is {seconds:.1f} s away, beyond this attempt's time",
                retry=True,
                wait_s=error.wait_s,
            ) from None

    async def _call(self, request: ModelRequest, timeout_s: float) -> ModelReply:
        return await self._model.chat(request, timeout_s=timeout_s)
