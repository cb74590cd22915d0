"""The judge: a model that lets goals in, compares results and orders them."""

from agents.configuration.values import JUDGE
from agents.models.retry import PatientModel
from agents.plain_json import text_or_json
from agents.ports import Attempt, Done, GaveUp, ModelError, ModelRequest
from agents.prompt_data import inline, results, system, user
from agents.prompts import read_prompt
from agents.verdicts import gave_up, unfit
from streams.core.commands import Judge
from streams.core.values import NO_USAGE

VERDICT_TOKENS = 2_048
"""Output tokens of a verdict."""


class ModelJudge:
    """Asks a model for a verdict, by one call."""

    def __init__(self, model: PatientModel) -> None:
        self._model = model
        self._system = system(read_prompt("judge"))

    async def judge(self, command: Judge, attempt: Attempt) -> Done | GaveUp:
        """As :meth:`agents.ports.Referee.judge`."""
        request = ModelRequest(
            messages=(
                self._system,
                user(
                    {
                        "asks": command.asks,
                        "goal": inline(command.text),
                        "results": results(command.results),
                    }
                ),
            ),
            max_tokens=VERDICT_TOKENS,
            model=command.model,
            kind=JUDGE,
        )
        try:
            reply = await self._model.ask(request, attempt)
        except ModelError as error:
            return gave_up(error, NO_USAGE)
        return unfit(reply, VERDICT_TOKENS, reply.usage, attempt.grant) or Done(
            result=text_or_json(reply.text), usage=reply.usage
        )
