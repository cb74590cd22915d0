"""Child goals of attempts: their ids and their records."""

from hashlib import sha256
from typing import Any

from agents.ports import ToolCall
from streams.core.commands import Command, RunSubTask
from streams.core.values import JobId, Json
from streams.wire.goal_writing import write_goal


def child_goal(command: Command, call: ToolCall, goal: Json) -> tuple[JobId, bytes]:
    """The job that an attempt's call submits, and its record's value.

    Its id follows from the call: a call that is made again is the same job. It has the parent's tenant.

    Raises:
        BadFields, Unwritable: as of :func:`streams.wire.goal_writing.write_goal`.
    """
    tenant = command.job.partition("/")[0]
    asker = f"{command.job}/{command.task}/{command.attempt}/{call.id}"
    fields: dict[str, Any] = dict(goal) if isinstance(goal, dict) else {}
    text = fields.pop("goal", "")
    depth = command.depth if isinstance(command, RunSubTask) else 0
    parent: dict[str, Json] = {
        "job": command.job,
        "task": command.task,
        "attempt": command.attempt,
        "call": call.id,
        "depth": depth + 1,
    }
    name = f"child-{sha256(asker.encode()).hexdigest()[:32]}"
    return write_goal(text, **fields, id=name, tenant=tenant, parent=parent)
