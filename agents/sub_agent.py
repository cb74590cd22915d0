"""The sub-agent: a model with tools works on one sub-task until it has a result."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from agents.children import Children
from agents.configuration.values import CALLS, DEFAULT, Kind
from agents.conversation import Conversation
from agents.growing import Growth
from agents.json_answers import faults, settled
from agents.models.retry import PatientModel
from agents.notes import Notebook
from agents.plain_json import dumps_text
from agents.ports import Attempt, Caller, Done, GaveUp, ModelError, ModelReply, ModelRequest, ToolCall, Tools
from agents.prompt_data import inline, results, system, user
from agents.prompts import read_prompt
from agents.tool_turn import NEVER, NOT_RUN, Counted, Toolbox, not_counted, same_call
from agents.verdicts import gave_up, unfit
from streams.core.commands import RunSubTask
from streams.core.plan import ITEMS
from streams.core.values import NO_USAGE, Json, Usage

IDENTICAL_CALLS = 3
"""This many identical calls are a loop: the third is not run."""

NO_SUB_TASKS = frozenset(CALLS)
"""Kinds of other calls than sub-agents': a plan that takes such a word must not get their model or tools."""


NOTHING_MORE: Mapping[str, Json] = MappingProxyType({})

Kinds: TypeAlias = Callable[[str], Kind]
"""The kind of a name, as :meth:`agents.configuration.values.Configuration.kind` knows it."""


def plain_kind(_: str) -> Kind:
    """How every kind is worked on where nothing is configured."""
    return Kind(name=DEFAULT)


class ToolUsingAgent:
    """Works on a sub-task by a model and tools, or by one tool alone where the plan says so.

    Args:
        kinds: How sub-tasks of each kind are worked on; asked anew for each sub-task.
        refused: Told of each tool call that is answered without *tools*, which count their own.
    """

    def __init__(
        self,
        model: PatientModel,
        tools: Tools,
        kinds: Kinds = plain_kind,
        *,
        refused: Counted = not_counted,
    ) -> None:
        self._model = model
        self._tools = tools
        self._kinds = kinds
        self._refused = refused
        self._system = system(read_prompt("sub_agent"))

    async def run(self, command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        """Work on one sub-task."""
        name = DEFAULT if command.kind in NO_SUB_TASKS else command.kind
        kind = self._kinds(name)
        if isinstance(command.schema, Mapping):
            kind = replace(kind, schema=command.schema)  # its result may be the answer as it is
        caller = Caller(job=command.job, task=command.task, kind=name)
        granted = allowed(command.tools, kind)
        shelf = partial(
            Toolbox, self._tools, granted, caller, kind.bounds, refused=self._refused, ask=command.ask
        )
        if command.tool is not None and not command.goal:
            return await run_tool(command, command.tool, shelf(), attempt)
        growth, notebook = Growth(command), Notebook(command, attempt)
        children = Children(command, attempt)
        toolbox = shelf(own=(*growth.tools, *notebook.tools, *children.tools))
        talk = Conversation((self._system, user(brief(command, kind, notebook.told()))))
        turns = Turns(
            model=self._model,
            kind=replace(kind, name=name),
            command=command,
            toolbox=toolbox,
            talk=talk,
            attempt=attempt,
        )
        return growth.with_proposals(await turns.to_the_end())


class Turns:
    """The turns of one attempt, and what they have cost."""

    def __init__(
        self,
        *,
        model: PatientModel,
        kind: Kind,
        command: RunSubTask,
        toolbox: Toolbox,
        talk: Conversation,
        attempt: Attempt,
    ) -> None:
        self._model = model
        self._kind, self._bounds = kind, kind.bounds
        self._command = command
        self._toolbox = toolbox
        self._talk = talk
        self._attempt = attempt
        self._usage = NO_USAGE
        self._asked: Counter[str] = Counter()
        self._shortened = False

    async def to_the_end(self) -> Done | GaveUp:
        """Turn by turn until there is a result, or a reason why there will be none."""
        for turn in range(self._bounds.rounds + 1):
            may_call = turn < self._bounds.rounds
            reply = await self._turn(may_call=may_call)
            if isinstance(reply, GaveUp):
                return reply
            calls = tuple(map(self._toolbox.meant, self._talk.take_turn(reply)))
            if not calls:
                return await settled(
                    reply, self._kind.schema, again=self._once_more, usage=lambda: self._usage
                )
            if not may_call:
                break
            if looping := self._loop(calls):
                return self._give_up("loop_detected", looping, final=True)
            if unknown := await self._use_tools(calls):
                return self._give_up("unknown_outcome", unknown, final=True)
        return self._give_up(
            "too_many_rounds",
            f"the model still asked for tools after {self._bounds.rounds} rounds of them",
            final=False,
        )

    async def _turn(self, *, may_call: bool) -> ModelReply | GaveUp:
        """The model's next whole reply, or why there is none."""
        room = min(self._bounds.turn_tokens, self._bounds.task_tokens - self._usage.tokens_out)
        if room <= 0:
            return self._give_up(
                "truncated", f"all {self._bounds.task_tokens} output tokens are used up", final=False
            )
        try:
            reply = await self._ask(room, may_call=may_call)
        except ModelError as error:
            return gave_up(error, self._usage)
        self._usage += reply.usage
        return unfit(reply, room, self._usage, self._attempt.grant) or reply

    async def _once_more(self, why: Mapping[str, Json]) -> ModelReply | GaveUp:
        """Ask for the result again, without tools: the schema refused the last one."""
        self._talk.messages.append(why)
        return await self._turn(may_call=False)

    async def _ask(self, room: int, *, may_call: bool) -> ModelReply:
        while True:
            request = ModelRequest(
                messages=tuple(self._talk.messages),
                tools=self._toolbox.specs if may_call else (),
                max_tokens=room,
                model=self._command.model,
                kind=self._kind.name,
                schema=self._kind.schema,
            )
            try:
                return await self._model.ask(request, self._attempt)
            except ModelError as error:
                if error.kind != "context_exceeded" or self._shortened or not self._talk.shorten():
                    raise
                self._shortened = True

    async def _use_tools(self, calls: tuple[ToolCall, ...]) -> str:
        """Run the calls and tell the model of them; why there can be no further turn, or nothing."""
        replies = await self._toolbox.run_all([self._talk.journaled(call) for call in calls], self._attempt)
        for call, reply in zip(calls, replies, strict=True):
            self._talk.add_result(call, reply)
        self._usage += Usage(tool_calls=sum(reply.error not in NOT_RUN for reply in replies))
        for call, reply in zip(calls, replies, strict=True):
            # The model, or another attempt, would ask for it again.
            if reply.unknown and self._toolbox.once(call.name):
                return f"{call.name} must not run twice, and whether it ran is not known: {reply.output}"
        return ""

    def _loop(self, calls: tuple[ToolCall, ...]) -> str:
        for call in calls:
            same = same_call(call)
            self._asked[same] += 1
            if self._asked[same] >= IDENTICAL_CALLS:
                return f"{IDENTICAL_CALLS} identical calls of {call.name}"
        return ""

    def _give_up(self, kind: str, reason: str, *, final: bool) -> GaveUp:
        return GaveUp(kind=kind, reason=reason, final=final, usage=self._usage)


async def run_tool(command: RunSubTask, tool: str, toolbox: Toolbox, attempt: Attempt) -> Done | GaveUp:
    """Run the sub-task's own tool with its own arguments, without a model."""
    arguments = {} if command.args is None else command.args
    call = ToolCall(id="direct", name=tool, arguments=dumps_text(arguments))
    reply = await toolbox.run(call, attempt)
    usage = Usage(tool_calls=int(reply.error not in NOT_RUN))
    if reply.error is None:
        schema = command.schema
        if isinstance(schema, Mapping) and (why := await asyncio.to_thread(faults, reply.output, schema)):
            told = f"{tool}: its result breaks the answer's schema: {'; '.join(why)}"
            return GaveUp(kind="bad_json", reason=told, final=True, usage=usage)
        return Done(result=reply.output, usage=usage)
    # What the plan got wrong stays wrong; a tool that may have changed the world is not asked twice.
    final = reply.error in NEVER or toolbox.once(tool)
    reason = reply.output if isinstance(reply.output, str) else dumps_text(reply.output)
    kind = "timeout" if reply.error == "timeout" else "tool_error"
    return GaveUp(kind=kind, reason=f"{tool}: {reason}", final=final, usage=usage)


def allowed(granted: Sequence[str], kind: Kind) -> tuple[str, ...]:
    """The tools that a sub-task may use: those granted to it that its kind may use."""
    if kind.tools is None:
        return tuple(granted)
    return tuple(name for name in granted if name in kind.tools)


def brief(command: RunSubTask, kind: Kind, more: Mapping[str, Json] = NOTHING_MORE) -> dict[str, Json]:
    """What the model is told of its task: its goal, and apart from it the data that it is given.

    Args:
        more: Data that the attempt has besides.
    """
    told: dict[str, Json] = {"goal": command.goal, "kind": command.kind}
    if kind.schema is not None:
        told["result_schema"] = kind.schema
    data: dict[str, Json] = {}
    if command.input is not None:
        data["input"] = share(inline(command.input), command.items)
    elif command.tool is None and isinstance(command.args, Mapping) and ITEMS in command.args:
        data["input"] = command.args[ITEMS]
    if command.dep:
        data["results"] = results(command.dep)
    data |= more
    if data:
        told["data"] = data
    return told


def share(value: Json, items: tuple[int, int] | None) -> Json:
    """The sub-task's share of the goal's input; a share of a list is always a list."""
    if items is None or not isinstance(value, list):
        return value
    first, last = items
    return value[first : last + 1]
