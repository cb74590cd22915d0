"""Tools as a user brings them, for the tests of their registration."""

import os
import time
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from agents.tools import tool


class Box(BaseModel):
    """A box."""

    wide: int
    high: int = 1


def area(box: Box, on: date | None = None) -> dict[str, Any]:
    """How large a box is."""
    assert isinstance(box, Box)
    return {"area": box.wide * box.high, "year": on.year if on else None}


@tool(name="prime_factors", cpu=True, read_only=True)
def factors(n: Annotated[int, Field(ge=2, description="What to factor.")]) -> dict[str, Any]:
    """Prime factors of a number, and the process that found them."""
    found, rest, divisor = [], n, 2
    while rest > 1:
        while rest % divisor == 0:
            found.append(divisor)
            rest //= divisor
        divisor += 1
    return {"factors": found, "process": os.getpid()}


@tool(cpu=True)
def spin(path: str) -> None:
    """Compute for ever; the file says which process does."""
    Path(path).write_text(str(os.getpid()), encoding="utf-8")
    while True:
        time.sleep(0.001)


@tool(cpu=True)
def die(code: int) -> None:
    """End the process at once."""
    os._exit(code)


@tool(cpu=True)
def fail() -> None:
    """Raise something that no pickle holds."""

    class Own(Exception): ...

    raise Own("no luck")


@tool(once=True)
async def launch() -> str:
    """Do it once."""
    return "launched"


def clashes(name: str) -> str:
    """Has a name of its own."""
    return name


clashes.__name__ = "noop"

mine: list[Any] = [area, factors, launch]
computing: list[Any] = [factors, spin, die, fail]
silent = lambda: None  # noqa: E731 - a function without a docstring
number = 7
