"""The planner: a goal becomes a plan, with one re-ask where the first reply holds none."""

from collections.abc import Mapping

from agents.configuration.values import PLANNER
from agents.cut import head_and_tail
from agents.joins.shortening import shortened
from agents.models.retry import PatientModel
from agents.plain_json import dumps
from agents.plan_reply import CUT_OFF, read_plan
from agents.ports import Attempt, GaveUp, ModelError, ModelRequest, PlanMade, PlanRefused, Tools
from agents.prompt_data import inline, system, user
from agents.prompts import read_prompt
from agents.verdicts import gave_up
from streams.core.admission import Refused
from streams.core.commands import MakePlan
from streams.core.values import NO_USAGE, Json

PLAN_TOKENS = 4_096
"""Output tokens of the planner's reply; twice as many when the first was cut off."""

INPUT_BYTES = 16_384
"""Bytes of JSON of the goal's input that the planner sees: dividing work needs its shape, not all of it."""

KNOWN_BYTES = 32_768
"""Bytes of JSON of the earlier plan's results that the planner sees when it is asked again."""

SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "tasks": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "goal": {"type": "string"},
                    "kind": {"type": "string"},
                    "dep": {"type": "array", "items": {"type": "string"}},
                    "notes": {"type": "boolean"},
                },
                "required": ["id", "dep"],
            },
        }
    },
    "required": ["tasks"],
}
"""What an endpoint holds the reply to, where it can. What a plan is beyond that, its reader says."""


class ModelPlanner:
    """Plans by a model.

    Attributes:
        max_tokens: Output tokens of the first reply.
        input_bytes: Bytes of the goal's input that go into the prompt.
    """

    def __init__(
        self,
        model: PatientModel,
        tools: Tools,
        *,
        max_tokens: int = PLAN_TOKENS,
        input_bytes: int = INPUT_BYTES,
    ) -> None:
        self._model = model
        self._tools = tools
        self._system = system(read_prompt("planner"))
        self.max_tokens = max_tokens
        self.input_bytes = input_bytes

    async def plan(self, command: MakePlan, attempt: Attempt) -> PlanMade | PlanRefused | GaveUp:
        """Make a plan, or say why the replies held none that can be admitted."""
        messages = [self._system, user(self._brief(command))]
        usage, room = NO_USAGE, self.max_tokens
        reasons: tuple[str, ...] = ()
        for _ in range(2):
            request = ModelRequest(
                messages=tuple(messages), max_tokens=room, schema=SCHEMA, model=command.model, kind=PLANNER
            )
            try:
                reply = await self._model.ask(request, attempt)
            except ModelError as error:
                return gave_up(error, usage)
            usage += reply.usage
            if reply.finish_reason == "content_filter":
                reason = f"{reply.model} withheld its reply: content filter"
                return GaveUp(kind="content_filter", reason=reason, final=True, usage=usage)
            read = read_plan(reply.text, reply.finish_reason, command)
            if not isinstance(read, Refused):
                return PlanMade(plan=read, usage=usage)
            reasons = read.reasons
            messages += [dict(reply.message), user({"refused": list(reasons)})]
            if any(reason.startswith(CUT_OFF) for reason in reasons):
                room *= 2
        return PlanRefused(reasons=reasons, usage=usage)

    def _brief(self, command: MakePlan) -> dict[str, Json]:
        brief: dict[str, Json] = {"goal": inline(command.text)}
        if command.input is not None:
            shown, note = shown_input(inline(command.input), self.input_bytes)
            brief["input"] = shown
            if note:
                brief["input_note"] = note
        if command.items is not None:
            brief["items"] = command.items
        brief["max_subtasks"] = command.max_subtasks
        if command.notes:
            brief["notes"] = True
        if command.failure:
            brief["failure"] = command.failure
            brief["known"] = list[Json](shortened(command.known, KNOWN_BYTES))
        brief["tools"] = [
            {"name": tool.name, "description": tool.description} for tool in self._tools.specs(command.tools)
        ]
        return brief


def shown_input(value: Json, limit: int) -> tuple[Json, str]:
    """What the planner sees of the goal's input, and a note of what it does not see, if any."""
    encoded = dumps(value)
    if len(encoded) <= limit:
        return value, ""
    if isinstance(value, list):
        shown: list[Json] = []
        left = limit
        for item in value:
            left -= len(dumps(item)) + 1
            if left < 0:
                break
            shown.append(item)
        if shown:
            return shown, (
                f"only the first {len(shown)} of {len(value)} items are shown; the sub-tasks get all, "
                f"so the shares must cover items 0 to {len(value) - 1}"
            )
    return head_and_tail(encoded, limit), (
        f"only the head and the tail of the input's {len(encoded)} bytes of JSON are shown; "
        "the sub-tasks get the whole"
    )
