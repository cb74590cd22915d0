"""The synthesiser: one answer from all results, or one summary of some of them."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from agents.configuration.values import SYNTHESIS
from agents.joins.citations import citations
from agents.joins.parts import in_parts
from agents.joins.shortening import shortened
from agents.joins.without_model import made
from agents.json_answers import Schema, settled
from agents.models.retry import PatientModel
from agents.ports import Attempt, Done, GaveUp, ModelError, ModelReply, ModelRequest
from agents.prompt_data import inline, results, system, user
from agents.prompts import read_prompt
from agents.verdicts import gave_up, unfit
from streams.core.commands import MakeAnswer
from streams.core.goal import WITHOUT_A_MODEL
from streams.core.values import NO_USAGE, Json

ANSWER_TOKENS = 8_192
"""Output tokens of the answer."""

LEAST_TOKENS = 256
"""Output tokens that a summary has at least."""

BYTES_A_TOKEN = 4
"""Of English; of most other languages it is less, so that a summary has room enough."""


class ModelSynthesiser:
    """Joins results into the answer, or a group of them into a summary, by one model call.

    Attributes:
        max_tokens: Output tokens.
        results_bytes: Bytes that all results together may have in the prompt; long ones lose their middle.
            None: as the goal says.
    """

    def __init__(
        self, model: PatientModel, *, max_tokens: int = ANSWER_TOKENS, results_bytes: int | None = None
    ) -> None:
        self._model = model
        self._system = system(read_prompt("synthesis"))
        self._reduction = system(read_prompt("reduction"))
        self.max_tokens = max_tokens
        self.results_bytes = results_bytes

    async def answer(self, command: MakeAnswer, attempt: Attempt) -> Done | GaveUp:
        """As :meth:`agents.ports.Synthesiser.answer`.

        The answer is text, or JSON where the model replied with JSON. By a schema it is asked for once more.
        """
        if command.reduce:
            return await self._reduced(command, attempt)
        if command.join.strategy in WITHOUT_A_MODEL:
            return await asyncio.to_thread(made, command)
        schema = command.schema if isinstance(command.schema, Mapping) else None
        data: dict[str, Json] = {
            "goal": inline(command.text),
            "results": list(shortened(command.results, self._limit(command))),
        }
        if command.contradictions:
            data["contradictions"] = [
                {"tasks": list(each.tasks), "about": each.about} for each in command.contradictions
            ]
        if schema is not None:
            data["answer_schema"] = schema
        request = ModelRequest(
            messages=(self._system, user(data)),
            max_tokens=self.max_tokens,
            model=command.model,
            kind=SYNTHESIS,
            schema=schema,
        )
        return await self._written(request, schema, attempt)

    async def _reduced(self, command: MakeAnswer, attempt: Attempt) -> Done | GaveUp:
        """The summary of some results, of which nothing is shortened."""
        most = command.join.chunk_bytes // 2
        parts = await asyncio.to_thread(in_parts, command.results, command.parts)
        data: dict[str, Json] = {
            "goal": inline(command.text),
            "at_most_bytes": most,
            "results": list(results(parts)),
        }
        request = ModelRequest(
            messages=(self._reduction, user(data)),
            max_tokens=max(LEAST_TOKENS, min(self.max_tokens, 2 * most // BYTES_A_TOKEN)),
            model=command.model,
            kind=SYNTHESIS,
        )
        return await self._written(request, None, attempt)

    async def _written(self, request: ModelRequest, schema: Schema | None, attempt: Attempt) -> Done | GaveUp:
        """What the model writes, with the sub-tasks that it cites."""
        spent = NO_USAGE

        async def ask(asked: ModelRequest) -> ModelReply | GaveUp:
            nonlocal spent
            try:
                reply = await self._model.ask(asked, attempt)
            except ModelError as error:
                return gave_up(error, spent)
            spent += reply.usage
            return unfit(reply, asked.max_tokens, spent, attempt.grant) or reply

        reply = await ask(request)
        if isinstance(reply, GaveUp):
            return reply
        first = reply

        async def again(why: Mapping[str, Json]) -> ModelReply | GaveUp:
            return await ask(replace(request, messages=(*request.messages, first.message, why)))

        done = await settled(first, schema, again=again, usage=lambda: spent)
        return replace(done, cites=citations(done.result)) if isinstance(done, Done) else done

    def _limit(self, command: MakeAnswer) -> int:
        """Bytes that the results may have in the prompt: what the goal allows, besides what names them."""
        if self.results_bytes is not None:
            return self.results_bytes
        told = sum(len(one.task) + len(one.goal) + len(one.reason) + 2 for one in command.results)
        return command.join.chunk_bytes + told + 2
