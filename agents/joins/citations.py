"""Which sub-tasks a text names as its sources: their names in square brackets, ``[a]`` or ``[a, b]``."""

import re
from collections.abc import Collection
from typing import Final

from streams.core.values import Json, TaskId

MOST: Final = 500
"""Citations that are taken of one text."""

_NAME: Final = r"~?[A-Za-z0-9._~-]{1,64}"
_CITED: Final = re.compile(rf"\[({_NAME}(?:\s*[,;]\s*{_NAME})*)\]")
_BETWEEN: Final = re.compile(r"\s*[,;]\s*")


def citations(result: Json, known: Collection[TaskId] | None = None) -> tuple[TaskId, ...]:
    """The sub-tasks that an answer names, in its order, each once; none where it is no text.

    Args:
        known: Which there are; others are passed over. None: whoever knows them sorts them out.
    """
    if not isinstance(result, str):
        return ()
    named = (name for found in _CITED.finditer(result) for name in _BETWEEN.split(found[1]))
    taken = dict.fromkeys(name for name in named if known is None or name in known)
    return tuple(taken)[:MOST]
