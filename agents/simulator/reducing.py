"""The simulated summary of some results: the beginning of each, with its name, as long as it may be."""

from agents.simulator.asked import Asked
from agents.simulator.wording import LABEL, quote

_NAME_BYTES = 80  # a line's sub-task and marks
_LEAST_CHARS = 20


def reduce(asked: Asked) -> str:
    """The summary."""
    given = asked.data.get("results")
    results = [r for r in given if isinstance(r, dict)] if isinstance(given, list) else []
    most = asked.data.get("at_most_bytes")
    room = most if isinstance(most, int) else 4_096
    share = max(_LEAST_CHARS, room // max(1, len(results)) - _NAME_BYTES)
    lines = []
    for result in results:
        said = result.get("result")
        if isinstance(said, dict) and {"part", "parts", "text"} == set(said):
            said = f"part {said['part']} of {said['parts']}: {said['text']}"
        text = quote(said, share).encode()[:share].decode(errors="ignore")
        lines.append(f"- {text} [{result.get('task')}]")
    return "\n".join([f"{LABEL}Of {len(results)} results:", *lines])
