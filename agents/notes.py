"""Shared notes as a sub-agent has them: those of its command as data, and a tool that writes one."""

from typing import Final

from agents.plain_json import dumps
from agents.ports import Attempt, ToolCall, ToolReply, ToolSpec
from agents.prompt_data import inline
from agents.tools.own import Arguments, OwnTool
from streams.core.commands import RunSubTask
from streams.core.notes import MOST_TOPICS, NOTE_BYTES, TOPIC_CHARACTERS
from streams.core.values import Json

WRITE: Final = "write_note"


class Notebook:
    """The notes of one attempt.

    Attributes:
        tools: The tool that writes them; none where the plan does not grant it.
    """

    def __init__(self, command: RunSubTask, attempt: Attempt) -> None:
        self._attempt = attempt
        self._granted = command.notes is not None
        self._versions = {note.topic: note.version for note in command.notes or ()}
        self._values = {note.topic: inline(note.value) for note in command.notes or ()}
        self.tools = (OwnTool(spec=SPEC, run=self._run, heard=self._heard),) if self._granted else ()

    def told(self) -> dict[str, Json]:
        """What the model is told of the notes, as data."""
        return {"notes": dict(self._values)} if self._granted else {}

    async def _run(self, call: ToolCall, arguments: Arguments, timeout_s: float) -> ToolReply:
        topic, value = str(arguments["topic"]), arguments["value"]
        if topic.isspace() or not topic.isprintable():
            return ToolReply(output="a topic is a word or two that can be printed", error="bad_arguments")
        if (size := len(dumps(value))) > NOTE_BYTES:
            text = f"a note has {NOTE_BYTES} bytes of JSON at most, this one {size}: say it in fewer words"
            return ToolReply(output=text, error="bad_arguments")
        base = self._versions.get(topic, 0)
        if base == 0 and len(self._versions) >= MOST_TOPICS:
            return ToolReply(output=f"there are {MOST_TOPICS} topics: use one of them", error="bad_arguments")
        try:
            await self._attempt.note(call, topic, value, base=base, timeout_s=timeout_s)
        except TimeoutError:
            return ToolReply(output="the log did not take the note in time", error="timeout")
        return ToolReply(output={"written": topic, "base": base})

    def _heard(self, _: ToolCall, arguments: Arguments, reply: ToolReply) -> None:
        """Count the version that a write makes, from the base that it had when it was made.

        An attempt that waited since has seen what others wrote meanwhile: its command has newer notes.
        """
        if reply.error is None and isinstance(reply.output, dict):
            topic, base = str(arguments["topic"]), reply.output.get("base", 0)
            made = (base if isinstance(base, int) else 0) + 1
            self._versions[topic] = max(self._versions.get(topic, 0), made)


SPEC: Final = ToolSpec(
    name=WRITE,
    description=(
        "Write a note that other sub-agents of this job may read, those that begin later. It replaces that "
        "of its topic which you were given; what somebody else has written meanwhile stays beside it, as "
        '{"merged": [...]}. Note what others need: a decision, a name, a fact found; not your result.'
    ),
    parameters={
        "type": "object",
        "properties": {
            "topic": {
                "type": "string",
                "minLength": 1,
                "maxLength": TOPIC_CHARACTERS,
                "description": "A word or two. Use the topic of a note there is, where it is about the same.",
            },
            "value": {"description": f"Text or JSON, at most {NOTE_BYTES} bytes."},
        },
        "required": ["topic", "value"],
        "additionalProperties": False,
    },
)
