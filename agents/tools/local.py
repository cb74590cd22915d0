"""Tools that are Python functions of this process."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, get_type_hints

import structlog
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships without types
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]
from pydantic import ConfigDict, create_model

from agents.plain_json import plain, scrub, words_of
from agents.ports import NOBODY, Caller, ToolReply, ToolSpec
from streams.core.values import Json

log = structlog.get_logger()

ToolFunction: TypeAlias = Callable[..., Any] | Callable[..., Awaitable[Any]]

MAX_ERROR = 2_000
"""Characters of an exception that a model is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTool:
    """A function as a tool.

    Attributes:
        function: A coroutine function runs on the event loop and must not block it; any other
            runs in a thread.
        blocking: It runs in a thread.
        validator: Checks arguments against the schema.
    """

    spec: ToolSpec
    function: ToolFunction
    blocking: bool
    validator: Draft202012Validator = field(repr=False)


def local_tool(function: ToolFunction, *, name: str | None = None, once: bool = False) -> LocalTool:
    """Make a tool of a function.

    The schema comes from its annotations (``Annotated[str, Field(description=...)]`` describes an
    argument), the description is its docstring, the name its own where none is given.

    Raises:
        ValueError: there is no docstring, and a model would have to guess what the tool does.
    """
    called = name or function.__name__
    description = inspect.getdoc(function)
    if not description:
        raise ValueError(f"tool {called} has no docstring to describe it")
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[parameter.name] = (hints.get(parameter.name, Any), default)
    arguments = create_model(called, __config__=ConfigDict(extra="forbid"), **fields)
    schema = without_titles(arguments.model_json_schema())
    Draft202012Validator.check_schema(schema)
    return LocalTool(
        spec=ToolSpec(name=called, description=description, parameters=schema, once=once),
        function=function,
        blocking=not inspect.iscoroutinefunction(function),
        validator=Draft202012Validator(schema),
    )


class LocalTools:
    """The tools of this process, by name.

    Raises:
        ValueError: two tools have one name.
    """

    def __init__(self, tools: Iterable[LocalTool]) -> None:
        self._tools: dict[str, LocalTool] = {}
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
        result is thrown away. A tool that calls ``sys.exit`` or cancels itself has failed and
        nothing else: neither the worker nor the attempt ends by it.
        """
        tool = self._tools.get(name)
        if tool is None:
            return ToolReply(output=f"there is no tool {name}", error="unknown_tool")
        wrong = best_match(tool.validator.iter_errors(dict(arguments)))
        if wrong is not None:
            told: Json = {"message": describe(wrong), "parameters": dict(tool.spec.parameters)}
            return ToolReply(output=told, error="bad_arguments")
        began = time.perf_counter()
        error: str | None = None
        output: Json
        deadline = asyncio.timeout(timeout_s)
        try:
            async with deadline:
                output = await _run(tool, arguments)
        except BaseException as broken:  # a tool may raise anything, and the model is told
            if _is_for_us(broken):
                raise
            error, output = "tool_error", _words(broken)
            if isinstance(broken, TimeoutError) and deadline.expired():
                error, output = "timeout", f"no result within {timeout_s:.1f} s"
            else:
                log.info("tool_failed", tool=name, reason=output)
        return ToolReply(output=output, error=error, latency_ms=(time.perf_counter() - began) * 1_000)


class _Raised(Exception):
    """What a function raised in its thread, wrapped.

    As it is, a StopIteration would never get out of there, and a SystemExit would end the event loop.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(repr(type(error)))
        self.error = error


async def _run(tool: LocalTool, arguments: Mapping[str, Json]) -> Json:
    if not tool.blocking:
        return plain(await tool.function(**arguments))

    def call() -> Json:
        try:
            return plain(tool.function(**arguments))
        except BaseException as error:  # noqa: BLE001 - raised again, wrapped
            raise _Raised(error) from None

    return await asyncio.to_thread(call)


def _is_for_us(error: BaseException) -> bool:
    """Whether it is not the tool's own doing: a cancellation of this very task, or Ctrl-C."""
    task = asyncio.current_task()
    cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
    return cancelled or isinstance(error, KeyboardInterrupt)


def _words(error: BaseException) -> str:
    error = error.error if isinstance(error, _Raised) else error
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
