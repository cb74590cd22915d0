"""What a goal in plain words names: the things in 'compare a, b and c', or its steps one after another."""

import re

_LIST = re.compile(r"\s*,\s*(?:and|or)\s+|\s*,\s*|\s+(?:and|or|vs\.?|versus)\s+", re.IGNORECASE)
_SENTENCES = re.compile(r"[.;!?]+\s+|\n+")
_STEPS = re.compile(r"[.;!?]+\s+|\n+|,?\s+(?:and\s+)?then\s+", re.IGNORECASE)
# What stands before the first thing of a list, and after the last one.
_BEFORE = re.compile(
    r"^.*(?::|\b(?:of|for|between|about|in|on|from|to|with|among|across|than))\s+", re.IGNORECASE
)
_AFTER = re.compile(
    r"\s+(?:for|in|by|with|as|from|to|into|when|because|so|that|which|using|and)\s.*$", re.IGNORECASE
)
_ARTICLE = re.compile(r"^(?:the|a|an|both|either)\s+", re.IGNORECASE)
_VERB = re.compile(
    r"^(?:say|tell|report|write|list|explain|find|give|make|name|show|describe|translate|count|check"
    r"|compare|analy[sz]e|summari[sz]e|extract|read|look|rank|choose|audit|assess|collect|be|is|are)\b",
    re.IGNORECASE,
)
_MOST_WORDS = 5

_KINDS = (
    ("translate", re.compile(r"\btranslat", re.IGNORECASE)),
    ("summarize", re.compile(r"\bsummar", re.IGNORECASE)),
    (
        "analyze",
        re.compile(r"\b(?:analy|compar|audit|assess|evaluat|review|rank|explain|why)", re.IGNORECASE),
    ),
    (
        "extract",
        re.compile(r"\b(?:extract|list|find|read|collect|look|name|count|what|which)", re.IGNORECASE),
    ),
)


def kind(text: str) -> str:
    """The kind of sub-task that a text asks for; ``analyze`` where it says nothing."""
    return next((name for name, said in _KINDS if said.search(text)), "analyze")


def things(text: str) -> list[str]:
    """The things that the first list in a text names; empty where it names fewer than two."""
    for sentence in _SENTENCES.split(text):
        parts = _LIST.split(sentence.strip().rstrip(".!?"))
        if len(parts) == 1:
            continue
        parts[0] = _first(parts[0])
        parts[-1] = _AFTER.sub("", parts[-1])
        named = [_ARTICLE.sub("", part.strip()).strip() for part in parts]
        if all(named) and not any(len(n.split()) > _MOST_WORDS or _VERB.match(n) for n in named):
            distinct = list(dict.fromkeys(named))
            if len(distinct) > 1:
                return distinct
    return []


def _first(part: str) -> str:
    after = _BEFORE.sub("", part)
    if after != part:
        return after
    # 'Compare Kafka': the verb goes. 'Kafka' stays.
    verb, _, rest = part.partition(" ")
    return rest or verb


def steps(text: str) -> list[str]:
    """The sentences and 'then's of a text, in order."""
    return [step.strip().rstrip(".!?") for step in _STEPS.split(text) if step and step.strip(" .!?")]
