"""Dead letters and what became of them, on the screen and as JSON."""

from base64 import b64encode
from collections.abc import Sequence
from typing import assert_never

from rich.console import Console

from streams.cli.output import say
from streams.cli.words import clock, cut
from streams.letters import Letter, Place
from streams.redriving import Done, NotDone, Outcome
from streams.wire.headers import read_headers
from streams.wire.marks import Dropped, Mark, Redriven


def at(place: Place) -> str:
    """A place as commands take it."""
    return f"{place[0]}:{place[1]}"


def line(letter: Letter) -> str:
    """A dead letter in a line."""
    lot = f"[{letter.lot}] " if letter.mark else ""
    dead = letter.dead
    return f"{at(letter.place):<8} {clock(dead.at)}  {original(letter)}  {lot}{cut(dead.reason)}"


def original(letter: Letter) -> str:
    """Where the original stands."""
    place = letter.dead.place
    return f"{place.topic}[{place.partition}]@{place.offset}"


def whole(out: Console, letter: Letter) -> None:
    """All of a dead letter."""
    dead = letter.dead
    for name, text in (
        ("reason", dead.reason),
        ("original", original(letter)),
        ("buried", clock(dead.at)),
        ("state", "waiting" if letter.mark is None else told(letter.mark)),
        *((("job", letter.job),) if letter.job else ()),
        ("key", "none" if dead.key is None else dead.key.decode(errors="replace")),
        *((f"header {name}", (value or b"").decode(errors="replace")) for name, value in dead.headers),
    ):
        say(out, f"{name + ':':<10} {text}")
    if dead.lost_bytes is not None:
        say(out, f"value:     left out, {dead.lost_bytes} bytes, SHA-256 {dead.lost_digest}")
    elif dead.value is None:
        say(out, "value:     none (a tombstone)")
    else:
        say(out, "value:")
        say(out, dead.value.decode(errors="replace"))


def fields(letter: Letter, *, value: bool = False) -> dict[str, object]:
    """A dead letter as JSON; with its headers and its value where asked for."""
    dead = letter.dead
    found: dict[str, object] = {
        "place": at(letter.place),
        "at": dead.at,
        "reason": dead.reason,
        "original": dead.place,
        "source": dead.source,
        "key": dead.key,
        "job": letter.job,
        "bytes": letter.size,
        "state": letter.lot,
        "mark": None if letter.mark is None else _mark(letter.mark),
    }
    if not value:
        return found
    try:
        found["value"] = None if dead.value is None else dead.value.decode()
    except UnicodeDecodeError:
        found["value_base64"] = b64encode(dead.value or b"").decode()
    return {**found, "headers": read_headers(dead.headers), "lost_sha256": dead.lost_digest or None}


def told(mark: Mark) -> str:
    """What became of a dead letter."""
    match mark:
        case Redriven(topic=topic, partition=partition, to=to, job=job, revision=revision):
            sent = f"redriven to {topic}[{partition}]@{to}"
            what = sent if to is not None else "not sent, since its job gives a new command in its place"
            on = f"; {job} goes on to revision {revision} of its answer" if job else ""
        case Dropped(reason=reason):
            what, on = "dropped", f": {cut(reason)}" if reason else ""
        case _:
            assert_never(mark)
    when = f" at {clock(mark.at)} by {mark.by}" if mark.at else ""
    return f"{what}{when}{on}"


def outcome(of: Outcome, *, doing: str) -> str:
    """What came of one dead letter, in a line; *doing* is what was to be done."""
    match of:
        case Done(mark=mark, again=again):
            what = f"nothing was done: it was {told(mark)}" if again else told(mark)
        case NotDone(reason=reason):
            what = f"not {doing}: {reason}"
        case _:
            assert_never(of)
    return f"{at(of.place):<8} {what}"


def outcome_fields(of: Outcome) -> dict[str, object]:
    """What came of one dead letter, as JSON."""
    match of:
        case Done(mark=mark, again=again):
            return {"place": at(of.place), "done": True, "again": again, "mark": _mark(mark)}
        case NotDone(reason=reason):
            return {"place": at(of.place), "done": False, "reason": reason}
        case _:
            assert_never(of)


def counted(letters: Sequence[Letter]) -> str:
    """How many, and of which topics."""
    topics = [letter.dead.place.topic or "?" for letter in letters]
    parts = ", ".join(f"{topics.count(topic)} of {topic}" for topic in dict.fromkeys(topics))
    return f"{len(letters)} dead letter{'s' * (len(letters) != 1)} ({parts})"


def _mark(mark: Mark) -> dict[str, object]:
    names = [name for name in mark.__dataclass_fields__ if name != "letter"]
    return {"type": type(mark).__name__, **{name: getattr(mark, name) for name in names}}
