"""Names of tools as endpoints take them: ours may hold a dot (``server.tool``), theirs must not."""

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

MAX_CHARS: Final = 64
"""Characters of a function's name, as of OpenAI's and Moonshot's chat APIs."""

_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST: Final = 8


def spellings(names: Iterable[str]) -> dict[str, str]:
    """By name how a model is told it: letters, digits, ``_`` and ``-``, a letter first, each another one.

    A name that is fine stays as it is; ``files.read`` becomes ``files__read``.
    """
    names = tuple(dict.fromkeys(names))
    taken = {name for name in names if _spelled(name) == name}
    found: dict[str, str] = {}
    for name in names:
        told = _spelled(name)
        if told != name and told in taken:
            told = _digested(told, name)
        taken.add(told)
        found[name] = told
    return found


def _spelled(name: str) -> str:
    told = _FOREIGN.sub("_", name.replace(".", "__"))
    if not told[:1].isalpha():
        told = f"t{told}"
    return told if len(told) <= MAX_CHARS else _digested(told, name)


def _digested(told: str, name: str) -> str:
    return f"{told[: MAX_CHARS - _DIGEST - 1]}-{sha256(name.encode(errors='replace')).hexdigest()[:_DIGEST]}"
