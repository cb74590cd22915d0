"""Makes a scenario that breaks the promise as small as it can be and still break it the same way."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from streams.chaos.scenarios import Scenario

PLAIN: Final = (
    "failures",
    "delay_s",
    "lost_sends",
    "lost_replies",
    "unknown_commits",
    "short_batches",
    "window",
    "batch",
    "drain_s",
)
"""Fields that are put back to their defaults where that makes no difference."""

MOST_TRIES: Final = 400
"""Lives that the search for a smaller one may take."""


def shrunk(scenario: Scenario, breaks: Callable[[Scenario], bool], *, tries: int = MOST_TRIES) -> Scenario:
    """The smallest scenario found for which *breaks* still holds: whatever can be left out, is."""
    left, again = tries, True
    while again and left > 0:
        again = False
        for smaller in simpler(scenario):
            if left <= 0:
                break
            left -= 1
            if breaks(smaller):
                scenario, again = smaller, True
                break
    return scenario


def simpler(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios a step simpler, those with the most left out first."""
    yield from _shorter(scenario)
    plain = Scenario()
    for name in PLAIN:
        if getattr(scenario, name) != getattr(plain, name):
            yield _with(scenario, name, getattr(plain, name))
    for place, incident in enumerate(scenario.incidents):
        if incident.steps:
            simple = replace(incident, steps=0)
            yield replace(
                scenario,
                incidents=(*scenario.incidents[:place], simple, *scenario.incidents[place + 1 :]),
            )
    for place, job in enumerate(scenario.jobs):
        for simple_job in (replace(job, times=1), replace(job, padding=0)):
            if simple_job != job:
                yield replace(
                    scenario, jobs=(*scenario.jobs[:place], simple_job, *scenario.jobs[place + 1 :])
                )
    if scenario.static:
        yield replace(scenario, static=False)
    if scenario.workers > 1:
        yield replace(scenario, workers=scenario.workers - 1)
    if scenario.lanes > 1:
        yield replace(scenario, lanes=scenario.lanes - 1)


def _shorter(scenario: Scenario) -> Iterator[Scenario]:
    """Without a half, then without each one of its jobs, incidents, records that nobody can read."""
    for name in ("jobs", "incidents", "poison"):
        parts = tuple(getattr(scenario, name))
        if len(parts) > 3:  # noqa: PLR2004 - below it each one is tried anyway
            half = len(parts) // 2
            yield _with(scenario, name, parts[half:])
            yield _with(scenario, name, parts[:half])
    for name in ("incidents", "poison", "jobs"):
        parts = tuple(getattr(scenario, name))
        for place in range(len(parts)):
            yield _with(scenario, name, (*parts[:place], *parts[place + 1 :]))


def _with(scenario: Scenario, name: str, value: object) -> Scenario:
    return replace(scenario, **{name: value})  # type: ignore[arg-type]  # the field's own kind of value
