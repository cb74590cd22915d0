"""What the endpoint's own log shows: caps kept, and no finished call made twice."""

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Final, Literal, TypeAlias

from streams.chaos.evidence import Call, Evidence, Finding, Life
from streams.chaos.verifying.facts import Facts, MadeCall

LEFT_MS: Final = 100
"""Milliseconds after which an endpoint has noticed at the latest that its client left."""

READABLE_MS: Final = 1_000
"""Milliseconds after which a reply on the journal is known to whoever goes on with its attempt: lanes
read it behind the brokers, and look a last time just before they call."""

DOWN_MS: Final = 30_000
"""Milliseconds after which a worker that was told to stop has ended, as its ``drain_s`` is chosen for."""

STOPPED_MS: Final = 1_000
"""Milliseconds after a stop in which calls of its attempt may still begin."""

MOVING_MS: Final = 45_000
"""Milliseconds after a worker came, went or was paused in which lanes may move, and their new owners do not
hear of a stop at once."""

TOLD_MS: Final = 10_000
"""Milliseconds after an outage in which whoever lost a lane meanwhile learns of it, and says what it still
has under way there."""

ANSWERED: Final = "200"
LEFT: Final = "left"

Verdict: TypeAlias = Literal["failed", "excused", "needless"]
"""How a call stands to the same one made again: it *failed* as far as its caller knew, so that it was
rightly tried again; its reply was lost with its caller, which *excused* the repetition; or it was
*needless*."""


def caps(evidence: Evidence, calls: Iterable[MadeCall]) -> Iterator[Finding]:
    """Calls under way at once stay below the cap.

    Those of a worker that was killed or stopped in its tracks count up to then: nobody can call
    them back, and a server sees late, or never, that its client is gone. A worker may always make
    one call, so a cap below the number of lanes is that number. While no broker takes records nobody
    can tell the next owner of a lane what is under way, so what begins then, and until it is told, is
    not held against it.
    """
    cap = max(evidence.concurrency, evidence.lanes)
    lives = {life.run: life for life in evidence.lives}
    steps: list[tuple[int, int, str]] = []
    for made in calls:
        call = made.call
        ends = [] if call.ended is None else [call.ended - (LEFT_MS if call.status == LEFT else 0)]
        life = lives.get(made.name.run)
        breaks = () if life is None else _breaks(life)
        ends += [max(since, call.began) for since, until in breaks if call.began <= until]
        steps.append((call.began, 1, call.call_id))
        if ends:
            steps.append((max(call.began, min(ends)), -1, call.call_id))
    now, most, when, which = 0, 0, 0, ""
    for at, step, name in sorted(steps):  # at the same time ends come first
        now += step
        if now > most and not any(since <= at <= until + TOLD_MS for since, until in evidence.outages):
            most, when, which = now, at, name
    if most > cap:
        what = f"{most} calls under way at {when}, at most {cap} may be; the last was {which}"
        yield Finding(kind="cap", where="the endpoint", what=what)


def nameless(facts: Facts) -> Iterator[Finding]:
    """Every call says which one it is, or nobody could tell that it was made twice."""
    if count := len(facts.evidence.calls) - len(facts.calls):
        what = f"{count} of {len(facts.evidence.calls)} calls have no name of ours"
        yield Finding(kind="unaccounted", where="the endpoint", what=what)


def repetitions(facts: Facts) -> tuple[list[Finding], int]:
    """The calls that were made again needlessly, and how many others were made again."""
    lives = {life.run: life for life in facts.evidence.lives}
    groups: dict[tuple[bytes, int], list[MadeCall]] = {}
    for made in facts.calls:
        groups.setdefault(made.which, []).append(made)
    findings: list[Finding] = []
    excused = 0
    for group in groups.values():
        for place, made in enumerate(group):
            verdicts = {first: _verdict(facts, lives, first, made) for first in group[:place]}
            needless = [first for first, verdict in verdicts.items() if verdict == "needless"]
            if needless:
                findings.append(_again(facts, needless[-1], made))
            elif "excused" in verdicts.values():
                excused += 1
            elif not verdicts and (late := _after_its_end(facts, made)):
                findings.append(late)
    return [*findings, *_tools_begun_twice(facts)], excused


def _verdict(facts: Facts, lives: Mapping[str, Life], first: MadeCall, again: MadeCall) -> Verdict:
    call, began = first.call, again.call.began
    over = call.ended is not None and call.ended <= began
    if over and call.status not in {ANSWERED, LEFT}:
        return "failed"
    told = facts.failed.get((*first.which, first.name.tried, first.name.run))
    if told is not None and told <= began:
        return "failed"  # its caller saw no reply, or no whole one
    replied = facts.replied.get((*first.which, first.name.run))
    if replied is not None and replied + READABLE_MS <= began:
        return "needless"
    if first.name.run != again.name.run and (life := lives.get(first.name.run)) is not None:
        breaks = [since for since, until in _breaks(life) if since <= began and call.began <= until]
        if any(replied is None or since <= replied for since in breaks):
            return "excused"
        # Told to stop, it gives up what has not ended when its time to drain is over.
        given_up = call.ended if over and call.status == LEFT else None
        if life.how == "stopped" and given_up is not None and given_up >= _told_to_stop(life):
            return "excused"
    for since, until in facts.evidence.outages:
        if since <= began and until >= call.began and (replied is None or replied >= since):
            return "excused"
    return "needless"


def _breaks(life: Life) -> Iterator[tuple[int, float]]:
    """Spans in which it took no step. A call that came meanwhile was on its way before."""
    if life.ended is not None and life.how != "stopped":
        yield life.ended, inf
    yield from life.pauses


def _told_to_stop(life: Life) -> int:
    return (life.ended or 0) - DOWN_MS if life.told is None else life.told


def _again(facts: Facts, first: MadeCall, again: MadeCall) -> Finding:
    replied = facts.replied.get((*first.which, first.name.run))
    journal = "its reply never came to the journal" if replied is None else f"on the journal at {replied}"
    before = f"{_told(first.call)} by {first.name.run}, {journal}"
    what = f"called at {again.call.began} by {again.name.run}; before that {before}"
    return Finding(kind="called_again", where=f"call {again.call.call_id}", what=what)


def _told(call: Call) -> str:
    end = "still under way" if call.ended is None else f"{call.status} at {call.ended}"
    return f"called at {call.began}, {end}"


def _after_its_end(facts: Facts, made: MadeCall) -> Finding | None:
    """A call of an attempt whose end its job knew already: of a process that woke up, say."""
    ended = facts.ends.get(made.attempt)
    if ended is None or made.call.began <= ended:
        return None
    what = f"called at {made.call.began}, and its attempt had ended at {ended}"
    return Finding(kind="called_again", where=f"call {made.call.call_id}", what=what)


def after_a_stop(facts: Facts) -> Iterator[Finding]:
    """Stopped means stopped: no call begins more than a second later, while the lanes stay where they are."""
    moves = [at for life in facts.evidence.lives for at in _moves(life)]
    for made in facts.calls:
        for stop in facts.stops.get(made.attempt, ())[:1]:
            began, at = made.call.began, stop.timestamp
            if began <= at + STOPPED_MS or any(at - MOVING_MS <= move <= began for move in moves):
                continue
            if any(since <= began and until + TOLD_MS >= at for since, until in facts.evidence.outages):
                continue
            what = f"called at {began}, and its attempt was stopped at {at}"
            yield Finding(kind="after_stop", where=f"call {made.call.call_id}", what=what)


def _moves(life: Life) -> Iterator[int]:
    yield life.began
    for since, until in life.pauses:
        yield from (since, until)
    if life.told is not None:
        yield life.told
    if life.ended is not None:
        yield life.ended


def _tools_begun_twice(facts: Facts) -> Iterator[Finding]:
    """Tools that must not be called twice within an attempt: their outcome may be unknown.

    Who wrote that it was about to call one may have learnt meanwhile that its lane is another's, and
    then does not. So it counts who ended a call, beside another who did, or after it was known that
    another had begun.
    """
    for (attempt, call), runs in facts.started.items():
        ended = [run for run in runs if (attempt, call, run) in facts.tools_ended]
        for run in ended:
            before = [
                other
                for other, at in runs.items()
                if other != run and (other in ended or _known(facts, at, runs[run]))
            ]
            if before:
                where = f"{attempt.decode(errors='replace')} {call}"
                what = f"a tool that must not be called twice was called by {run}, and begun by {before[0]}"
                yield Finding(kind="called_again", where=where, what=what)
                break


def _known(facts: Facts, at: int, began: int) -> bool:
    """Whether what was on the journal *at* a time was known to whoever *began* later."""
    if began < at + READABLE_MS:
        return False
    return not any(since <= began and until >= at for since, until in facts.evidence.outages)
