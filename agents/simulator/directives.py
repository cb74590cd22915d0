"""Directives: ``[[...]]`` in a goal steers what the simulated model does, for tests and benchmarks.

What the planner obeys, in the text of the goal:

======================  ==========================================================================
``[[plan N]]``          N independent sub-tasks
``[[chain N]]``         N sub-tasks, each of which needs the one before
``[[diamond]]``         four: one, two that need it, one that needs these two
``[[join N]]``          N independent sub-tasks and one that needs them all
``[[noop N]]``          N independent sub-tasks that run tool ``noop`` directly, without a model
``[[plan N noop]]``     likewise for every shape: its sub-tasks run ``noop``
``[[cycle]]``           a plan with a cycle, which is to be refused, also when asked again
``[[cycle once]]``      a plan with a cycle; when asked again, a good one
======================  ==========================================================================

When it is asked again after a failure, it plans what failed once more, without the directives that it
suffered by. With ``[[replan again]]`` they stay, and with ``[[replan cycle]]`` the new plan has a cycle.

The plan is as large as asked for, also where that is more than is allowed. All other directives
are copied to the goals of the sub-tasks; one that ends in ``@K`` to the K-th alone.

What a sub-agent suffers, by a directive in its goal or in its share of the input:

========================  ========================================================================
``[[fail]]``              400 ``content_filter``, always
``[[error STATUS]]``      this status (400 to 599), always
``[[flaky N]]``           500 the first N times that the very same request comes, then an answer
``[[hang]]``              no answer
``[[slow SECONDS]]``      the answer takes so long, whatever the latency
``[[straggle SECONDS]]``  likewise, the first time that the very same request comes
========================  ========================================================================

With ``planner``, ``synthesis``, ``reduction`` or ``judge`` at the end (``[[fail synthesis]]``) they strike
there instead, where the goal of the job has them. Words that are none of these are left alone.

What a sub-agent does with the tools of the system's own, where it is offered them:

=============================  ===================================================================
``[[map N]]``                  it proposes a further sub-task for each of N things
``[[map N ever]]``             so do all of those
``[[note TOPIC WORDS]]``       it writes a note; the plan grants it, where the goal has notes
=============================  ===================================================================

What is said, by a directive in the goal of the sub-task or of the job:

===========================  =====================================================================
``[[say WORDS]]``            a sub-agent answers with these words, which may be JSON, and nothing else
``[[say WORDS by MODEL]]``   likewise, if it is this model
``[[cite]]``                 the synthesis names its sources
``[[contradict A B]]``       the judge says that these sub-tasks contradict each other
``[[alike A B]]``            the judge says that they say the same; else it is who has the same words
``[[order A B]]``            the judge puts these sub-tasks first
``[[refuse WHY]]``           the judge does not let the goal in
===========================  =====================================================================
"""

import re
from dataclasses import dataclass, replace

from agents.simulator.problems import CONTENT_FILTER, Problem, Rejected

PLANNER = "planner"
SUB_AGENT = "sub-agent"
SYNTHESIS = "synthesis"
REDUCTION = "reduction"
JUDGE = "judge"

SHAPES = frozenset({"plan", "chain", "diamond", "join", "noop", "cycle"})

_ELSEWHERE = frozenset({PLANNER, SYNTHESIS, REDUCTION, JUDGE})
_ORDEALS = frozenset({"fail", "error", "flaky", "hang", "slow", "straggle"})
_WRITTEN = re.compile(r"\[\[([^\[\]]{1,80})\]\]")
_ERRORS = range(400, 600)
_LARGEST = 1e6
_MOST_TASKS = 1_000  # a plan of more says nothing that this one does not


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """One directive.

    Attributes:
        word: The first word.
        args: The words after it.
        only: The sub-task of the plan that it is for, from 1, or None for all.
    """

    word: str
    args: tuple[str, ...] = ()
    only: int | None = None

    def __str__(self) -> str:
        """As it is written, without ``@K``."""
        return f"[[{' '.join((self.word, *self.args))}]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordeal:
    """What is to befall a call.

    Attributes:
        problem: It is answered with this.
        times: Only when the same request came fewer times than this before; None means always.
        hang: It is never answered.
        slow_s: Seconds it takes, or None for the latency of the endpoint.
        first_s: Seconds it takes when the same request never came before; None: no others.
    """

    problem: Problem | None = None
    times: int | None = None
    hang: bool = False
    slow_s: float | None = None
    first_s: float | None = None

    def strikes(self, nth: int) -> Problem | None:
        """What a request that came *nth* times before is answered with, instead of a reply."""
        return self.problem if self.times is None or nth < self.times else None

    def seconds(self, nth: int) -> float | None:
        """Seconds that a request takes that came *nth* times before, or None for the endpoint's latency."""
        return self.slow_s if self.first_s is None or nth else self.first_s


NO_ORDEAL = Ordeal()


def read(text: str) -> tuple[str, tuple[Directive, ...]]:
    """Split a goal into its words and its directives."""
    if "[[" not in text:
        return text, ()
    found: list[Directive] = []
    for match in _WRITTEN.finditer(text):
        words = match[1].split()
        if not words:
            continue
        only = None
        if len(words) > 1 and re.fullmatch(r"@\d{1,4}", words[-1]):
            only = int(words.pop()[1:])
        found.append(Directive(word=words[0].lower(), args=tuple(words[1:]), only=only))
    return " ".join(_WRITTEN.sub(" ", text).split()), tuple(found)


def count(directive: Directive) -> int:
    """The number that a shape is to have.

    Raises:
        Rejected: it has none, or one out of bounds.
    """
    number = _number(directive, 0)
    if not 1 <= number <= _MOST_TASKS:
        raise _wrong(directive, f"a number from 1 to {_MOST_TASKS} is needed")
    return int(number)


def ordeal(directives: tuple[Directive, ...], role: str) -> Ordeal:
    """What the directives do to a call of this role.

    Raises:
        Rejected: a directive makes no sense.
    """
    suffered = NO_ORDEAL
    for directive in directives:
        if directive.word not in _ORDEALS or directive.only is not None:
            continue
        args = directive.args
        struck = args[-1] if args and args[-1] in _ELSEWHERE else SUB_AGENT
        if struck == role:
            suffered = _suffer(suffered, directive)
    return suffered


def _suffer(suffered: Ordeal, directive: Directive) -> Ordeal:
    match directive.word:
        case "hang":
            return replace(suffered, hang=True)
        case "slow":
            return replace(suffered, slow_s=_number(directive, 0))
        case "straggle":
            return replace(suffered, first_s=_number(directive, 0))
        case "flaky":
            return replace(suffered, problem=Problem.of_status(500), times=int(_number(directive, 0)))
        case "error":
            status = int(_number(directive, 0))
            if status not in _ERRORS:
                raise _wrong(directive, "a status from 400 to 599 is needed")
            return replace(suffered, problem=Problem.of_status(status))
        case _:
            return replace(suffered, problem=CONTENT_FILTER)


def _number(directive: Directive, place: int) -> float:
    try:
        number = float(directive.args[place])
    except (IndexError, ValueError):
        raise _wrong(directive, "a number is needed") from None
    if not 0 <= number <= _LARGEST:
        raise _wrong(directive, "the number is out of bounds")
    return number


def _wrong(directive: Directive, why: str) -> Rejected:
    return Rejected(Problem.bad_request(f"directive {directive}: {why}", "messages"))
