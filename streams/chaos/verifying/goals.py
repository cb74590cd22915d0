"""Every goal has its one answer, and it is the right one; every record is accounted for."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Final

import orjson

from streams.chaos.evidence import Expected, Finding
from streams.chaos.verifying.facts import Facts, Place, place_of, stands
from streams.chaos.verifying.retelling import Told
from streams.claims import ValueLost
from streams.core.commands import Answer
from streams.core.values import JobId, Json
from streams.effects import ANSWER_BYTES
from streams.log import Record
from streams.topics import ANSWERS, DEAD_LETTERS
from streams.wire.answers import write_fitting
from streams.wire.goals import BadGoal

_SHOWN: Final = 300


def one_answer_each(facts: Facts) -> Iterator[Finding]:
    """Every job that a goal opened has one answer, and one a revision."""
    revisions: dict[JobId, list[int]] = {}
    for (job, revision), published in facts.answers.items():
        revisions.setdefault(job, []).append(revision)
        if len(published) > 1:
            places = ", ".join(stands(record) for record, _ in published)
            yield Finding(
                kind="duplicated",
                where=job,
                what=f"{len(published)} answers of revision {revision}: {places}",
            )
    for job, found in revisions.items():
        if sorted(found) != list(range(1, len(found) + 1)):
            yield Finding(kind="lost", where=job, what=f"revisions {sorted(found)}: one is missing before")
    missing: dict[JobId, Record] = {}
    for record, goal in facts.goals:
        if goal.job is not None and goal.job not in revisions:
            missing.setdefault(goal.job, record)
    for job, record in missing.items():
        yield Finding(kind="lost", where=job, what=f"the goal at {stands(record)} has no answer")


def accounted(facts: Facts, told: Told) -> Iterator[Finding]:
    """Source positions are answers and dead letters, and neither speaks of a goal that was never sent."""
    answered = {
        place_of(answer.source): answer
        for published in facts.answers.values()
        for _, answer in published
        if answer.source is not None
    }
    for record, goal in facts.goals:
        place = place_of(record)
        if place in facts.buried:
            continue
        if isinstance(goal, BadGoal):
            # Also where it is answered as rejected: whoever sent it finds it whole among the dead letters.
            what = f"no dead letter, though it is no goal: {goal.reason}"
        elif place in answered or goal.goal.digest in (told.digests.get(goal.job) or {goal.goal.digest}):
            continue  # or it shares the job's answer; a job without one is lost, which is found elsewhere
        else:
            what = f"another goal than the one that opened {goal.job}, and no dead letter"
        yield Finding(kind="unaccounted", where=stands(record), what=what)
    for record in facts.words:
        if place_of(record) not in facts.opened and place_of(record) not in facts.buried:
            what = "a person's word, which no job was told"
            yield Finding(kind="unaccounted", where=stands(record), what=what)
    yield from _of_records_that_are_there(facts, answered)


def _of_records_that_are_there(facts: Facts, answered: Mapping[Place, Answer]) -> Iterator[Finding]:
    sent = {place_of(record) for record, _ in facts.goals}
    for place, answer in answered.items():
        if place not in sent:
            yield Finding(
                kind="unaccounted",
                where=answer.job,
                what=f"an answer to a goal at {place}, which is not there",
            )
    there = {topic: {place_of(r) for r in records} for topic, records in facts.evidence.records.items()}
    for letter in facts.letters:
        place = place_of(letter.place)
        if place[0] in there and place not in there[place[0]]:
            where = f"{DEAD_LETTERS}[{letter.partition}]@{letter.offset}"
            yield Finding(
                kind="unaccounted", where=where, what=f"a dead letter of {place}, where nothing stands"
            )


def buried_once(facts: Facts, told: Told) -> Iterator[Finding]:
    """What cannot be folded is one dead letter: the transaction that goes past it holds it."""
    for place in sorted(told.buried):
        if (count := facts.buried.get(place, 0)) != 1:
            what = f"{count} dead letters of an event that cannot be folded, where there should be one"
            yield Finding(kind="unaccounted", where=_where(place), what=what)


def as_expected(facts: Facts) -> Iterator[Finding]:
    """The newest answer of each job is the one that a run without faults gave."""
    newest_of: dict[JobId, int] = {}
    for job, revision in facts.answers:
        newest_of[job] = max(revision, newest_of.get(job, 0))
    for job, expected in facts.evidence.expected.items():
        newest = newest_of.get(job, 0)
        if not newest:
            yield Finding(kind="lost", where=job, what=f"no answer; expected: {expected.outcome}")
            continue
        for record, answer in facts.answers[job, newest]:
            if wrong := _difference(facts, answer, expected):
                yield Finding(kind="wrong", where=f"{job} at {stands(record)}", what=wrong)


def as_folded(facts: Facts, told: Told) -> Iterator[Finding]:
    """Each answer is, byte for byte, the one that its job's events lead to."""
    yield from facts.unreadable
    for (job, revision), published in facts.answers.items():
        made = told.answers.get((job, revision))
        for record, answer in published:
            where = f"{job} at {stands(record)}"
            if made is None:
                yield Finding(kind="wrong", where=where, what="its events lead to no answer of this revision")
            elif write_fitting(made[1], ANSWER_BYTES) != (record.value, record.headers):
                leads = f"{made[1].outcome} by {made[1].rule}"
                what = f"its events lead to {leads}, not to these words of {answer.outcome} by {answer.rule}"
                yield Finding(kind="wrong", where=where, what=what)
    for (job, revision), (event, _) in told.answers.items():
        if (job, revision) not in facts.answers:
            what = f"the event at {stands(event)} ended it, and revision {revision} of its answer is missing"
            yield Finding(kind="lost", where=job, what=what)


def seen_all_along(facts: Facts) -> Iterator[Finding]:
    """The reader that ran all along saw what is there now, in the same order."""
    now, then = _by_partition(facts.records(ANSWERS)), _by_partition(facts.evidence.seen)
    for partition in sorted({*now, *then}):
        for stands_now, was_seen in zip_longest(now.get(partition, ()), then.get(partition, ())):
            if stands_now == was_seen:
                continue
            place = stands_now or was_seen
            assert place is not None
            told = "nothing" if was_seen is None else f"{was_seen.key!r} at offset {was_seen.offset}"
            there = "nothing" if stands_now is None else f"{stands_now.key!r} at offset {stands_now.offset}"
            yield Finding(kind="unseen", where=stands(place), what=f"saw {told}, there stands {there}")
            break  # what follows is shifted


def _by_partition(records: Iterable[Record]) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(record)
    return found


def _difference(facts: Facts, answer: Answer, expected: Expected) -> str:
    if answer.outcome != expected.outcome:
        return f"{answer.outcome} ({answer.reason}), expected {expected.outcome}"
    if not expected.exact:
        return ""
    try:
        value = None if answer.answer is None else facts.value(answer.answer)
    except ValueLost as lost:
        return f"its answer cannot be read: {lost}"
    if (has := _json(value)) == (wants := _json(expected.answer)):
        return ""
    begins = next(
        (n for n, (a, b) in enumerate(zip(has, wants, strict=False)) if a != b), min(len(has), len(wants))
    )
    start = max(0, begins - 40)
    return f"from byte {begins} on {_shown(has[start:])} and not {_shown(wants[start:])}"


def _json(value: Json) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _shown(value: bytes) -> str:
    return value[:_SHOWN].decode(errors="replace")


def _where(place: Place) -> str:
    topic, partition, offset = place
    return f"{topic}[{partition}]@{offset}"
