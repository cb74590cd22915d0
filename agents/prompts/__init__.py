"""The fixed part of every prompt, one file a role.

Nothing in these files varies from call to call, and they stand first in every request, so that
the provider's prompt cache hits. What varies is one JSON object in the user message.
"""

from pathlib import Path


def read_prompt(role: str) -> str:
    """The system prompt of a role: the name of its file, such as ``planner``."""
    return (Path(__file__).parent / f"{role}.md").read_text(encoding="utf-8")
