"""Tools that users bring: functions named by an entry point or by ``[tools] modules``."""

import importlib
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from agents.tools.local import LocalTool, local_tool

GROUP: Final = "anabranch.tools"
"""The entry point group: ``[project.entry-points."anabranch.tools"]`` in a package's pyproject.toml."""

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
"""A local tool's name: what endpoints take, and without the dot that stands between a server and its tool."""

_PLACE: Final = re.compile(r"[\w.]+:[\w.]+")


class BadTools(Exception):
    """Tools that cannot be offered.

    Attributes:
        problems: A sentence each: where it was named, what is wrong, and what to do.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


def registered_tools(
    modules: Sequence[str], *, taken: Iterable[str] = (), points: Iterable[EntryPoint] | None = None
) -> tuple[LocalTool, ...]:
    """All tools of installed packages and of *modules*. Imports them, so it may take a while.

    Args:
        modules: ``package.module:name`` each: a function, or a list of functions and tools.
        taken: Names of tools that there are already.
        points: Entry points; None: those that are installed.

    Raises:
        BadTools: some cannot be used; it names all of these.
    """
    if points is None:
        points = entry_points(group=GROUP)
    problems: list[str] = []
    found: dict[str, LocalTool] = {}
    whose = dict.fromkeys(taken, "anabranch itself")
    for source, load in (*_of_modules(modules), *_of_points(points)):
        try:
            tools = tuple(_tools(load()))
        except Exception as error:  # noqa: BLE001 - importing runs whatever stands in a module
            problems.append(f"{source}: {_why(error)}")
            continue
        for tool in tools:
            name = tool.spec.name
            if not NAME.fullmatch(name):
                problems.append(
                    f"{source}: tool {name!r} needs a name of letters, digits, - and _ (at most 64, a "
                    'letter first); give it one by @tool(name="...")'
                )
            elif name in whose:
                problems.append(
                    f"{source}: {whose[name]} has a tool {name} already; "
                    'give this one another name by @tool(name="...")'
                )
            else:
                whose[name], found[name] = source, tool
    if problems:
        raise BadTools(problems)
    return tuple(found.values())


def _of_modules(modules: Sequence[str]) -> Iterator[tuple[str, Callable[[], Any]]]:
    for place in dict.fromkeys(modules):

        def load(place: str = place) -> Any:
            if not _PLACE.fullmatch(place):
                raise ValueError("is no package.module:name")
            module, _, name = place.partition(":")
            found: Any = importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
            return found

        yield f"tools module {place}", load


def _of_points(points: Iterable[EntryPoint]) -> Iterator[tuple[str, Callable[[], Any]]]:
    for point in sorted(points, key=lambda point: (point.name, point.value)):
        whose = f" of {point.dist.name}" if point.dist is not None else ""
        yield f"entry point {point.name} = {point.value}{whose}", point.load


def _tools(found: Any) -> Iterator[LocalTool]:
    """What was named: one function or tool, or several."""
    several = isinstance(found, (list, tuple))
    for one in found if several else (found,):
        if isinstance(one, LocalTool):
            yield one
        elif callable(one) and hasattr(one, "__name__") and not isinstance(one, type):
            yield local_tool(one)
        else:
            raise ValueError(f"{_shown(one)} is no function; name a function, or a list of functions")


def _why(error: Exception) -> str:
    """What went wrong, and what to do about it."""
    match error:
        case ModuleNotFoundError():
            return (
                f"{error}; install the package in the worker's own environment, or put its directory on "
                "PYTHONPATH"
            )
        case AttributeError() if error.name:
            return f"{error}; check the name after the colon"
        case ValueError():
            return str(error)
        case _:
            frames = traceback.extract_tb(error.__traceback__)
            last = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
            return f"{type(error).__name__}: {error}{last}; it must import without an error"


def _shown(value: object) -> str:
    return f"a {type(value).__name__}"
