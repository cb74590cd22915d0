"""Growing plans: a sub-agent proposes further sub-tasks over a list that it found."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from agents.plain_json import dumps
from agents.ports import Done, GaveUp, ToolCall, ToolReply, ToolSpec
from agents.tool_names import spellings
from agents.tools.own import Arguments, OwnTool
from streams.core.admission import ID_CHARACTERS, bounded, problems
from streams.core.commands import RunSubTask
from streams.core.plan import ITEMS, Plan, SubTask
from streams.core.shares import chunks
from streams.core.values import Json

MAP: Final = "map_subtasks"

ITEMS_BYTES: Final = 65_536
"""Bytes of JSON of all items that one attempt may hand to further sub-tasks: they travel in its event, beside
its result."""

_TEXT: Final[Mapping[str, Json]] = {"type": "string", "minLength": 1}


class Growth:
    """What one attempt proposes.

    Attributes:
        proposed: Further sub-tasks so far.
        tools: The tool by which the model proposes them; none where the plan may not grow.
    """

    def __init__(self, command: RunSubTask) -> None:
        self._command = command
        self._parent = command.hedge_of or command.task
        self._meant = {told: name for name, told in spellings(command.tools).items()}
        self._bytes = 0
        self.proposed: Plan = ()
        self.tools = (OwnTool(spec=self._spec(), run=self._run, heard=self._heard),) if command.growth else ()

    def with_proposals(self, ended: Done | GaveUp) -> Done | GaveUp:
        """The attempt's end, with what it proposes where it succeeded."""
        return replace(ended, proposed=self.proposed) if isinstance(ended, Done) and self.proposed else ended

    def _spec(self) -> ToolSpec:
        properties: dict[str, Json] = {
            "goal": {
                **_TEXT,
                "description": "What is to be done with each item, complete in itself: a sub-agent sees "
                "only this text and its items. Not needed with `tool`.",
            },
            "kind": {
                **_TEXT,
                "description": "extract, summarize, translate, analyze, or a word of your own.",
            },
            "items": {
                "type": "array",
                "minItems": 1,
                "description": "The list that you found. With `tool`, the arguments of each call.",
            },
        }
        if self._command.tools:
            properties["tool"] = {
                "enum": list(self._meant),
                "description": "Only where one call of this tool is all there is to do with an item.",
            }
        return ToolSpec(
            name=MAP,
            description=(
                "Propose a further sub-task for each item of a list, or for a few items together where there "
                f"are more items than places (now at most {self._command.growth}). They run after you have "
                "ended, in parallel, and you do not see their results: end with your own result, without "
                "doing their work. Use it only for a list that was not known before and is too much for you."
            ),
            parameters={
                "type": "object",
                "properties": properties,
                "required": ["items"],
                "additionalProperties": False,
            },
            read_only=True,
        )

    async def _run(self, _: ToolCall, arguments: Arguments, __: float) -> ToolReply:
        made = self._made(arguments, self._command.growth - len(self.proposed))
        if isinstance(made, ToolReply):
            return made
        names = [task.id for task in made]
        shown = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        return ToolReply(output={"proposed": len(names), "sub_tasks": shown})

    def _heard(self, _: ToolCall, arguments: Arguments, reply: ToolReply) -> None:
        """Take in what a call proposed: as many as its reply says, however many places there are by now.

        An attempt that waited meanwhile has another command than the one by which it proposed.
        """
        told = reply.output
        places = told.get("proposed") if reply.error is None and isinstance(told, Mapping) else None
        made = self._made(arguments, places) if isinstance(places, int) else reply
        if not isinstance(made, ToolReply):
            self.proposed += made
            self._bytes += len(dumps(arguments[ITEMS]))

    def _made(self, arguments: Arguments, places: int) -> Plan | ToolReply:
        """The sub-tasks that a call proposes within so many places, or why there can be none."""
        items, goal = arguments[ITEMS], str(arguments.get("goal", "")).strip()
        assert isinstance(items, Sequence)
        told = arguments.get("tool")
        tool = None if told is None else self._meant.get(str(told), str(told))
        if places < 1:
            return _refused([f"no place is left: the plan may have {self._command.growth} more sub-tasks"])
        if not goal and tool is None:
            return _refused(["a goal or a tool is needed"])
        if self._bytes + (size := len(dumps(items))) > ITEMS_BYTES:
            reason = (
                f"the items have {size} bytes, at most {ITEMS_BYTES - self._bytes}: give names or ids of them"
            )
            return _refused([reason])
        if tool is not None:
            if len(items) > places:
                return _refused(
                    [f"{len(items)} calls, at most {places}: without `tool` items share a sub-task"]
                )
            if not all(isinstance(item, Mapping) for item in items):
                return _refused([f"with `tool`, each item is the object of the arguments of {told}"])
        made = tuple(
            SubTask(
                id=f"{self._parent}-{len(self.proposed) + number}",
                goal=goal if tool is None else "",
                kind=str(arguments.get("kind", self._command.kind)),
                tool=tool,
                args={ITEMS: list(items[first : last + 1])} if tool is None else items[first],
                parent=self._parent,
                notes=self._command.notes is not None and tool is None,
            )
            for number, (first, last) in enumerate(chunks(len(items), places), 1)
        )
        if len(made[-1].id) > ID_CHARACTERS:
            return _refused([f"no further sub-tasks of {self._parent}: their names would be too long"])
        wrong = problems(made, max_subtasks=places)
        return _refused(wrong) if wrong else made


def _refused(reasons: Sequence[str]) -> ToolReply:
    return ToolReply(output={"refused": list(bounded(reasons))}, error="bad_arguments")
