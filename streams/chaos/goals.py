"""Records of ``goals`` for rounds: jobs of every shape from a seed, records sent twice, and poison.

Their answers follow from the goals alone: the simulated model replies by what it is asked, and what
fails, fails for good at its first try. So a run without faults, without a log even, tells what they
must be (:func:`with_answers`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

import orjson

from agents.simulator.behaviour import Behaviour
from agents.tools.shipped import shipped_tools
from streams.chaos.evidence import Expected
from streams.chaos.goal_shapes import POISON, SHAPES, Fields, large, refused
from streams.chaos.simulation.crew import crew
from streams.chaos.simulation.endpoint import MemoryEndpoint
from streams.chaos.simulation.expecting import expected
from streams.core.values import JobId, Json
from streams.log import Headers, Record
from streams.memory_log import virtual_time
from streams.topics import GOALS

PATIENT: Final = 10
"""Attempts of a sub-task: enough for a model that is away for a while, which must not decide an answer."""

LARGE_EVERY: Final = 25
"""One of so many jobs has about a hundred sub-tasks."""

_POISONED, _TWICE, _CLASHING = 0.06, 0.1, 0.04
"""Shares of jobs beside which a record stands that nobody can read, that come twice, and beside which
two goals share an id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A record to be put on ``goals``.

    Attributes:
        job: The job that it opens or would open; None where that follows from its place
            (see :meth:`job_at`), or where it opens none.
        derived: It names no job, and opens one all the same.
        certain: Its job's answer follows from the goal alone.
        expected: What that answer must be; None where that is not known.
        dead_letter: It is to be a dead letter, or another record of the same job is.
    """

    value: bytes | None
    key: bytes = b""
    headers: Headers = ()
    partition: int = 0
    job: JobId | None = None
    derived: bool = False
    certain: bool = True
    expected: Expected | None = None
    dead_letter: bool = False

    def job_at(self, partition: int, offset: int) -> JobId | None:
        """The job of the record where it stands; None where it opens none."""
        return f"default/{GOALS}-{partition}-{offset}" if self.derived else self.job


def submissions(seed: int, count: int, *, lanes: int) -> tuple[Submission, ...]:
    """The records of *count* jobs and what comes with them, the same for the same seed.

    They are in the order in which to send them; what is sent twice is far apart as often as close.
    """
    chance = Random(f"goals {seed}")  # noqa: S311 - to be repeated, not to be unguessable
    made: list[tuple[float, Submission]] = []

    def put(at: float, submission: Submission) -> None:
        made.append((at, replace(submission, partition=chance.randrange(lanes))))

    for number in range(count):
        at = number + chance.random()
        submission = _job(number, chance)
        put(at, submission)
        if chance.random() < _TWICE and not submission.derived:
            put(at + chance.choice((1.0, count / 2)) * chance.random(), submission)
        if chance.random() < _CLASHING:
            for one in _clash(number):
                put(at + chance.random(), one)
        if chance.random() < _POISONED:
            value, headers = chance.choice(POISON)
            put(at, Submission(value=value, headers=headers, certain=False, dead_letter=True))
    return tuple(submission for _, submission in sorted(made, key=lambda item: item[0]))


def with_answers(sent: Sequence[Submission], *, base_url: str) -> tuple[Submission, ...]:
    """The same records, with what the answer to each must be.

    Runs the goals through the real agents and the core's rules, without a log, against the simulated
    model in this process. Takes about a millisecond of CPU a sub-task and has an event loop of its
    own: to be called in a thread.

    Args:
        base_url: Of the endpoint that the workers will have: failures name it, and answers tell failures.
    """
    records = [Record(GOALS, 0, place, 0, one.key, one.value, one.headers) for place, one in enumerate(sent)]
    tools = shipped_tools()

    async def ask() -> dict[JobId, Expected]:
        endpoint = MemoryEndpoint(Behaviour(), lambda: 0, url=base_url)
        return await expected(records, crew(endpoint, tools))

    answers = virtual_time.run(ask())
    return tuple(
        replace(one, expected=answers[job])
        if one.certain and (job := one.job_at(0, place)) is not None
        else one
        for place, one in enumerate(sent)
    )


def expected_of(stand: Iterable[tuple[Submission, int]]) -> dict[JobId, Expected]:
    """What the answers must be, by job, once it is known at which offset each record stands."""
    known: dict[JobId, Expected] = {}
    for submission, offset in stand:
        job = submission.job_at(submission.partition, offset)
        if job is not None and submission.expected is not None:
            known[job] = submission.expected
    return known


def _job(number: int, chance: Random) -> Submission:
    shape = large if number % LARGE_EVERY == LARGE_EVERY - 1 else chance.choice(SHAPES)
    limits: Fields = {"max_attempts": PATIENT}
    fields: Fields = {"id": f"g{number}", "limits": limits}
    if chance.random() < 0.3:  # noqa: PLR2004 - a share
        fields["tenant"] = chance.choice(("a", "b"))
    if chance.random() < 0.2:  # noqa: PLR2004 - a share
        fields["priority"] = chance.randint(0, 9)
    fields |= shape(chance)
    job = f"{fields.get('tenant', 'default')}/{fields['id']}"
    certain = not {"deadline_s", "budget"} & fields.keys()
    made = Submission(
        value=orjson.dumps(fields), key=job.encode(), job=job, certain=certain, dead_letter=shape is refused
    )
    drawn = chance.random()
    bare = fields.keys() <= {"id", "tenant", "priority", "limits", "goal"} and fields["limits"] == limits
    if drawn < 0.05 and bare:  # noqa: PLR2004 - a share
        return Submission(value=str(fields["goal"]).encode(), derived=True)
    if drawn < 0.1:  # noqa: PLR2004 - a share
        value, headers = _cloud_event(fields, chance)
        return replace(made, value=value, headers=headers)
    if drawn < 0.3:  # noqa: PLR2004 - a share
        trace = b"00-%032x-%016x-01" % (chance.getrandbits(128), chance.getrandbits(64))
        return replace(made, headers=(("traceparent", trace),))
    return made


def _cloud_event(fields: Fields, chance: Random) -> tuple[bytes, Headers]:
    """The goal as a CloudEvent, in one mode or the other; its own id stays."""
    if chance.random() < 0.5:  # noqa: PLR2004 - a half
        event: Fields = {"specversion": "1.0", "id": "e1", "source": "chaos", "type": "goal", "data": fields}
        return orjson.dumps(event), ()
    names = (("ce_specversion", b"1.0"), ("ce_id", b"e1"), ("ce_source", b"chaos"), ("ce_type", b"goal"))
    return orjson.dumps(fields), (*names, ("content-type", b"application/json"))


def _clash(number: int) -> tuple[Submission, Submission]:
    """Two goals of one id: whichever comes first is answered, and the answer is the same."""
    plan: list[Json] = [{"id": "only", "tool": "noop"}]
    job = f"default/clash{number}"

    def goal(words: str) -> Submission:
        fields: Fields = {"id": f"clash{number}", "goal": words, "plan": plan, "tools": ["noop"]}
        return Submission(value=orjson.dumps(fields), key=job.encode(), job=job, dead_letter=True)

    return goal("One"), goal("Another")
