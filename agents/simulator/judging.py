"""The simulated judge: verdicts by the words of the results, or by directives in the goal."""

from collections.abc import Mapping
from typing import Any

import orjson

from agents.simulator.asked import Asked
from agents.simulator.directives import Directive


def judge(asked: Asked) -> str:
    """The verdict that is asked for, as JSON."""
    given = asked.data.get("results")
    results = [r for r in given if isinstance(r, dict)] if isinstance(given, list) else []
    names = [str(r.get("task")) for r in results]
    match asked.data.get("asks"):
        case "gate":
            verdict: Any = _gate(asked)
        case "check":
            found = [_named(each, names) for each in _all(asked, "contradict")]
            verdict = {
                "contradictions": [{"tasks": t, "about": "what they say"} for t in found if len(t) > 1]
            }
        case "equal":
            verdict = {"groups": _groups(asked, results, names)}
        case _:
            first = [name for each in _all(asked, "order") for name in _named(each, names)]
            verdict = {"order": [*dict.fromkeys((*first, *names))]}
    return orjson.dumps(verdict).decode()


def _gate(asked: Asked) -> dict[str, Any]:
    refused = next(iter(_all(asked, "refuse")), None)
    why = "" if refused is None else " ".join(refused.args) or "it is not for us"
    return {"allow": refused is None, "reason": why}


def _groups(asked: Asked, results: list[dict[str, Any]], names: list[str]) -> list[list[str]]:
    """Those whose results have the same words; a directive puts others together."""
    alike = {name: f"{_words(result)}" for name, result in zip(names, results, strict=True)}
    for each in _all(asked, "alike"):
        named = _named(each, names)
        for name in named[1:]:
            alike[name] = alike[named[0]]
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(alike[name], []).append(name)
    return [*groups.values()]


def _words(result: Mapping[str, Any]) -> str:
    said = result.get("result")
    text = said if isinstance(said, str) else orjson.dumps(said).decode()
    return " ".join(text.lower().split())


def _all(asked: Asked, word: str) -> list[Directive]:
    return [each for each in asked.directives if each.word == word]


def _named(directive: Directive, names: list[str]) -> list[str]:
    return [name for name in directive.args if name in names]
