"""Tools that are Python functions of this process."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_type_hints

import structlog
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships without types
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from agents.plain_json import plain, scrub, words_of
from agents.ports import NOBODY, Caller, ToolReply, ToolSpec
from agents.schema_checks import quick
from agents.tools.marks import marks_of
from agents.tools.processes import Processes, ToolFailed, found_by_name
from agents.tools.threads import StillRunning, Threads
from streams.core.values import Json

log = structlog.get_logger()

ToolFunction: TypeAlias = Callable[..., Any] | Callable[..., Awaitable[Any]]

Place: TypeAlias = Literal["loop", "thread", "process"]

MAX_ERROR = 2_000
"""Characters of an exception that a model is shown."""

_BY_NAME: Final = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTool:
    """A function as a tool.

    Attributes:
        place: Where it runs: a coroutine function on the event loop, which it must not block; one
            marked ``cpu`` in a process; any other in a thread.
        arguments: Makes of JSON what the annotations say: a date, a path, a model of one's own.
        validator: Checks arguments against the schema.
    """

    spec: ToolSpec
    function: ToolFunction
    place: Place
    arguments: type[BaseModel]
    validator: Draft202012Validator = field(repr=False)


def local_tool(function: ToolFunction, *, name: str | None = None, once: bool = False) -> LocalTool:
    """Make a tool of a function.

    The schema comes from its annotations (``Annotated[str, Field(description=...)]`` describes an
    argument), the description is its docstring, the name its own where none is given. What
    :func:`agents.tools.tool` said of it holds.

    Raises:
        ValueError: there is no docstring, and a model would have to guess what the tool does; it has
            arguments without names; or it is to run in a process, where it cannot be found.
    """
    marks = marks_of(function)
    called = name or marks.name or function.__name__
    description = inspect.getdoc(function)
    if not description:
        raise ValueError(f"tool {called} has no docstring to describe it")
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in _BY_NAME:
            raise ValueError(f"tool {called} takes {parameter}; a model gives each argument by its name")
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[parameter.name] = (hints.get(parameter.name, Any), default)
    arguments = create_model(called, __config__=ConfigDict(extra="forbid"), **fields)
    schema = without_titles(arguments.model_json_schema())
    Draft202012Validator.check_schema(schema)
    spec = ToolSpec(
        name=called,
        description=description,
        parameters=schema,
        once=once or marks.once,
        read_only=marks.read_only,
    )
    return LocalTool(
        spec=spec,
        function=function,
        place=_place(function, called, cpu=marks.cpu),
        arguments=arguments,
        validator=quick(Draft202012Validator)(schema),
    )


def _place(function: ToolFunction, called: str, *, cpu: bool) -> Place:
    waits = inspect.iscoroutinefunction(function)
    if not cpu:
        return "loop" if waits else "thread"
    if waits:
        raise ValueError(f"tool {called} is marked cpu, so it runs in a process: make it a plain function")
    if not found_by_name(function):
        raise ValueError(
            f"tool {called} is marked cpu, so it runs in a process, which imports it: "
            "put it at the top level of a module"
        )
    return "process"


class LocalTools:
    """The tools of this process, by name. Close them at the end.

    Raises:
        ValueError: two tools have one name.
    """

    def __init__(self, tools: Iterable[LocalTool]) -> None:
        self._tools: dict[str, LocalTool] = {}
        self._threads, self._processes = Threads(), Processes()
        for tool in tools:
            if tool.spec.name in self._tools:
                raise ValueError(f"two tools are named {tool.spec.name}")
            self._tools[tool.spec.name] = tool

    def names(self) -> tuple[str, ...]:
        """All names, in the order given."""
        return tuple(self._tools)

    def specs(self, names: Sequence[str]) -> tuple[ToolSpec, ...]:
        """The tools of these names; unknown names are left out."""
        return tuple(self._tools[name].spec for name in names if name in self._tools)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Json],
        *,
        timeout_s: float,
        caller: Caller = NOBODY,  # noqa: ARG002 - the port's
    ) -> ToolReply:
        """Run a tool within *timeout_s* seconds. Never raises: what goes wrong is the reply.

        A thread cannot be stopped: a blocking function whose time is over runs on, and its
        result is thrown away, as is that of a coroutine that goes on though it is cancelled; a process
        is killed. A tool that calls ``sys.exit`` or cancels itself
        has failed and nothing else: neither the worker nor the attempt ends by it.
        """
        tool = self._tools.get(name)
        if tool is None:
            return ToolReply(output=f"there is no tool {name}", error="unknown_tool")
        try:
            values = _values(tool, arguments)
        except ValueError as wrong:
            told: Json = {"message": str(wrong), "parameters": dict(tool.spec.parameters)}
            return ToolReply(output=told, error="bad_arguments")
        began = time.perf_counter()
        error: str | None = None
        output: Json
        deadline = asyncio.timeout(timeout_s)
        try:
            async with deadline:
                output = await self._run(tool, values)
        except BaseException as broken:  # a tool may raise anything, and the model is told
            if _is_for_us(broken):
                raise
            error, output = "tool_error", _words(broken)
            if isinstance(broken, TimeoutError) and deadline.expired():
                error, output = "timeout", f"no result within {timeout_s:.1f} s"
            elif isinstance(broken, StillRunning):
                error, output = "unavailable", str(broken)
                log.warning("tool_unavailable", tool=name, reason=output)
            else:
                log.info("tool_failed", tool=name, reason=output)
        return ToolReply(output=output, error=error, latency_ms=(time.perf_counter() - began) * 1_000)

    async def close(self) -> None:
        """End the processes that tools run in. Threads end with the worker."""
        await self._processes.close()

    async def _run(self, tool: LocalTool, arguments: Mapping[str, Any]) -> Json:
        match tool.place:
            case "loop":
                return await _in_a_task_of_its_own(tool.function, arguments)
            case "process":
                return await self._processes.run(tool.function, arguments)
            case "thread":

                def call() -> Json:
                    try:
                        return plain(tool.function(**arguments))
                    except BaseException as error:  # noqa: BLE001 - raised again, wrapped
                        raise _Raised(error) from None

                return await self._threads.run(tool.spec.name, call)


async def _in_a_task_of_its_own(function: ToolFunction, arguments: Mapping[str, Any]) -> Json:
    """Await a coroutine function. It has no hold on our task: neither cancels it nor outlasts its time."""

    async def call() -> Json:
        try:
            return plain(await function(**arguments))
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - raised again, wrapped
            raise _Raised(error) from None

    task = asyncio.create_task(call())
    task.add_done_callback(_looked_at)
    try:
        await asyncio.wait({task})
    finally:
        task.cancel()  # one that does not care is left to itself, as a thread is
    return task.result()


def _looked_at(task: "asyncio.Task[Json]") -> None:
    """Whatever it came to is no news where nobody waits for it any more."""
    if not task.cancelled():
        task.exception()


class _Raised(Exception):
    """What a function raised in its thread or its task, wrapped.

    As it is, a StopIteration would never get out of there, and a SystemExit would end the event loop.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(repr(type(error)))
        self.error = error


def _values(tool: LocalTool, arguments: Mapping[str, Json]) -> dict[str, Any]:
    """The arguments as the function's annotations have them.

    Raises:
        ValueError: they are not as the schema says.
    """
    wrong = best_match(tool.validator.iter_errors(dict(arguments)))
    if wrong is not None:
        raise ValueError(describe(wrong))
    try:
        values = tool.arguments.model_validate(dict(arguments))
    except ValidationError as error:  # what a schema cannot say: a date that is none
        first = error.errors()[0]
        place = ".".join(map(str, ("$", *first["loc"])))
        raise ValueError(f"{place}: {first['msg']}"[:MAX_ERROR]) from None
    return {name: getattr(values, name) for name in tool.arguments.model_fields}


def _is_for_us(error: BaseException) -> bool:
    """Whether it is not the tool's own doing: a cancellation of this very task, or Ctrl-C."""
    task = asyncio.current_task()
    cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
    return cancelled or isinstance(error, KeyboardInterrupt)


def _words(error: BaseException) -> str:
    error = error.error if isinstance(error, _Raised) else error
    if isinstance(error, ToolFailed):
        return str(error)
    return str(scrub(f"{type(error).__name__}: {words_of(error)}"[:MAX_ERROR]))


def describe(wrong: Any) -> str:
    """A schema violation in words, with the place."""
    return f"{wrong.json_path}: {wrong.message}"[:MAX_ERROR]


def without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without the titles that pydantic makes of names: tokens that tell a model nothing."""
    kept = {name: value for name, value in schema.items() if name != "title"}
    for group in ("properties", "$defs"):
        if group in kept:
            kept[group] = {name: without_titles(value) for name, value in kept[group].items()}
    for inner in ("items", "additionalProperties"):
        if isinstance(kept.get(inner), dict):
            kept[inner] = without_titles(kept[inner])
    for union in ("anyOf", "allOf", "oneOf"):
        if union in kept:
            kept[union] = [without_titles(value) for value in kept[union]]
    return kept
