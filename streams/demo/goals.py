"""The demo's goals: an audit of the packages installed here, and those in a file of lines of JSON."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import orjson

from agents.tools.distributions import find, list_distributions
from streams.core.values import JobId
from streams.wire.envelope import Unwritable
from streams.wire.goal_fields import BadFields
from streams.wire.goal_writing import GoalOptions, write_goal

AUDIT_ID: Final = "licence-audit"

AUDIT: Final = (
    "Audit the licences of these packages. First say what is copyleft, unknown or contradictory; then "
    "give one table of all packages with name, version, spdx, verdict, why, requires and size."
)

AUDIT_TOOLS: Final = ("distribution_metadata", "licence_files")

_SHOWN: Final = 5


class BadGoals(Exception):
    """The goals cannot be read; the message names each bad line and what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoGoal:
    """A goal to be submitted; it is known to be a good one.

    Attributes:
        job: The job it will be.
        text: The goal in words.
        options: Everything else it says.
    """

    job: JobId
    text: str
    options: GoalOptions = field(default_factory=GoalOptions)


def licence_audit() -> DemoGoal:
    """The audit of all distributions installed in this environment; names and versions are its input."""
    found = [find(name) for name in list_distributions()]
    packages: Any = [{"name": one.metadata["Name"], "version": one.version} for one in found]
    return _goal(AUDIT, GoalOptions(id=AUDIT_ID, input=packages, tools=AUDIT_TOOLS))


def read_goals(file: Path | None = None) -> tuple[DemoGoal, ...]:
    """The goals in a file, or in the one that comes with this package.

    Each line is a goal as the topic ``goals`` accepts it in JSON: a string, or an object with
    ``goal`` and any other field. A goal without an id is named after its line.

    Raises:
        BadGoals: the file cannot be read, has no goals, or has bad lines.
    """
    try:
        text = (file or files(__package__).joinpath("goals.jsonl")).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadGoals(f"the goals in {file} cannot be read: {error}") from None
    return _read_lines(text.splitlines(), str(file or "goals.jsonl"))


def _read_lines(lines: Iterable[str], name: str) -> tuple[DemoGoal, ...]:
    goals: list[DemoGoal] = []
    faults: list[str] = []
    lines_of: dict[JobId, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            goal = _read_line(line, f"goal-{number}")
        except (BadFields, Unwritable, ValueError) as error:
            faults.append(f"line {number}: {error}")
            continue
        if (earlier := lines_of.setdefault(goal.job, number)) != number:
            faults.append(f"line {number}: its id is that of line {earlier}, so they would be one job")
        goals.append(goal)
    if faults:
        more = [f"and {len(faults) - _SHOWN} more"] if len(faults) > _SHOWN else []
        raise BadGoals("\n  ".join([f"{name} has bad goals:", *faults[:_SHOWN], *more]))
    if not goals:
        raise BadGoals(f"{name} has no goals: write one a line, a JSON string or a JSON object with `goal`")
    return tuple(goals)


def _read_line(line: str, default_id: str) -> DemoGoal:
    """The goal of a line.

    Raises:
        ValueError: it is no JSON string or object.
        BadFields, Unwritable: it is no good goal.
    """
    try:
        written = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ValueError(f'no JSON ({error}); plain text stands in quotes: "Compare …"') from None
    match written:
        case str():
            return _goal(written, {"id": default_id})
        case dict():
            options = {name: value for name, value in written.items() if value is not None}
            return _goal(options.pop("goal", ""), {"id": default_id, **options})
        case _:
            raise ValueError("neither a JSON string nor a JSON object")


def _goal(text: str, options: Any) -> DemoGoal:
    job, _ = write_goal(text, **options)
    return DemoGoal(job=job, text=text, options=options)
