"""CloudEvents 1.0 as they stand on Kafka: the event in the value (structured), or in the headers (binary).

Source: the CloudEvents specification 1.0.2 and its protocol binding for Kafka.
"""

import re
from base64 import b64decode
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from streams.core.values import Json
from streams.log import Headers

STRUCTURED: Final = "application/cloudevents+json"
BATCH: Final = "application/cloudevents-batch"
_REQUIRED: Final = ("id", "source", "type")
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9._~-]{1,128}")


class BadCloudEvent(Exception):
    """A record says that it is a CloudEvent, and is none; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudEvent:
    """A CloudEvent opened.

    Attributes:
        job_id: The event's id where it can be a job's, else a digest of its source and id: an id
            is unique only within its source, but within it always.
        data: Bytes still to be read, or JSON that stood in the event.
        content_type: Of *data*, empty where not said.
    """

    job_id: str
    data: "bytes | Json"
    content_type: str


def attributes(headers: Headers) -> dict[str, str]:
    """Headers by name in lower case; those that are no text are left out."""
    found = {}
    for name, value in headers:
        try:
            found[name.lower()] = (value or b"").decode()
        except UnicodeDecodeError:
            continue
    return found


def media_type(content_type: str) -> str:
    """``application/json`` of ``Application/JSON; charset=utf-8``."""
    return content_type.partition(";")[0].strip().lower()


def is_structured(fields: Json) -> bool:
    """True where JSON is a CloudEvent, whatever the headers say."""
    return isinstance(fields, dict) and "specversion" in fields and "goal" not in fields


def open_binary(value: bytes, headers: dict[str, str]) -> CloudEvent:
    """The event of a record with ``ce_`` headers; its value is the data.

    Raises:
        BadCloudEvent: a required attribute is missing.
    """
    found = {name.removeprefix("ce_"): text for name, text in headers.items() if name.startswith("ce_")}
    return CloudEvent(job_id=_job_id(found), data=value, content_type=headers.get("content-type", ""))


def open_structured(fields: Json) -> CloudEvent:
    """The event that stands as JSON in a record's value.

    Raises:
        BadCloudEvent: a required attribute or the data is missing.
    """
    if not isinstance(fields, dict):
        raise BadCloudEvent("the CloudEvent is not a JSON object")
    job_id = _job_id(fields)
    content_type = fields.get("datacontenttype")
    content_type = content_type if isinstance(content_type, str) else ""
    if fields.get("data") is not None:
        return CloudEvent(job_id=job_id, data=fields["data"], content_type=content_type)
    encoded = fields.get("data_base64")
    if not isinstance(encoded, str):
        raise BadCloudEvent("the CloudEvent has no `data`")
    try:
        return CloudEvent(job_id=job_id, data=b64decode(encoded, validate=True), content_type=content_type)
    except ValueError:
        raise BadCloudEvent("the CloudEvent's `data_base64` is not base64") from None


def _job_id(found: "dict[str, str] | dict[str, Json]") -> str:
    version = found.get("specversion")
    if version != "1.0":
        raise BadCloudEvent("the CloudEvent's `specversion` should be 1.0")
    for name in _REQUIRED:
        if not (isinstance(found.get(name), str) and found[name]):
            raise BadCloudEvent(f"the CloudEvent's `{name}` is missing")
    event_id = str(found["id"])
    if _PLAIN_ID.fullmatch(event_id):
        return event_id
    return "ce-" + sha256(f"{found['source']}\n{event_id}".encode()).hexdigest()[:40]
