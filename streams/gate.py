"""The rules of a tenant's gate: which goals are refused at intake, by their words alone."""

from agents.configuration.patterns import pattern
from agents.configuration.tenants import Gate
from streams.core.events import JobSubmitted
from streams.core.values import Inline


def refused(submitted: JobSubmitted, gate: Gate) -> str:
    """Why the gate refuses a goal; empty where it does not.

    Its words are its text and what the sub-tasks of a plan say that it brings. Every value is inline.
    """
    if gate.longest is None and not gate.refuse:
        return ""
    text = submitted.goal.text
    said = text.value if isinstance(text, Inline) else ""
    words = [str(said), *(task.goal for task in submitted.plan)]
    length = sum(map(len, words))
    if gate.longest is not None and length > gate.longest:
        return f"the goal has {length} characters, and its tenant's may have {gate.longest}"
    # Half a character is no text that the patterns could be tried on.
    texts = [each.encode(errors="replace").decode() for each in words]
    for unwanted in gate.refuse:
        found = pattern(unwanted.pattern)
        if any(found(each) for each in texts):
            return unwanted.reason
    return ""
