"""The verifier: whether the promise was kept in a round or a life, by topics and the endpoint's log alone.

It looks at committed records only, as any reader of the topics may, and believes no part of the
system: what should have happened it folds from the log by the core's own rules, and what an answer
should be it is told by a run without faults.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from streams.chaos.evidence import Evidence, Finding
from streams.chaos.verifying.calls import after_a_stop, caps, nameless, repetitions
from streams.chaos.verifying.commits import commits
from streams.chaos.verifying.facts import Facts, read
from streams.chaos.verifying.goals import (
    accounted,
    as_expected,
    as_folded,
    buried_once,
    one_answer_each,
    seen_all_along,
)
from streams.chaos.verifying.order import commands, in_order, stops
from streams.chaos.verifying.retelling import retell
from streams.chaos.verifying.rows import rows_as_folded


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What there was, and what was found, of one round or of many together.

    Attributes:
        goals: Records on ``goals``, poison and repetitions among them.
        jobs: Jobs that had to be answered.
        answers: Answers published.
        dead_letters: Records on ``dead-letters``.
        calls: Calls of models that came to the endpoint, retries among them.
        repeated: Of these, how many were made again within an attempt since the reply was lost with
            the worker that waited for it, as the promise allows.
        kinds: How many findings there are of each kind.
    """

    goals: int = 0
    jobs: int = 0
    answers: int = 0
    dead_letters: int = 0
    calls: int = 0
    repeated: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)

    @property
    def lost(self) -> int:
        """Jobs without an answer, and records that nothing accounts for."""
        return self.kinds.get("lost", 0) + self.kinds.get("unaccounted", 0)

    @property
    def duplicated(self) -> int:
        """Answers that were published more than once."""
        return self.kinds.get("duplicated", 0)

    @property
    def wrong(self) -> int:
        """Answers that are not the one of a run without faults, or not what their log leads to."""
        return self.kinds.get("wrong", 0)

    @property
    def others(self) -> int:
        """All other findings."""
        return sum(self.kinds.values()) - self.lost - self.duplicated - self.wrong

    def __add__(self, other: "Figures") -> "Figures":
        return Figures(
            goals=self.goals + other.goals,
            jobs=self.jobs + other.jobs,
            answers=self.answers + other.answers,
            dead_letters=self.dead_letters + other.dead_letters,
            calls=self.calls + other.calls,
            repeated=self.repeated + other.repeated,
            kinds=Counter(self.kinds) + Counter(other.kinds),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the verifier says. Without findings the promise was kept."""

    findings: tuple[Finding, ...]
    figures: Figures


def verify(evidence: Evidence) -> list[Finding]:
    """Every way in which the promise was broken; empty where it was kept."""
    return list(judge(evidence).findings)


def judge(evidence: Evidence) -> Verdict:
    """Look at the evidence whole."""
    facts = read(evidence)
    told = retell(facts)
    called_again, repeated = repetitions(facts)
    findings = tuple(
        _each_once(
            (
                *one_answer_each(facts),
                *as_expected(facts),
                *as_folded(facts, told),
                *accounted(facts, told),
                *buried_once(facts, told),
                *in_order(facts, told),
                *commands(facts, told),
                *stops(facts, told),
                *after_a_stop(facts),
                *caps(evidence, facts.calls),
                *called_again,
                *rows_as_folded(facts, told),
                *commits(facts, told),
                *nameless(facts),
                *seen_all_along(facts),
                *_at_the_end(evidence),
            )
        )
    )
    return Verdict(findings=findings, figures=_figures(facts, findings, repeated))


def _at_the_end(evidence: Evidence) -> Iterator[Finding]:
    """Nothing is left open or behind, and the system works."""
    for transaction in evidence.open_transactions:
        yield Finding(kind="open_transaction", where=transaction, what="a transaction is still open")
    for place, behind in evidence.lag.items():
        if behind:
            yield Finding(kind="lag", where=place, what=f"{behind} records behind at the end")
    if not evidence.fresh_answered:
        yield Finding(kind="not_recovered", where="a fresh goal", what="it was not answered")


def _each_once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Two checks may find that the same job is lost; it is lost once."""
    lost: set[str] = set()
    for finding in findings:
        if finding.kind == "lost":
            if finding.where in lost:
                continue
            lost.add(finding.where)
        yield finding


def _figures(facts: Facts, findings: tuple[Finding, ...], repeated: int) -> Figures:
    return Figures(
        goals=len(facts.goals),
        jobs=len({goal.job for _, goal in facts.goals if goal.job is not None}),
        answers=sum(len(published) for published in facts.answers.values()),
        dead_letters=len(facts.letters),
        calls=len(facts.evidence.calls),
        repeated=repeated,
        kinds=Counter(finding.kind for finding in findings),
    )
