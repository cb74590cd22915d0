"""Finds the JSON objects and lists in a model's reply, between prose, fences and thoughts.

Strict about JSON (RFC 8259) and linear in the text, also where the text is hostile: a bracket that
opens nothing, a value that breaks off and a quote too many each cost what was read of them, once
or twice, and nesting is bounded.
"""

import re
from dataclasses import dataclass
from typing import Final

MAX_DEPTH: Final = 100
"""Levels of nesting in one value; orjson writes at most 254."""

# A bracket with what may follow it in JSON, so that most brackets of prose and code are passed over at once.
_OPENING = re.compile(
    r"""\[(?=[ \t\r\n]*+(?:[\[\]{"0-9tfn-]|\Z))|\{(?=[ \t\r\n]*+(?:["}]|\Z))|</?think(?:ing)?>"""
)
_THOUGHT_END = re.compile(r"</think(?:ing)?>")
_UNQUOTED = r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'  # a string but for its last quote
_TOKEN = re.compile(
    r"[ \t\r\n]*+(?:([\[\]{},:])"
    rf'|({_UNQUOTED}")'
    r"|(?:-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+|true|false|null))"
)
# Behind a value: it was a member of something else, whose beginning is lost or broken.
_MEMBER = re.compile(r"""[ \t\r\n]*+(?:[\]}]|,[ \t\r\n]*+["\[{])""")
_SPACE = re.compile(r"[ \t\r\n]*+")
# What a string, a number or a word looks like where the text ends inside it.
_CUT = re.compile(
    rf"(?:{_UNQUOTED}(?:\\(?:u[0-9a-fA-F]{{0,3}})?+)?+|-|t|tr|tru|f|fa|fal|fals|n|nu|nul|[.eE+-][0-9eE+-]*+)?+\Z"
)
# Inside broken JSON strings end with their line, so that a quote too many does not swallow what follows.
_LOOSE = re.compile(r'"(?:[^"\\\n]++|\\.)*+"?|[\[\]{}]|</think(?:ing)?>')


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonInText:
    """What a text holds of JSON.

    Attributes:
        values: The text of every whole object or list that is not inside another, be that one broken.
        broken: Where JSON with at least one member breaks the grammar first, for a person; empty
            where none does. Nothing inside of it is among *values*.
        cut: The text ends inside of JSON with at least one member.
        cut_early: The text ends inside of what may be the first characters of JSON.
    """

    values: tuple[str, ...] = ()
    broken: str = ""
    cut: bool = False
    cut_early: bool = False


def find_json(text: str) -> JsonInText:
    """Find the objects and lists that stand in *text*.

    ``<think>`` to ``</think>`` is passed over, and so is everything before a ``</think>`` that has
    no beginning, as models write where their prompt opened the thought.
    """
    values: list[str] = []
    broken = -1
    cut = cut_early = False
    place = 0
    while opening := _OPENING.search(text, place):
        start = opening.start()
        if opening[0].startswith("</"):
            values, broken, cut_early = [], -1, False
            place = opening.end()
        elif opening[0].startswith("<"):
            end = _THOUGHT_END.search(text, start)
            place = end.end() if end else len(text)
        else:
            reading = _Reading(text, start)
            reading.run()
            if reading.whole:
                place = reading.place
                if member := _MEMBER.match(text, place):
                    broken = member.end() - 1 if broken < 0 else broken
                else:
                    values.append(text[start:place])
            elif reading.at_end:
                cut, cut_early = cut or reading.members, True
                place = len(text) if reading.members else reading.innermost + 1
            elif reading.members:
                broken = reading.place if broken < 0 else broken
                place = _after_broken(text, reading.place, reading.depth)
            else:
                place = reading.innermost + 1  # a bracket of the prose: look on behind it
    return JsonInText(
        values=tuple(values), broken=_where(text, broken) if broken >= 0 else "", cut=cut, cut_early=cut_early
    )


class _Reading:
    """One try to read an object or a list that may begin at a bracket.

    Attributes:
        place: How far it was read: behind the value, or at what cannot stand there.
        whole: It is a value.
        at_end: It was one as far as the text goes.
        members: An object in it had a key and its colon, so it was meant as JSON.
        innermost: Where the last bracket still open stands. The brackets around it cannot begin
            a value either: each would be read to the same place.
        depth: Brackets still open.
    """

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.place = start
        self.whole = False
        self.at_end = False
        self.members = False
        self.innermost = start
        self.depth = 0

    def run(self) -> None:
        """Read until the value ends or breaks."""
        text = self.text
        opened: list[int] = []
        wanted = "value"
        while token := _TOKEN.match(text, self.place):
            mark = "string" if token[2] else token[1]
            following = _following(wanted, mark, text[opened[-1]] if opened else "")
            if following is None or (mark in ("[", "{") and len(opened) == MAX_DEPTH):
                break
            self.place = token.end()
            if mark in ("[", "{"):
                opened.append(self.place - 1)
            elif mark in ("]", "}"):
                opened.pop()
                if not opened:
                    self.whole = True
                    return
            self.members = self.members or mark == ":"
            wanted = following
        else:
            self.place = _SPACE.match(text, self.place).end()  # type: ignore[union-attr]  # matches nothing, too
            if ending := _CUT.match(text, self.place):
                self.at_end = ending.end() == len(text)
        self.innermost = opened[-1] if opened else self.innermost
        self.depth = len(opened)


def _following(wanted: str, mark: str | None, container: str) -> str | None:
    """What is wanted after a token, or None where the token is not what is *wanted*.

    *mark* is the token where it is a bracket, colon or comma, ``string``, or None for the rest.
    *wanted* is ``value``, ``first value`` (or the list's end), ``key``, ``first key`` (or the
    object's end), ``colon``, or ``comma`` (or the container's end).
    """
    if wanted in ("value", "first value"):
        if mark == "[":
            return "first value"
        if mark == "{":
            return "first key"
        if mark in (None, "string") or (mark == "]" and wanted == "first value"):
            return "comma"
        return None
    if wanted in ("key", "first key"):
        if mark == "string":
            return "colon"
        return "comma" if mark == "}" and wanted == "first key" else None
    if wanted == "colon":
        return "value" if mark == ":" else None
    if mark == ",":
        return "value" if container == "[" else "key"
    return "comma" if (container, mark) in (("[", "]"), ("{", "}")) else None


def _after_broken(text: str, place: int, depth: int) -> int:
    """Where the brackets around broken JSON are closed, or a thought around it ends.

    What stands inside is never read as a value of its own: a broken plan is not the smaller one
    that can still be read of it.
    """
    for token in _LOOSE.finditer(text, place):
        if token[0] in ("[", "{"):
            depth += 1
        elif token[0] in ("]", "}"):
            depth -= 1
            if depth == 0:
                return token.end()
        elif token[0].startswith("<"):
            return token.start()
    return len(text)


def _where(text: str, place: int) -> str:
    line = text.count("\n", 0, place) + 1
    column = place - (text.rfind("\n", 0, place) + 1) + 1
    return f"line {line}, column {column}: {text[place : place + 20]!r} cannot stand there"
