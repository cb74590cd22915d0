"""What directives make the simulated sub-agent do with the system's own tools: propose, and note."""

from collections.abc import Iterator

import orjson

from agents.simulator import directives
from agents.simulator.asked import Asked
from agents.simulator.wanted import Wanted

_MAP, _NOTE = "map_subtasks", "write_note"


def directed(asked: Asked) -> Iterator[Wanted]:
    """Calls of those tools, where they are offered or were in an earlier turn.

    Raises:
        Rejected: a directive makes no sense.
    """
    there = {tool.name for tool in asked.tools} | {call.name for call in asked.called}
    for directive in asked.directives:
        if directive.word == "map" and _MAP in there:
            count = directives.count(directive)
            further = f" {directive}" if directive.args[1:] == ("ever",) else ""
            told = {
                "goal": f"Work on the given things.{further}",
                "kind": "extract",
                "items": [f"thing {number}" for number in range(1, count + 1)],
            }
            yield Wanted(_MAP, orjson.dumps(told).decode())
        elif directive.word == "note" and _NOTE in there and directive.args:
            topic, *words = directive.args
            yield Wanted(_NOTE, orjson.dumps({"topic": topic, "value": " ".join(words)}).decode())
