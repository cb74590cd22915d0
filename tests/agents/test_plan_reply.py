"""A planner's reply is read leniently around the plan, and never repaired into another plan."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents import json_in_text
from agents.json_in_text import find_json
from agents.plan_reply import CUT_OFF, MAX_CHARACTERS, NO_PLAN, read_plan
from streams.core.admission import MAX_REASONS, Refused
from streams.core.commands import MakePlan
from streams.core.plan import Plan, SubTask
from streams.core.values import Inline

CASES = [
    json.loads(line) for line in (Path(__file__).parent.parent / "cases/plans.jsonl").read_text().splitlines()
]

ENTRY = st.fixed_dictionaries(
    {"id": st.text("abc", min_size=1, max_size=3), "goal": st.text(min_size=1, max_size=12)},
    optional={
        "dep": st.lists(st.text("abc", min_size=1, max_size=3), max_size=2),
        "args": st.sampled_from(
            [{}, {"x": ['"]}', [{"id": "z"}]], "\\": "{["}, {"tasks": [{"id": "z", "goal": "z"}]}]
        ),
    },
)
PROSE = st.text("abc .,:'()!\n-", max_size=30)


def asked(*, max_subtasks: int = 100, items: int | None = None) -> MakePlan:
    """What the planner was asked for."""
    return MakePlan(
        job="t/j",
        task="plan",
        attempt=1,
        ordinal=0,
        timeout_s=60,
        text=Inline(value="audit it"),
        items=items,
        tools=("read",),
        max_subtasks=max_subtasks,
    )


def read(text: str, finish_reason: str = "stop") -> Plan | Refused:
    """Read a reply to some goal without a list."""
    return read_plan(text, finish_reason, asked())


@pytest.mark.parametrize("case", CASES, ids=[case["case"].replace(" ", "-") for case in CASES])
def test_replies_from_the_field(case: dict[str, Any]) -> None:
    """Each reply becomes its plan whole, or is refused with reasons that name what is wrong."""
    command = asked(max_subtasks=case.get("max_subtasks", 100), items=case.get("items"))
    outcome = read_plan(case["reply"], case.get("finish_reason", "stop"), command)
    if case["want"] == "accepted":
        assert not isinstance(outcome, Refused), outcome.reasons
        assert [task.id for task in outcome] == case["tasks"]
    else:
        assert isinstance(outcome, Refused), outcome
        for reason in case["reasons"]:
            assert any(reason in said for said in outcome.reasons), (reason, outcome.reasons)


def test_every_field_arrives() -> None:
    """By its own name and by the names that other planners are taught."""
    own = {"id": "b", "goal": "g", "kind": "k", "dep": ["a"], "model": "m", "tool": "t", "args": {"x": [1]}}
    first = {"id": "a", "prompt": "p", "type": "extract", "depends_on": [], "input": "all"}
    assert read(json.dumps([first, own])) == (
        SubTask(id="a", goal="p", kind="extract", input="all"),
        SubTask(id="b", goal="g", kind="k", dep=("a",), model="m", tool="t", args={"x": [1]}),
    )


def test_what_is_cut_off_is_told_by_the_beginning_of_its_reason() -> None:
    """The planner gives the next reply more room where it reads this."""
    for text in ('[{"id": "a", "goal": "x"}', '[{"id'):
        outcome = read(text)
        assert isinstance(outcome, Refused)
        assert outcome.reasons[0].startswith(CUT_OFF)
    assert read("[]", "length") == Refused(reasons=(CUT_OFF,))


@given(st.lists(ENTRY, min_size=1, max_size=4), PROSE, PROSE, st.sampled_from([None, 0, 2]))
def test_surroundings_change_nothing(entries: list[Any], before: str, after: str, indent: int | None) -> None:
    """Prose, a fence, an envelope: the outcome is that of the bare list."""
    bare = read(json.dumps(entries))
    text = json.dumps(entries, indent=indent, ensure_ascii=False)
    assert read(f"{before}{text}{after}") == bare
    assert read(f"{before}\n```json\n{text}\n```\n{after}") == bare
    assert read(f"<think>{before}[{{</think>{text}") == bare
    for envelope in ({"tasks": entries}, {"subtasks": entries}, {"plan": {"tasks": entries}}):
        assert read(before + json.dumps(envelope) + after) == bare


@given(st.lists(ENTRY, min_size=1, max_size=5), st.booleans(), st.data())
def test_a_plan_cut_anywhere_is_no_plan(entries: list[Any], wrapped: bool, data: st.DataObject) -> None:
    """Whatever is left of it is not read as a shorter plan, even where the endpoint calls it whole."""
    text = json.dumps({"tasks": entries} if wrapped else entries, ensure_ascii=data.draw(st.booleans()))
    place = data.draw(st.integers(0, len(text) - 1))
    outcome = read(f"Here: {text[:place]}")
    assert isinstance(outcome, Refused)
    if place > text.index(":"):
        assert outcome.reasons == (f"{CUT_OFF}: its JSON has no end",)


@given(st.lists(ENTRY, min_size=1, max_size=4), st.data())
def test_a_plan_with_a_character_too_many_or_few_is_no_other_plan(
    entries: list[Any], data: st.DataObject
) -> None:
    """Damage of the structure never makes a plan with other sub-tasks, or fewer of them."""
    text = json.dumps([{"id": "first", "goal": "x", "tasks": [{"id": "inner", "goal": "y"}]}, *entries])
    place = data.draw(st.sampled_from([n for n, letter in enumerate(text) if letter in "[]{},:"]))
    for damaged in (text[:place] + text[place + 1 :], text[:place] + text[place] + text[place:]):
        outcome = read(damaged)
        assert isinstance(outcome, Refused) or outcome == read(text)


@given(st.text() | st.text('[]{}",:\\ntrue1 \n-e.<think>/`', max_size=60))
@example("\ud800[{")
@example('[{"id": "a", "goal": "\ud800"}]')
@example("[" * MAX_CHARACTERS)
@example('{"a":' * (MAX_CHARACTERS // 5))
@example("[" * (MAX_CHARACTERS + 1))
def test_any_text_has_an_outcome(text: str) -> None:
    """Never an exception; reasons are there, bounded, and can be sent on."""
    outcome = read(text)
    assert isinstance(outcome, Refused)
    assert 0 < len(outcome.reasons) <= MAX_REASONS + 2
    json.dumps(outcome.reasons, ensure_ascii=False).encode()


@given(st.text('[]{}",:1 a\n', max_size=40))
def test_json_is_found_as_the_standard_library_reads_it(text: str) -> None:
    """What is found is JSON; and what is JSON as a whole is found."""
    for value in find_json(text).values:
        json.loads(value)
    try:
        whole = json.loads(text)
    except ValueError:
        return
    if isinstance(whole, (list, dict)):
        assert find_json(text).values == (text.strip(),)


@given(
    st.recursive(st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), st.lists).map(
        lambda v: [v]
    )
)
def test_any_list_is_found(value: Any) -> None:
    """Between words, whatever its strings hold."""
    text = json.dumps(value, ensure_ascii=False)
    assert find_json(f"so: {text} done").values == (text,)


HOSTILE = [
    "[", "{", '{"a":', '["', '"[', "[[1],", '["[",', '["\\"[', "[ ", '{"a" ', "[{},", "{}", "<think>",
    "</think>", "[1,", '[{"a":1,', '{"a":x', "]", "```", '["\\', '[\n"',
]  # fmt: skip


class CountingPattern:
    """A pattern that counts the characters it goes over: steps, whatever the machine is busy with."""

    def __init__(self, pattern: Any, steps: list[int]) -> None:
        self.pattern = pattern
        self.steps = steps

    def match(self, text: str, place: int) -> Any:
        """As of ``re.Pattern``; counts what was matched, and one for the try."""
        found = self.pattern.match(text, place)
        self.steps[0] += 1 + (found.end() - place if found else 0)
        return found


@pytest.mark.parametrize("part", HOSTILE)
def test_hostile_text_costs_its_length(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the text, twice the steps, and few of them a character."""
    steps = [0]
    for name in ("_TOKEN", "_CUT", "_SPACE", "_MEMBER"):
        monkeypatch.setattr(json_in_text, name, CountingPattern(getattr(json_in_text, name), steps))
    counted = []
    for size in (5_000, 10_000):
        steps[0] = 0
        find_json(part * (size // len(part)))
        counted.append(steps[0])
    assert counted[1] <= 2.1 * counted[0] + 500
    assert counted[1] <= 6 * 10_000


def test_a_reply_too_long_is_not_read() -> None:
    """The work is linear, but it is done on the event loop."""
    outcome = read("x" * (MAX_CHARACTERS + 1))
    assert outcome == Refused(
        reasons=(f"{NO_PLAN}: it has {MAX_CHARACTERS + 1} characters, at most {MAX_CHARACTERS}",)
    )
