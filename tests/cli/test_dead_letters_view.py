"""What the commands on dead letters say."""

import io

import pytest
from rich.console import Console

from streams import dead_letters
from streams.cli.dead_letters import view
from streams.letters import Letter, letter_of
from streams.log import Record
from streams.redriving import Done, NotDone, Outcome
from streams.wire.marks import Dropped, Mark, Redriven

AT = 1_790_000_000_000
SENT = Redriven(letter=17, by="ada@sea", topic="subtasks", partition=3, to=41, job="acme/boats", revision=2)
INSTEAD = Redriven(letter=17, by="ada@sea", topic="subtasks", partition=3, job="acme/boats", revision=2)
DROPPED = Dropped(letter=17, by="ada@sea", reason="a test\nof ours", at=AT)


def letter(mark: Mark | None = None, *, value: bytes | None = b"\xff{}", lost: bool = False) -> Letter:
    """A dead letter of a command."""
    record = Record("subtasks", 3, 977, AT, b"acme/boats/t1/2", value, (("trace", b"17"),))
    write = dead_letters.write_without_value if lost else dead_letters.write
    key, kept, headers = write(record, "v: version 2 is\x1b[31m newer than 1")
    found = letter_of(dead_letters.read(Record("dead-letters", 3, 17, AT, key, kept, headers)))
    return Letter(dead=found.dead, size=found.size, job=found.job, mark=mark)


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (
            Done(place=(3, 17), mark=SENT),
            "redriven to subtasks[3]@41; acme/boats goes on to revision 2 of its answer",
        ),
        (
            Done(place=(3, 17), mark=INSTEAD),
            (
                "not sent, since its job gives a new command in its place; "
                "acme/boats goes on to revision 2 of its answer"
            ),
        ),
        (
            Done(place=(3, 17), mark=DROPPED, again=True),
            "nothing was done: it was dropped at 2026-09-21 14:13:20.000Z by ada@sea: a test of ours",
        ),
        (NotDone(place=(3, 17), reason="it is gone"), "not redriven: it is gone"),
    ],
)
def test_what_came_of_one(outcome: Outcome, says: str) -> None:
    """In a line, and as JSON."""
    assert view.outcome(outcome, doing="redriven") == f"3:17     {says}"
    written = view.outcome_fields(outcome)
    assert written["place"] == "3:17"
    assert written["done"] is isinstance(outcome, Done)


def test_a_line_of_the_list() -> None:
    """Where it stands, where its original does, what became of it, and why."""
    assert view.line(letter()) == (
        "3:17     2026-09-21 14:13:20.000Z  subtasks[3]@977  v: version 2 is\x1b[31m newer than 1"
    )
    assert "@977  [dropped] v: version" in view.line(letter(DROPPED))
    assert view.counted([letter(), letter()]) == "2 dead letters (2 of subtasks)"
    assert view.counted([letter()]) == "1 dead letter (1 of subtasks)"


@pytest.mark.parametrize(
    ("shown", "says"),
    [
        (
            letter(),
            [
                "state:     waiting",
                "job:       acme/boats",
                "header trace: 17",
                "\N{REPLACEMENT CHARACTER}{}",
            ],
        ),
        (letter(DROPPED), ["state:     dropped at 2026-09-21 14:13:20.000Z by ada@sea: a test of ours"]),
        (letter(value=None), ["value:     none (a tombstone)"]),
        (letter(lost=True), ["value:     left out, 3 bytes, SHA-256 "]),
    ],
)
def test_one_shown_whole(shown: Letter, says: list[str]) -> None:
    """Nothing in it commands the terminal."""
    out = io.StringIO()
    view.whole(Console(file=out, width=200), shown)
    assert all(line in out.getvalue() for line in says), out.getvalue()
    assert "\x1b" not in out.getvalue()


def test_json_says_all_of_it() -> None:
    """With the value where asked for; bytes that are no text in base64."""
    listed = view.fields(letter(SENT))
    assert (listed["place"], listed["state"], listed["job"], listed["bytes"]) == (
        "3:17",
        "redriven",
        "acme/boats",
        3,
    )
    assert listed["mark"] == {
        "type": "Redriven",
        "by": "ada@sea",
        "topic": "subtasks",
        "partition": 3,
        "to": 41,
        "job": "acme/boats",
        "revision": 2,
        "at": 0,
        "offset": -1,
    }
    assert "value" not in listed
    assert view.fields(letter(), value=True)["value_base64"] == "/3t9"
    assert view.fields(letter(value=b"{}"), value=True)["value"] == "{}"
