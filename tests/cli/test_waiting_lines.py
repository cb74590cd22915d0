"""What waits, in a line for people, from the table's rows."""

from streams.cli.held import line
from streams.cli.saying import sent
from streams.core.commands import Resume
from streams.core.states import Decided, Hold, Suspended, Waiting
from streams.core.values import NO_USAGE
from streams.held import in_row
from streams.wire.rows import JobRow, Row, SubTaskRow, write_row

SINCE = 1_767_225_600_000


def told(key: str, row: Row) -> list[str]:
    """The lines of a row."""
    return [line(each).partition(" ")[2].partition(" ")[2] for each in in_row(key, write_row(row))]


def test_each_that_waits_is_a_line() -> None:
    """By whom it waits for; of a call the person sees the tool and its arguments."""
    for on, what in (
        ("place", "its tenant's turn"),
        ("money", "money of its tenant's day"),
        ("plan", "approval of its plan"),
        ("answer", "approval of its answer"),
    ):
        held = JobRow(usage=NO_USAGE, decided=Decided(hold=Hold(on=on, since=SINCE)))  # type: ignore[arg-type]
        assert told("acme/g", held) == [f"acme/g waits for {what}"]
    call = Suspended(
        attempt=1,
        on="approval",
        call="c",
        since=SINCE,
        resume=Resume(number=1),
        tool="send_mail",
        args={"to": "harbour"},
    )
    assert told("acme/g/t", SubTaskRow(ordinal=1, state=call)) == [
        'acme/g/t waits for approval of send_mail {"to":"harbour"}'
    ]
    child = Suspended(
        attempt=1, on="child", call="c", since=SINCE, resume=Resume(number=1), child="acme/child-1"
    )
    assert told("acme/g/t", SubTaskRow(ordinal=1, state=child)) == [
        "acme/g/t waits for the child job acme/child-1"
    ]


def test_all_others_are_left_out() -> None:
    """Whatever their words."""
    assert told("acme/g", JobRow(usage=NO_USAGE, decided=Decided(reason='"hold":{}'))) == []
    assert told("acme/g/t", SubTaskRow(ordinal=1, state=Waiting(missing=1))) == []


def test_what_was_said_is_told_with_where_to_look() -> None:
    """Nobody tells the command what became of it."""
    for verb in ("approve", "reject"):
        assert f"acme/g: {verb}, " in sent(verb, "acme/g")
        assert "anabranch waiting" in sent(verb, "acme/g")
    assert "anabranch watch acme/g" in sent("cancel", "acme/g")
