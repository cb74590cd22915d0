"""Lives that kept the promise, and the same with one thing changed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from streams.chaos.evidence import Evidence
from streams.chaos.scenarios import SHARED
from streams.chaos.simulation.living import live
from streams.chaos.simulation.series import silence
from streams.chaos.verifier import judge
from streams.core.values import JobId
from streams.log import Record
from streams.topics import ANSWERS

JOB: JobId = "default/g2"
"""A diamond."""

CALM = "nothing goes wrong"
BAD_INPUT = "records that nobody can read"
SMALL = "four jobs"
SCENARIOS = {**SHARED, SMALL: replace(SHARED[BAD_INPUT], jobs=SHARED[CALM].jobs[:4])}


@cache
def lived(name: str) -> Evidence:
    """What is left of a life."""
    with silence():
        return live(SCENARIOS[name]).evidence


def calm() -> Evidence:
    """A life in which only the input is bad."""
    return lived(BAD_INPUT)


def kinds(evidence: Evidence) -> set[str]:
    """The kinds of all findings."""
    return {finding.kind for finding in judge(evidence).findings}


Choice = Callable[[Record], bool]


def of(key: str) -> Choice:
    """The records of this key."""
    return lambda record: record.key == key.encode()


def first(evidence: Evidence, topic: str, choice: Choice) -> Record:
    """The first record of a topic that is chosen."""
    return next(record for record in evidence.records[topic] if choice(record))


def with_records(evidence: Evidence, topic: str, records: Sequence[Record]) -> Evidence:
    """The evidence with other records of a topic; of answers the running reader saw the same."""
    seen = records if topic == ANSWERS else evidence.seen
    return replace(evidence, records={**evidence.records, topic: records}, seen=seen)


def without(evidence: Evidence, topic: str, choice: Choice) -> Evidence:
    """The evidence without the records chosen."""
    kept = [record for record in evidence.records[topic] if not choice(record)]
    assert len(kept) < len(evidence.records[topic])
    return with_records(evidence, topic, kept)


def changed(evidence: Evidence, topic: str, choice: Choice, change: Callable[[Record], Record]) -> Evidence:
    """The evidence with the first record chosen changed."""
    chosen = first(evidence, topic, choice)
    return with_records(
        evidence, topic, [change(each) if each is chosen else each for each in evidence.records[topic]]
    )


def again(evidence: Evidence, topic: str, choice: Choice) -> Evidence:
    """The evidence with the first record chosen once more, at the end of its partition."""
    chosen = first(evidence, topic, choice)
    end = max(each.offset for each in evidence.records[topic] if each.partition == chosen.partition) + 1
    return with_records(evidence, topic, [*evidence.records[topic], replace(chosen, offset=end)])
