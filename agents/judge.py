"""The judge: a model that lets goals in, compares results and orders them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agents.configuration.values import JUDGE
from agents.joins.shortening import shortened
from agents.json_answers import BadJson, Read, Schema, read_result
from agents.models.retry import PatientModel
from agents.ports import Attempt, Done, GaveUp, ModelError, ModelReply, ModelRequest
from agents.prompt_data import inline, system, user
from agents.prompts import read_prompt
from agents.verdicts import gave_up, unfit
from streams.core.commands import Judge, Verdict
from streams.core.values import NO_USAGE, Json, TaskId, Usage

VERDICT_TOKENS = 4_096
"""Output tokens of a verdict: a hundred sub-tasks, each named once, and some words."""

RESULTS_BYTES = 262_144
"""Bytes of JSON of all results that are judged at once; long ones lose their middle."""


class ModelJudge:
    """Asks a model for a verdict; one that makes no sense it is asked for once more."""

    def __init__(self, model: PatientModel, *, results_bytes: int = RESULTS_BYTES) -> None:
        self._model = model
        self._system = system(read_prompt("judge"))
        self._results_bytes = results_bytes

    async def judge(self, command: Judge, attempt: Attempt) -> Done | GaveUp:
        """As :meth:`agents.ports.Referee.judge`."""
        names = [one.task for one in command.results]
        schema = schema_of(command.asks, names)
        request = ModelRequest(
            messages=(
                self._system,
                user(
                    {
                        "asks": command.asks,
                        "goal": inline(command.text),
                        "results": list(shortened(command.results, self._results_bytes)),
                    }
                ),
            ),
            max_tokens=VERDICT_TOKENS,
            model=command.model,
            kind=JUDGE,
            schema=schema,
        )
        spent = NO_USAGE
        reply = await self._ask(request, attempt, spent)
        if isinstance(reply, GaveUp):
            return reply
        spent += reply.usage
        read = await _read(reply.text, command.asks, names, schema)
        if isinstance(read, BadJson):
            why = user({"refused": list(read.reasons), "result_schema": schema})
            request = replace(request, messages=(*request.messages, reply.message, why))
            reply = await self._ask(request, attempt, spent)
            if isinstance(reply, GaveUp):
                return reply
            spent += reply.usage
            read = await _read(reply.text, command.asks, names, schema)
        if isinstance(read, Read):
            return Done(result=read.result, usage=spent)
        reason = f"the verdict of {reply.model} makes no sense, after one more try: {'; '.join(read.reasons)}"
        return GaveUp(kind="bad_json", reason=reason, final=False, usage=spent)

    async def _ask(self, request: ModelRequest, attempt: Attempt, spent: Usage) -> ModelReply | GaveUp:
        try:
            reply = await self._model.ask(request, attempt)
        except ModelError as error:
            return gave_up(error, spent)
        return unfit(reply, VERDICT_TOKENS, spent + reply.usage, attempt.grant) or reply


def schema_of(asks: Verdict, names: Sequence[TaskId]) -> Schema:
    """The JSON Schema of a verdict on these sub-tasks."""
    name: dict[str, Json] = {"type": "string"}
    if names:
        name["enum"] = list(names)
    several: dict[str, Json] = {"type": "array", "items": name, "uniqueItems": True}
    match asks:
        case "gate":
            return _object({"allow": {"type": "boolean"}, "reason": {"type": "string"}})
        case "check":
            entry = _object({"tasks": {**several, "minItems": 2}, "about": {"type": "string"}})
            return _object({"contradictions": {"type": "array", "items": entry}})
        case "equal":
            return _object({"groups": {"type": "array", "items": {**several, "minItems": 1}}})
        case "rank":
            return _object({"order": {**several, "minItems": len(names), "maxItems": len(names)}})


def _object(properties: Mapping[str, Json]) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


async def _read(text: str, asks: Verdict, names: Sequence[TaskId], schema: Schema) -> Read | BadJson:
    """The verdict in a reply. In groups every sub-task stands once, which no schema can say."""
    read = await read_result(text, schema)
    if asks != "equal" or isinstance(read, BadJson) or not isinstance(read.result, Mapping):
        return read
    groups = read.result["groups"]
    assert isinstance(groups, Sequence)
    counts = Counter(name for group in groups if isinstance(group, Sequence) for name in group)
    wrong = [f"{name} stands in {counts[name] or 'no'} groups" for name in names if counts[name] != 1]
    return BadJson(reasons=tuple(wrong[:5])) if wrong else read
