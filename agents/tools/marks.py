"""What the author of a Python function says of it as a tool."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_MARKS: Final = "__anabranch_tool__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What :func:`tool` was told.

    Attributes:
        name: The tool's name; empty: the function's own.
        cpu: It computes for long: it runs in a process of its own, which ends with the call's time.
        once: It changes the world: it is never called again where its outcome is unknown.
        read_only: It changes nothing, so equal calls of one job may share one result.
    """

    name: str = ""
    cpu: bool = False
    once: bool = False
    read_only: bool = False


def tool(
    *, name: str = "", cpu: bool = False, once: bool = False, read_only: bool = False
) -> Callable[[F], F]:
    """Mark a function as a tool; it stays the function that it is. See :class:`Marks`.

    A function needs no mark where nothing is to be said of it.

    Raises:
        ValueError: it is to run once and yet may share its result.
    """
    if once and read_only:
        raise ValueError("a tool changes the world (once) or it does not (read_only), not both")
    marks = Marks(name=name, cpu=cpu, once=once, read_only=read_only)

    def mark(function: F) -> F:
        setattr(function, _MARKS, marks)
        return function

    return mark


def marks_of(function: object) -> Marks:
    """What was said of a function; nothing where it has no mark."""
    marks = getattr(function, _MARKS, None)
    return marks if isinstance(marks, Marks) else Marks()
