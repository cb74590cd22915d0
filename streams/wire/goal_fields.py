"""The fields that a goal may have, and their bounds: the model of the records of ``goals``."""

import difflib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from agents.plan_entries import SCHEMA as PLAN_SCHEMA
from streams.core import goal as core
from streams.core.values import Inline, Json
from streams.wire import bounds

NAME: Final = re.compile(bounds.NAME)
"""What ids and tenants are made of."""

_GOAL, _LIMITS, _JOIN = core.Goal(text=Inline(value="")), core.Limits(), core.JoinRule()
DEFAULT_TENANT: Final = _GOAL.tenant
_REASON_CHARS: Final = 600


def _name(text: str) -> str:
    if NAME.fullmatch(text) is None:
        raise PydanticCustomError("name", "should be 1 to 128 letters, digits or . _ ~ -")
    return text


def _words(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("words", "is empty")
    return text.strip()


Name = Annotated[str, AfterValidator(_name)]
Ratio = Annotated[float, Field(ge=0, le=1)]


class _Fields(BaseModel):
    # Unknown fields are refused: a mistyped `deadline_s` would cost money silently.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class LimitFields(_Fields):
    """How much the job may do at once and in all."""

    max_subtasks: Annotated[int, Field(ge=1, le=100, description="Sub-tasks in the plan.")] = (
        _LIMITS.max_subtasks
    )
    concurrency: Annotated[int, Field(ge=1, le=10_000, description="Sub-tasks running at once.")] = (
        _LIMITS.concurrency
    )
    timeout_s: Annotated[float, Field(gt=0, le=86_400, description="Seconds one attempt may run.")] = (
        _LIMITS.timeout_s
    )
    max_attempts: Annotated[int, Field(ge=1, le=10, description="Attempts a sub-task has.")] = (
        _LIMITS.max_attempts
    )


class JoinFields(_Fields):
    """When results make an answer."""

    min_success_ratio: Annotated[
        Ratio, Field(description="Share that must succeed for a partial answer.")
    ] = _JOIN.min_success_ratio
    fail_fast_ratio: Annotated[Ratio, Field(description="Share of failures beyond which the job ends.")] = (
        _JOIN.fail_fast_ratio
    )


class BudgetFields(_Fields):
    """What the job may spend; no limit where nothing is said."""

    tokens: Annotated[int | None, Field(gt=0, le=10**15, description="Tokens, in and out.")] = None
    calls: Annotated[int | None, Field(gt=0, le=10**15, description="Model calls.")] = None
    usd: Annotated[float | None, Field(gt=0, le=10**15, description="US dollars, at list prices.")] = None


class GoalFields(_Fields):
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
    ] = []
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

    @property
    def items(self) -> int | None:
        """How many items the input has when it is a list, else None."""
        return len(self.input) if isinstance(self.input, list) else None


_NESTED: Final[Mapping[str, type[BaseModel]]] = {
    "budget": BudgetFields,
    "limits": LimitFields,
    "join": JoinFields,
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


def _problem(problem: ErrorDetails) -> str:
    place = [str(part)[:64] for part in problem["loc"]]
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
