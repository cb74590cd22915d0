"""What is wrong with a configuration: on which line, in which words, and never with a secret in them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

Path = tuple[str | int, ...]
"""Where a value stands in the file: keys of tables, indices of arrays."""

_SHOWN: Final = 60
_NAMES: Final = 10

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")

_KEYS: Final = (
    # What begins like the keys of model providers, code hosts, chats and clouds, or is a web token.
    re.compile(
        r"(?<![A-Za-z0-9_-])(?:sk|pk|rk|gsk|xai|tvly|hf|r8|nvapi|pplx|fw|csk|jina)[-_]"
        r"(?:(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{12,}|[A-Za-z0-9]{16,})"
    ),
    re.compile(
        r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}|\bxox[abprs]-[\w-]{10,}"
    ),
    re.compile(r"\bA[KS]IA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\bBSA[\w-]{24,}"),
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}"),
    re.compile(r"\bbearer\s+(?=\S*\d|\S{20})[\w.~+/=-]{8,}", re.IGNORECASE),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    re.compile(r"://[^/\s:@]*:[^/\s@]+@"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        line: Counts from 1.
        to_do: What to do about it.
    """

    path: str
    line: int
    what: str
    to_do: str

    @property
    def place(self) -> str:
        """``anabranch.toml:7``."""
        return f"{self.path}:{self.line}"

    def __str__(self) -> str:
        return f"{self.place}: {self.what}; {self.to_do}"


class BadConfiguration(Exception):
    """The file says what cannot be; the message has all problems, one a line.

    Attributes:
        problems: In the order of their lines.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(dict.fromkeys(sorted(problems, key=lambda problem: problem.line)))
        super().__init__("\n".join(map(str, self.problems)))


def dotted(path: Sequence[str | int]) -> str:
    """A path as one would write it in the file: ``models."kimi-k2.6".prices``, ``tools[2]``."""
    told = ""
    for part in path:
        if isinstance(part, int):
            told += f"[{part}]"
        else:
            told += ("." if told else "") + key(part)
    return told


def key(name: str) -> str:
    """A key as TOML wants it written: in quotes where it is more than letters, digits, ``-`` and ``_``."""
    if _BARE.fullmatch(name):
        return shown(name).strip("'") if is_secret(name) else name
    return '"' + shown(name)[1:-1] + '"'


def shown(value: object) -> str:
    """A value for the words of a problem: short, and hidden where it looks like a key."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and is_secret(value):
        return "'<secret>'"
    told = repr(value) if isinstance(value, str) else str(value)
    return told if len(told) <= _SHOWN else f"{told[:_SHOWN]}..."


def is_secret(text: str) -> bool:
    """The text looks like a key, a token or a password, which never stand in the file."""
    return any(shape.search(text) for shape in _KEYS)


def near(name: str, known: Iterable[str]) -> str:
    """The one of *known* that is meant by *name*, whatever the case; empty where none is like it."""
    lower = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    return lower[found[0]] if found else ""


def nearest(name: str, known: Sequence[str]) -> str:
    """``did you mean ...?``, or the first names there are."""
    if meant := near(name, known):
        return f"did you mean {meant}?"
    told = ", ".join(known[:_NAMES]) or "none"
    return f"there are: {told}" + (f" and {len(known) - _NAMES} more" if len(known) > _NAMES else "")
