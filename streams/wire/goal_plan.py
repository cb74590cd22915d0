"""The plan that a goal may bring: read and admitted as a planner's would be, before the job exists."""

from typing import Final

from agents.plan_entries import read_entries
from streams.core.admission import Refused
from streams.core.plan import Plan
from streams.wire.goal_fields import BadFields, GoalFields

_REASON_CHARS: Final = 900


def brought_plan(fields: GoalFields) -> Plan:
    """The plan in *fields*, expanded over the items of its input; empty where there is none.

    Raises:
        BadFields: it cannot be admitted; the message has the reasons.
    """
    if fields.plan is None:
        return ()
    read = read_entries(
        fields.plan,
        max_subtasks=fields.limits.max_subtasks,
        items=fields.items,
        tools=fields.tools,
        ours=True,
    )
    if isinstance(read, Refused):
        raise BadFields(f"`plan`: {'; '.join(read.reasons)}"[:_REASON_CHARS])
    return read
