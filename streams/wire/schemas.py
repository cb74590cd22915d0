"""JSON Schemas of all records, printed from the models that check them: ``docs/reference/``.

``python -m streams.wire.schemas docs/reference`` writes them; a test compares.
"""

import inspect
import sys
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic.json_schema import GenerateJsonSchema

from streams.core.values import Reference
from streams.wire.answers import ANSWERS
from streams.wire.bounds import Bounds
from streams.wire.commands import COMMANDS
from streams.wire.envelope import FROM_THE_RECORD, VERSION
from streams.wire.events import EVENTS
from streams.wire.goal_fields import GoalFields
from streams.wire.marks import MARKS
from streams.wire.models import model_of
from streams.wire.transcripts import TRANSCRIPTS

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, bytes]:
    """A JSON Schema by topic: of ``goals`` what is accepted, of the others what is written."""
    printed = {"goals": {"$schema": DIALECT, **GoalFields.model_json_schema()}}
    for topic, kinds in (
        ("job-events", EVENTS),
        ("subtasks", COMMANDS),
        ("transcripts", TRANSCRIPTS),
        ("answers", ANSWERS),
        ("dead-letters", MARKS),
    ):
        one_of = [_kind(cls, kinds.bounds) for cls in kinds.types]
        printed[topic] = {"$schema": DIALECT, "title": topic, "oneOf": one_of}
    return {
        topic: orjson.dumps(schema, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        for topic, schema in printed.items()
    }


def _kind(cls: type, bounds: Bounds) -> dict[str, Any]:
    schema = _schema(cls, bounds)
    # An answer's headers are the record's, and its value stands under one of two names.
    value = schema["properties"].pop("answer", None)
    hidden = FROM_THE_RECORD if value is None else {"headers"}
    properties = {name: field for name, field in schema["properties"].items() if name not in hidden}
    if value is not None:
        properties |= {"answer": {"title": "Answer"}, "answer_ref": _schema(Reference, bounds)}
    return {
        "title": cls.__name__,
        "description": (inspect.getdoc(cls) or "").partition("\n\n")[0].replace("\n", " "),
        "type": "object",
        "properties": {"v": {"const": VERSION}, "type": {"const": cls.__name__}, **properties},
        "required": ["v", "type", *schema.get("required", ())],
    }


def _schema(cls: type, bounds: Bounds) -> dict[str, Any]:
    return GenerateJsonSchema().generate(model_of(cls, bounds))


def main(folder: str) -> None:
    """Write the schemas into *folder*."""
    for topic, schema in schemas().items():
        Path(folder, f"{topic}.schema.json").write_bytes(schema)


if __name__ == "__main__":
    main(sys.argv[1])
