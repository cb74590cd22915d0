"""Words of people about jobs, on ``goals`` beside the goals: approve, reject, cancel.

Such a record is a JSON object, or a CloudEvent with one: ``{"approve": "tenant/id", "what": "plan",
"task": "...", "reason": "..."}``, and likewise ``"reject"`` and ``"cancel"``. An object with ``goal`` in it
is a goal, whatever else it says.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from streams.core.events import ApprovalGiven, ApprovalRefused, FromOutside, JobCancelled
from streams.core.goal import Approval, Source
from streams.core.values import JobId, Json
from streams.log import Record
from streams.wire.cloud_events import BadCloudEvent
from streams.wire.envelope import Unreadable, dump
from streams.wire.goals import DEPTH, Ambiguous, Refused, fields_in, opened
from streams.wire.rule_fields import Fields, JobName

VERBS: Final = ("approve", "reject", "cancel")

BYTES: Final = 16_384
"""Bytes of such a record at most: its reason is 2,000 characters, and a CloudEvent has other attributes."""

_LOOKS_SO: Final = re.compile(rb'"(?:approve|reject|cancel|data_base64)"')
CLAIMED: Final = " (claimed)"
"""Behind the name of somebody of whom only their own record says who they are."""


class WordFields(Fields):
    """What a person says of a job."""

    approve: Annotated[JobName | None, Field(description="The job that may go on.")] = None
    reject: Annotated[JobName | None, Field(description="The job that may not, and ends.")] = None
    cancel: Annotated[JobName | None, Field(description="The job that is to end, whatever it is at.")] = None
    what: Annotated[
        Approval | None, Field(description="Which of the things that wait; all where not said.")
    ] = None
    task: Annotated[
        str | None,
        Field(pattern=r"^[A-Za-z0-9._~-]{1,64}$", description="The sub-task whose tool call is meant."),
    ] = None
    reason: Annotated[str, Field(max_length=2_000, description="Why, for whoever reads the answer.")] = ""
    by: Annotated[str, Field(max_length=256, description="Who says so, where Kafka does not know it.")] = ""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if sum(job is not None for job in (self.approve, self.reject, self.cancel)) != 1:
            raise PydanticCustomError("verb", "say one of approve, reject and cancel")
        if self.cancel is not None and (self.what is not None or self.task is not None):
            raise PydanticCustomError("cancel", "a job is cancelled whole: leave out `what` and `task`")
        if self.task is not None and self.what in ("plan", "answer"):
            raise PydanticCustomError(
                "task", "`task` is for tool calls: plan and answer are of the whole job"
            )
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class BadWord:
    """A record that is meant as such a word, and is none; *reason* says what is wrong with which field."""

    reason: str


def read_word(record: Record) -> FromOutside | BadWord | None:
    """What a record says of a job; None where it is a goal, or nothing that anybody can read.

    ``by`` is what the record itself claims, and says that it is claimed.
    """
    value = record.value or b""
    if len(value) > BYTES or _LOOKS_SO.search(value) is None:
        return None
    try:
        _, inner, content_type = opened(record)
        written = fields_in(inner, content_type)
    except Ambiguous as error:
        return BadWord(reason=str(error)) if is_word(error.whole) else None
    except (Refused, BadCloudEvent, Unreadable):
        return None  # as a goal it is refused with the reason
    if not is_word(written):
        return None
    try:
        fields = WordFields.model_validate({key: each for key, each in written.items() if each is not None})
    except ValidationError as error:
        return BadWord(reason=_told(error))
    source = Source(topic=record.topic, partition=record.partition, offset=record.offset)
    return _event(fields, source)


def is_word(written: Json) -> bool:
    """Whether JSON is such a word: one of the verbs stands in it, and no goal."""
    return isinstance(written, Mapping) and "goal" not in written and any(verb in written for verb in VERBS)


def write_word(verb: str, job: JobId, **fields: Json) -> bytes:
    """A record's value: *verb* is one of :data:`VERBS`.

    Raises:
        ValueError: a field is unknown or out of its bounds; the message says which.
    """
    written = {verb: job} | {name: value for name, value in fields.items() if value}
    try:
        WordFields.model_validate(written)
    except ValidationError as error:
        raise ValueError(_told(error)) from None
    return dump(written, depth=DEPTH)


def _event(fields: WordFields, source: Source) -> FromOutside:
    by = f"{fields.by}{CLAIMED}" if fields.by else ""
    if fields.cancel is not None:
        return JobCancelled(job=fields.cancel, by=by, reason=fields.reason, source=source)
    if fields.approve is not None:
        return ApprovalGiven(
            job=fields.approve, what=fields.what, task=fields.task, by=by, reason=fields.reason, source=source
        )
    assert fields.reject is not None
    return ApprovalRefused(
        job=fields.reject, what=fields.what, task=fields.task, by=by, reason=fields.reason, source=source
    )


def _told(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    told = []
    for problem in problems[:5]:
        field = ".".join(str(part)[:64] for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            told.append(f"`{field}` is unknown, known are {', '.join(WordFields.model_fields)}")
        else:
            said = problem["msg"].removeprefix("Input ")
            told.append(f"`{field}`: {said}" if field else said)
    return "; ".join(told)[:600]
