"""Goals: the records of ``goals``, the public way in.

A goal is plain text, a JSON object (``{"goal": "...", "id": "...", ...}``), or a CloudEvent whose
data is one of both. What is read here has all values inline, however large; intake puts the large
ones where they can be claimed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

import orjson
from pydantic import ValidationError

from agents.configuration.values import Configuration
from agents.strict_json import NoOneMeaning, decode
from streams.core.events import JobSubmitted
from streams.core.goal import (
    Asker,
    Budget,
    Goal,
    Hedging,
    JoinRule,
    KindTimeout,
    Limits,
    Source,
    Weight,
)
from streams.core.values import Grant, Inline, JobId, Json
from streams.log import Headers, Record
from streams.wire import cloud_events, values
from streams.wire.cloud_events import BadCloudEvent, CloudEvent
from streams.wire.envelope import Unreadable, parse
from streams.wire.goal_fields import DEFAULT_TENANT, NAME, BadFields, GoalFields, read_fields
from streams.wire.goal_plan import brought_plan
from streams.wire.headers import read_headers, too_many
from streams.wire.rule_fields import ParentFields
from streams.wire.tenant_rules import resolved, tenant_rules

DEPTH: Final = values.DEPTH
"""Levels of nesting of a goal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadGoal:
    """A record of ``goals`` that is no goal.

    Attributes:
        reason: What is wrong with which field, for whoever sent it.
        job: The job that its id names, where the id could be read: its answer says ``rejected``.
        parent: The attempt that waits for that answer, where one does.
    """

    reason: str
    job: JobId | None = None
    parent: ParentFields | None = None


class Refused(Exception):
    """The record is no goal; the message says why."""


class Ambiguous(Exception):
    """The record's JSON has no one meaning.

    Attributes:
        fields: Those of which nobody doubts what they say.
        whole: All of it, as one of its readers would take it.
    """

    def __init__(self, error: NoOneMeaning, value: Json) -> None:
        super().__init__(f"the value has no one meaning: {error}")
        self.whole = value
        whole = isinstance(value, Mapping) and error.key not in _NAMING
        self.fields: Mapping[str, Json] = value if isinstance(value, Mapping) and whole else {}


def read_goal(
    record: Record, *, lanes: int, configured: Configuration | None = None
) -> JobSubmitted | BadGoal:
    """What a record of ``goals`` asks for. A plan that it brings is admitted here.

    Its digest is of what it says itself: sent again after a change of the defaults, it is the same job.

    Args:
        lanes: Partitions of the system, which the event carries.
        configured: Says the defaults and rules of tenants. None: there are none.
    """
    named: str | None = None
    written: Mapping[str, Json] = {}
    try:
        event, value, content_type = opened(record)
        named = event.job_id if event else None
        written = fields_in(value, content_type)
        fields = read_fields(written)
        digest = _digest(fields)
        if configured is not None:
            fields = resolved(written, fields, configured)
        plan = brought_plan(fields)
        _carry(record.headers)
    except Ambiguous as error:
        return BadGoal(reason=str(error), job=_job(error.fields, None))
    except (Refused, BadCloudEvent, BadFields, Unreadable) as error:
        return BadGoal(reason=str(error), job=_job(written, named), parent=_waits(written))
    derived = f"{record.topic}-{record.partition}-{record.offset}"
    return JobSubmitted(
        job=f"{fields.tenant}/{fields.id or named or derived}",
        goal=_ruled(_goal(fields, digest), configured),
        source=Source(topic=record.topic, partition=record.partition, offset=record.offset),
        lanes=lanes,
        headers=read_headers(record.headers),
        plan=plan,
    )


def _ruled(goal: Goal, configured: Configuration | None) -> Goal:
    """The goal with what its tenant may do, which no goal says itself."""
    if configured is None:
        return goal
    gate = configured.tenant(goal.tenant).gate.model
    return replace(goal, gate=gate, rules=tenant_rules(configured, goal.tenant))


def _carry(headers: Headers) -> None:
    if crowd := too_many(headers):
        raise Refused(crowd)


def opened(record: Record) -> "tuple[CloudEvent | None, bytes | Json, str]":
    """The record's CloudEvent, if it is one; the goal in it, bytes or JSON; its content type."""
    if record.value is None:
        raise Refused("the record has no value (a tombstone)")
    headers = cloud_events.attributes(record.headers)
    content_type = cloud_events.media_type(headers.get("content-type", ""))
    event: CloudEvent | None = None
    if content_type.startswith(cloud_events.BATCH):
        raise Refused("a batch of CloudEvents: send one event a record")
    if content_type == cloud_events.STRUCTURED:
        event = cloud_events.open_structured(_json(record.value.removeprefix(_BOM)))
    elif "ce_specversion" in headers:
        event = cloud_events.open_binary(record.value, headers)
    elif cloud_events.is_structured(value := _read(record.value, content_type)):
        event = cloud_events.open_structured(value)
    else:
        return None, value, content_type
    return event, event.data, cloud_events.media_type(event.content_type)


def fields_in(value: "bytes | Json", content_type: str) -> Mapping[str, Json]:
    """The goal's fields; text is the goal itself."""
    if isinstance(value, bytes):
        value = _read(value, content_type)
    if isinstance(value, str):
        return {"goal": value}
    if not isinstance(value, Mapping):
        raise Refused(f"a goal is text or a JSON object, not {_JSON_NAMES.get(type(value), 'this')}")
    return value


_JSON_NAMES: Final = {
    list: "a list",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}


def _read(data: bytes, content_type: str) -> Json:
    """Plain text as a string, JSON as what it is; by its content type, or else by its looks."""
    data = data.removeprefix(_BOM).strip()
    is_json = content_type == "application/json" or content_type.endswith("+json")
    is_text = content_type.startswith("text/")
    if is_json or (not is_text and data.startswith(b"{")):
        return _json(data)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"the value is not UTF-8: {error.reason} at byte {error.start}") from None
    if "\x00" in text:
        raise Refused("the value is binary: it has a zero byte (a schema registry's frame is not read)")
    if is_text:
        return text
    try:
        # Serialisers for JSON put plain text in quotes, and send null or a list where code went wrong.
        value: Json = orjson.loads(data)
    except orjson.JSONDecodeError:
        return text
    return value


_BOM: Final = b"\xef\xbb\xbf"
_NAMING: Final = frozenset({"id", "tenant"})


def _json(data: bytes) -> Json:
    """JSON that means one thing: of two equal keys a goal would silently lose one."""
    value: Json = parse(data, depth=DEPTH)
    try:
        decode(data.strip().decode())
    except NoOneMeaning as error:
        raise Ambiguous(error, {} if cloud_events.is_structured(value) else value) from None
    return value


def _job(written: Mapping[str, Json], named: str | None) -> JobId | None:
    own, tenant = written.get("id"), written.get("tenant")
    name = named if own is None else own
    tenant = DEFAULT_TENANT if tenant is None else tenant
    if isinstance(name, str) and isinstance(tenant, str) and NAME.fullmatch(name) and NAME.fullmatch(tenant):
        return f"{tenant}/{name}"
    return None


def _waits(written: Mapping[str, Json]) -> ParentFields | None:
    """Whoever waits for the answer to a goal that is none, where that can be read."""
    try:
        return ParentFields.model_validate(written["parent"])
    except (KeyError, ValidationError):
        return None


def _digest(fields: GoalFields) -> str:
    # Without what is at its default: another default in a later version must not make a
    # redelivered goal another goal.
    meaning = fields.model_dump(exclude={"id", "input", "plan"}, exclude_defaults=True)
    meaning |= {"input": fields.input} | ({} if fields.plan is None else {"plan": fields.plan})
    try:
        return sha256(orjson.dumps(meaning, option=orjson.OPT_SORT_KEYS)).hexdigest()
    except orjson.JSONEncodeError as error:
        raise Refused(f"the goal has no JSON: {error}") from None


def _goal(fields: GoalFields, digest: str) -> Goal:
    return Goal(
        text=Inline(value=fields.goal),
        input=None if fields.input is None else Inline(value=fields.input),
        items=fields.items,
        tenant=fields.tenant,
        priority=fields.priority,
        tools=tuple(dict.fromkeys(fields.tools)),
        model=fields.model,
        deadline_s=fields.deadline_s,
        budget=_budget(fields),
        limits=_limits(fields),
        join=_join(fields),
        digest=digest,
        answer_schema=fields.answer_schema,
        hedge=Hedging(**fields.hedge.model_dump()),
        approve=tuple(dict.fromkeys(fields.approve)),
        grow=fields.grow,
        notes=fields.notes,
        on_failure=fields.on_failure,
        **_parent(fields.parent),
    )


def _budget(fields: GoalFields) -> Budget:
    given = fields.budget
    subtask = None if given.subtask is None else Grant(**given.subtask.model_dump())
    return Budget(tokens=given.tokens, calls=given.calls, usd=given.usd, subtask=subtask)


def _limits(fields: GoalFields) -> Limits:
    given = fields.limits.model_dump(exclude={"timeouts"})
    timeouts = tuple(KindTimeout(kind=kind, timeout_s=s) for kind, s in fields.limits.timeouts.items())
    return Limits(**given, timeouts=timeouts)


def _join(fields: GoalFields) -> JoinRule:
    given = fields.join.model_dump(exclude={"weights", "models", "row"})
    weights = tuple(Weight(model=model, weight=weight) for model, weight in fields.join.weights.items())
    return JoinRule(**given, weights=weights, models=tuple(fields.join.models), row=fields.join.row)


def _parent(given: str | ParentFields | None) -> dict[str, Any]:
    if given is None:
        return {}
    if isinstance(given, str):
        return {"parent": given, "depth": 1}
    asker = given.task and Asker(task=given.task, attempt=given.attempt, call=given.call)
    return {"parent": given.job, "depth": given.depth, "asker": asker or None}
