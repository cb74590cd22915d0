"""What the pages say in tables, against the code that it is about; and that every link leads somewhere."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest
import typer
from pydantic import BaseModel

from agents.tools.shipped import shipped_tools
from streams.cli import app
from streams.cli.environment import VARIABLES
from streams.cli.exits import Exit
from streams.core.commands import Answer, Outcome, TaskReport
from streams.core.events import JobSubmitted
from streams.core.values import Usage
from streams.log import Record
from streams.settings import Settings
from streams.topics import topics
from streams.wire.goal_fields import GoalFields
from streams.wire.goals import read_goal
from tests.docs.pages import README, ROOT, blocks, links, names, pages, table

TOPICS = ROOT / "docs" / "topics.md"
DAY_MS = 86_400_000


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Within the repository; those to the outside are not asked."""
    for link in links(page):
        place, _, section = link.partition("#")
        if place.startswith("https://"):
            continue
        target = (page.parent / place) if place else page
        assert target.exists(), f"{page.name} links to {link}"
        if section:
            heads = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert section in {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}


def test_every_decision_is_in_the_architecture() -> None:
    """By its file."""
    told = {Path(link).name for link in links(ROOT / "docs" / "architecture.md") if link.startswith("adr/")}
    assert told == {page.name for page in (ROOT / "docs" / "adr").glob("*.md")}


def test_goal_fields_and_their_defaults() -> None:
    """Every field that a goal may have stands in the README's table, with its default."""
    told = {name: row[2] for row in table(README, "field") for name in names(row[0])}
    known = dict(_fields(GoalFields))
    assert told.keys() == known.keys()
    for name, default in known.items():
        if isinstance(default, int | float) and not isinstance(default, bool):
            assert told[name].replace(",", "").split()[0].strip("`") == f"{default:g}", name
        elif isinstance(default, str):
            assert told[name] == f"`{default}`", name


def _fields(model: type[BaseModel], place: str = "") -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for name, field in model.model_fields.items():
        if isinstance(field.default, BaseModel):
            found += _fields(type(field.default), f"{name}.")
        else:
            found.append((place + name, field.default))
    return found


def test_goal_bounds() -> None:
    """Numbers from the schema stand in the table's last column."""
    told = {name: row[3].replace(",", "") for row in table(README, "field") for name in names(row[0])}
    schema = GoalFields.model_json_schema()
    nested = {name: schema["$defs"][f"{title}Fields"]["properties"] for name, title in NESTED.items()}
    for name in (
        "priority",
        *(f"limits.{n}" for n in nested["limits"]),
        *(f"join.{n}" for n in nested["join"]),
    ):
        group, _, own = name.rpartition(".")
        field = nested[group][own] if group else schema["properties"][own]
        if "anyOf" in field:
            field = field["anyOf"][0]
        if not {"minimum", "exclusiveMinimum"} & field.keys():
            continue  # no number
        if "minimum" in field:
            assert told[name] == f"{field['minimum']} to {field['maximum']}", name
        else:
            assert (field["exclusiveMinimum"], field["maximum"]) == (0, 86_400)
            assert told[name] == "over 0 to a day", name


NESTED = {"limits": "Limit", "join": "Join"}


def test_variables_and_their_flags() -> None:
    """Every setting that has a variable, with its default."""
    rows = {names(row[0])[0]: row for row in table(README, "variable")}
    assert rows.keys() == set(VARIABLES.values())
    flags = _flags(typer.main.get_command(app))
    for field, variable in VARIABLES.items():
        _, flag, _, default = rows[variable]
        assert flag == "none" or names(flag)[0] in flags
        if value := getattr(Settings(), field):
            assert default.strip("`") == str(value)


def _flags(command: object) -> set[str]:
    found = {flag for parameter in getattr(command, "params", ()) for flag in parameter.opts}
    return found.union(*(_flags(inner) for inner in getattr(command, "commands", {}).values()))


def test_commands() -> None:
    """All of them, and those of their groups."""
    told = set()
    for row in table(README, "command"):
        first, *more = names(row[0])
        group = first.partition(" ")[0]
        told |= {first, *((f"{group} {name}" if " " in first else name) for name in more)}
    found = set()
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]  # a group
        found |= {f"{name} {inner}" for inner in getattr(command, "commands", ())} or {name}
    assert told == found


@pytest.mark.parametrize(("page", "column"), [(README, 2), (TOPICS, 3)], ids=["README", "topics"])
def test_topics_and_how_long_they_keep(page: Path, column: int) -> None:
    """By the settings they are made with."""
    told = {names(row[0])[0]: row[column] for row in table(page, "topic")}
    kept = {
        topic.name: "compacted"
        if topic.config["cleanup.policy"] == "compact"
        else f"{int(topic.config['retention.ms']) // DAY_MS} days"
        for topic in topics(Settings())
    }
    assert told == kept


def test_topics_clocks() -> None:
    """Whose time the records have."""
    told = {names(row[0])[0]: row[4] for row in table(TOPICS, "topic")}
    clock = {"LogAppendTime": "broker's", "CreateTime": "producer's"}
    assert told == {topic.name: clock[topic.config["message.timestamp.type"]] for topic in topics(Settings())}


def test_what_the_readme_says_in_words() -> None:
    """Exit codes, outcomes, tools, times."""
    text = " ".join(README.read_text(encoding="utf-8").split())
    assert all(re.search(rf"\b{code.value} ", text.partition("exit codes are")[2]) for code in Exit)
    assert all(f"`{outcome}`" in text for outcome in get_args(Outcome))
    assert all(f"`{name}`" in text for name in shipped_tools().names())
    ours = Settings()
    assert f"after {ours.session_timeout_s:g} s of silence" in text
    assert f"running sub-agents {ours.drain_s:g} s" in text
    assert f"no progress for {ours.stall_s:g} s" in text or f"for {ours.stall_s:g} s ends the worker" in text


def test_the_sample_answer_has_every_field() -> None:
    """And no other."""
    (sample,) = [one for one in _samples() if one.get("type") == "Answer"]
    assert sample.keys() - {"v", "type"} == {field.name for field in fields(Answer)} - {"headers"}
    assert sample["usage"].keys() == {field.name for field in fields(Usage)}
    assert sample["subtasks"][0].keys() == {field.name for field in fields(TaskReport)}


def test_sample_goals_are_good_ones() -> None:
    """As intake reads them."""
    goals = [one for one in _samples() if "goal" in one]
    assert goals
    for goal in goals:
        record = Record("goals", 0, 0, 0, None, orjson.dumps(goal))
        assert isinstance(read_goal(record, lanes=8), JobSubmitted)


def _samples() -> list[dict[str, Any]]:
    return [orjson.loads(text) for language, text in blocks(README) if language == "json"]
