"""The fields that a goal may have, and their bounds: the model of the records of ``goals``."""

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BaseModel, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from agents.plan_entries import SCHEMA as PLAN_SCHEMA
from streams.core import goal as core
from streams.core.values import Inline, Json
from streams.wire.rule_fields import (
    NAME,
    BudgetFields,
    Fields,
    HedgeFields,
    JobName,
    JoinFields,
    LimitFields,
    Name,
    ParentFields,
    Schema,
)

__all__ = ["NAME", "BadFields", "GoalFields", "read_fields"]

_GOAL = core.Goal(text=Inline(value=""))
DEFAULT_TENANT: Final = _GOAL.tenant
_REASON_CHARS: Final = 600


def _words(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("words", "is empty")
    return text.strip()


class GoalFields(Fields):
    """A goal, as a JSON object on ``goals`` or as the data of a CloudEvent."""

    goal: Annotated[str, AfterValidator(_words), Field(description="What is to be achieved, in words.")]
    id: Annotated[
        Name | None,
        Field(description="The job is `tenant/id`; a goal sent twice with one id is one job."),
    ] = None
    tenant: Annotated[Name, Field(description="Who pays and takes turns with others.")] = _GOAL.tenant
    priority: Annotated[int, Field(ge=0, le=9, description="9 goes first.")] = _GOAL.priority
    input: Annotated[Any, Field(description="Any JSON to work on.")] = None
    plan: Annotated[
        Any,  # read by goal_plan.py, as planners' replies are
        Field(
            description="Its sub-tasks, where no planner is to be asked for them.",
            json_schema_extra={"anyOf": [dict(PLAN_SCHEMA), {"type": "null"}]},
        ),
    ] = None
    tools: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=128)]],
        Field(max_length=128, description="Names of the tools that sub-agents may use."),
    ] = []  # noqa: RUF012 - pydantic copies it for each value
    model: Annotated[
        str | None,
        Field(min_length=1, max_length=256, description="The model; the worker's own where not said."),
    ] = None
    deadline_s: Annotated[
        float | None,
        Field(gt=0, le=31_536_000, description="Seconds until it is answered with what is there."),
    ] = None
    budget: BudgetFields = BudgetFields()
    limits: LimitFields = LimitFields()
    join: JoinFields = JoinFields()
    hedge: HedgeFields = HedgeFields()
    answer_schema: Annotated[Schema, Field(description="JSON Schema that the answer keeps to.")] = None
    approve: Annotated[
        list[core.Approval], Field(max_length=3, description="What waits for a person's approval.")
    ] = []  # noqa: RUF012 - pydantic copies it for each value
    grow: Annotated[bool, Field(description="Sub-agents may propose further sub-tasks.")] = False
    notes: Annotated[bool, Field(description="Sub-tasks that the plan names share notes.")] = False
    on_failure: Annotated[
        core.OnFailure, Field(description="Go on without a failed sub-task, or ask a planner again.")
    ] = _GOAL.on_failure
    parent: Annotated[JobName | ParentFields | None, Field(description="The job that it works for.")] = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.join.candidates is not None and self.plan is not None:
            raise PydanticCustomError("candidates", "has a plan and join.candidates: give one of them")
        if self.join.candidates is not None and self.join.candidates > self.limits.max_subtasks:
            raise PydanticCustomError("candidates", "join.candidates is more than limits.max_subtasks")
        return self

    @property
    def items(self) -> int | None:
        """How many items the input has when it is a list, else None."""
        return len(self.input) if isinstance(self.input, list) else None


_NESTED: Final[Mapping[str, type[BaseModel]]] = {
    "budget": BudgetFields,
    "limits": LimitFields,
    "join": JoinFields,
    "hedge": HedgeFields,
}


class BadFields(Exception):
    """A goal's fields are not as they must be; the message names each and what is wrong."""


def read_fields(written: Mapping[str, Json]) -> GoalFields:
    """The goal of a JSON object; null is the same as a field left out.

    Raises:
        BadFields: a field is missing, out of its bounds, or unknown.
    """
    try:
        return GoalFields.model_validate({key: value for key, value in written.items() if value is not None})
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
    told = "; ".join(_problem(problem) for problem in problems[:5])
    raise BadFields(told[:_REASON_CHARS])


def problems_of(written: Mapping[str, Json]) -> list[tuple[tuple[str | int, ...], str]]:
    """What is wrong with the fields of a JSON object: where, and in which words."""
    try:
        GoalFields.model_validate(written)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        return [(problem["loc"], _problem(problem)) for problem in found]
    return []


def _problem(problem: ErrorDetails) -> str:
    place = [str(part)[:64] for part in problem["loc"]] or ["goal"]
    # Behind a field of the goal stand a list's index or a validator's name, behind those of the
    # nested objects their own fields.
    field = ".".join(place[:2]) if place[0] in _NESTED else place[0]
    match problem["type"]:
        case "missing":
            return f"`{field}` is missing"
        case "extra_forbidden":
            near = difflib.get_close_matches(place[-1].lower(), _MEANT, n=1)
            hint = (
                f"did you mean `{_MEANT[near[0]]}`?"
                if near
                else f"known are {', '.join(GoalFields.model_fields)}"
            )
            return f"`{field}` is unknown, {hint}"
        case "model_type":
            return f"`{field}`: should be a JSON object"
        case _:
            return f"`{field}`: {problem['msg'].removeprefix('Input ')}"


_MEANT: Final = {
    **{name: name for name in GoalFields.model_fields},
    **{name: f"{place}.{name}" for place, nested in _NESTED.items() for name in nested.model_fields},
    # What other systems call it.
    **dict.fromkeys(("text", "prompt", "task", "query", "question", "message", "description"), "goal"),
    **dict.fromkeys(("tasks", "subtasks", "steps"), "plan"),
}
