"""The synthesiser: one answer from all results."""

from agents.configuration.values import SYNTHESIS
from agents.cut import cut_values
from agents.models.retry import PatientModel
from agents.plain_json import text_or_json
from agents.ports import Attempt, Done, GaveUp, ModelError, ModelRequest
from agents.prompt_data import inline, results, system, user
from agents.prompts import read_prompt
from agents.verdicts import gave_up, unfit
from streams.core.commands import MakeAnswer
from streams.core.values import NO_USAGE

ANSWER_TOKENS = 8_192
"""Output tokens of the answer."""

RESULTS_BYTES = 262_144
"""Bytes of JSON of all results in the prompt: 65,000 tokens, a quarter of a context of 262,144."""


class ModelSynthesiser:
    """Joins results into the answer by one model call.

    Attributes:
        max_tokens: Output tokens.
        results_bytes: Bytes that all results together may have in the prompt; long ones lose their middle.
    """

    def __init__(
        self, model: PatientModel, *, max_tokens: int = ANSWER_TOKENS, results_bytes: int = RESULTS_BYTES
    ) -> None:
        self._model = model
        self._system = system(read_prompt("synthesis"))
        self.max_tokens = max_tokens
        self.results_bytes = results_bytes

    async def answer(self, command: MakeAnswer, attempt: Attempt) -> Done | GaveUp:
        """The final answer: text, or JSON where the model replied with JSON."""
        told = results(command.results)
        spare = self.results_bytes - sum(len(one.task) + len(one.goal) for one in command.results)
        words = ["result" if "result" in entry else "reason" for entry in told]
        cut = cut_values([entry[word] for entry, word in zip(told, words, strict=True)], max(spare, 0))
        for entry, word, value in zip(told, words, cut, strict=True):
            entry[word] = value
        request = ModelRequest(
            messages=(self._system, user({"goal": inline(command.text), "results": told})),
            max_tokens=self.max_tokens,
            model=command.model,
            kind=SYNTHESIS,
        )
        try:
            reply = await self._model.ask(request, attempt)
        except ModelError as error:
            return gave_up(error, NO_USAGE)
        return unfit(reply, self.max_tokens, reply.usage, attempt.grant) or Done(
            result=text_or_json(reply.text), usage=reply.usage
        )
