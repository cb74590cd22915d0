"""What happens in a life: goals that come, and what goes wrong meanwhile. Pure data.

A scenario says nothing of where it is run. The simulation runs it on the log in memory, the
rounds run it on a real Kafka; ``SHARED`` are those that both run, and on which they must agree.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from streams.core.values import JobId
from streams.topics import GOALS
from streams.wire.goal_fields import DEFAULT_TENANT

IncidentKind: TypeAlias = Literal[
    "kill", "stop", "pause", "join", "leave", "outage", "stranger", "endpoint_down", "endpoint_slow"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Something that goes wrong.

    ``kill``: worker *worker* is gone without goodbye, and is started again *seconds* later.
    ``stop``: it is told to stop, drains and leaves, and is started again *seconds* later.
    ``pause``: it takes no step for *seconds*; beyond the session timeout it is a zombie.
    ``join``: one more worker is started. ``leave``: worker *worker* stops and stays away.
    ``outage``: no broker answers for *seconds*.
    ``stranger``: somebody else takes over the transactional identity of partition *worker*, keeps a
    transaction with a record of ``answers`` open for *seconds*, and aborts it.
    ``endpoint_down``: model calls find nobody for *seconds*. ``endpoint_slow``: they take so much longer.

    Attributes:
        at: Seconds from the start of the scenario.
        worker: Which worker, from 0; one that is not there is left alone.
        seconds: As above.
        steps: A kill strikes before the worker takes its next step but so many from *at* on. Only a
            simulation can count them; elsewhere it strikes at once.
    """

    kind: IncidentKind
    at: float
    worker: int = 0
    seconds: float = 0.0
    steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A goal that is sent.

    Attributes:
        goal: The fields of its record; ``id`` among them, so that a second time is no second job.
        at: Seconds from the start of the scenario.
        partition: Of ``goals``; beyond the last one it counts from the first again.
        times: How often the record is sent, as by a producer without idempotence.
        padding: Bytes of text added to its ``input``, which then goes by claim check.
        certain: Its answer follows from the goal alone; one with a deadline or a budget may end
            in several ways.
        exact: Its very words do; not where they say how much time was left.
        approved_s: A person lets go on whatever of it waits, again and again after so many seconds, until it
            is answered. 0: nobody does.
        cancelled_s: A person ends it, so many seconds after it was sent; 0: nobody does.
    """

    goal: Mapping[str, Any]
    at: float = 0.0
    partition: int = 0
    times: int = 1
    padding: int = 0
    certain: bool = True
    exact: bool = True
    approved_s: float = 0.0
    cancelled_s: float = 0.0

    @property
    def id(self) -> str:
        """The goal's own id."""
        return str(self.goal["id"])

    @property
    def name(self) -> JobId:
        """Its job, ``tenant/id``."""
        return f"{self.goal.get('tenant', DEFAULT_TENANT)}/{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Poison:
    """A record that nobody can read.

    Attributes:
        value: Its text, None for a tombstone.
        binary: *value* is in hexadecimal.
    """

    at: float
    topic: str = GOALS
    partition: int = 0
    key: str | None = None
    value: str | None = None
    binary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A life of a system.

    Attributes:
        found: What it once showed to be wrong, for a person.
        seed: Of all that is left to chance.
        lanes: Partitions.
        workers: Workers at the start.
        concurrency: The cluster-wide cap of sub-agents at once.
        static: Workers have stable names, and keep their place for the session timeout.
        window, batch, drain_s: As of ``streams.settings.Settings``.
        latency_s: The longest a model call takes of itself, in seconds.
        failures: Share of model calls that fail, by kind (``agents.simulator.behaviour.FailureKind``).
        delay_s, lost_sends, lost_replies, unknown_commits, short_batches: As of
            ``streams.memory_log.Faults``; where the log is a real one they are left out.
        request_timeout_s: Seconds after which a request to the log that got lost fails.
    """

    found: str = ""
    seed: int = 0
    lanes: int = 2
    workers: int = 2
    concurrency: int = 8
    static: bool = False
    window: int = 256
    batch: int = 500
    drain_s: float = 10.0
    latency_s: float = 1.0
    failures: Mapping[str, float] = field(default_factory=dict)
    delay_s: float = 0.0
    lost_sends: float = 0.0
    lost_replies: float = 0.0
    unknown_commits: float = 0.0
    short_batches: float = 0.0
    request_timeout_s: float = 10.0
    jobs: tuple[Job, ...] = ()
    poison: tuple[Poison, ...] = ()
    incidents: tuple[Incident, ...] = ()


def _jobs() -> tuple[Job, ...]:
    """Jobs of several shapes, by directives that the simulated model obeys wherever it runs."""
    shapes = (
        "[[plan 6]]",
        "[[chain 4]] [[slow 1 @2]]",
        "[[diamond]]",
        "[[join 5]] [[slow 2 @1]]",
        "[[plan 3]] [[fail @2]]",
        "[[plan 4 noop]]",
        "[[chain 3]] [[flaky 1 @2]]",
        "[[plan 8]] [[slow 3 @4]]",
    )
    return tuple(
        Job(
            goal={"id": f"g{n}", "goal": f"Compare what there is {words}", "tools": ["noop"]},
            at=0.4 * n,
            partition=n,
            exact="fail" not in words,  # why it failed names the endpoint
        )
        for n, words in enumerate(shapes)
    )


SHARED: Mapping[str, Scenario] = {
    "nothing goes wrong": Scenario(jobs=_jobs()),
    "a worker is killed in the middle": Scenario(
        jobs=_jobs(), incidents=(Incident(kind="kill", at=2.0, worker=0, seconds=2.0),)
    ),
    "a named worker is killed and comes back in time": Scenario(
        jobs=_jobs(), static=True, incidents=(Incident(kind="kill", at=2.0, worker=0, seconds=1.0),)
    ),
    "both workers are killed": Scenario(
        jobs=_jobs(),
        incidents=(
            Incident(kind="kill", at=2.0, worker=0, seconds=3.0),
            Incident(kind="kill", at=2.2, worker=1, seconds=1.0),
        ),
    ),
    "a worker hands over": Scenario(
        jobs=_jobs(), incidents=(Incident(kind="stop", at=2.0, worker=0, seconds=4.0),)
    ),
    "a worker joins and one leaves": Scenario(
        jobs=_jobs(),
        workers=1,
        incidents=(Incident(kind="join", at=1.5), Incident(kind="leave", at=4.0, worker=0)),
    ),
    "a worker sleeps beyond its session": Scenario(
        jobs=_jobs(), incidents=(Incident(kind="pause", at=2.0, worker=0, seconds=12.0),)
    ),
    "a worker sleeps for a moment": Scenario(
        jobs=_jobs(), incidents=(Incident(kind="pause", at=2.0, worker=0, seconds=3.0),)
    ),
    "no broker for a while": Scenario(
        jobs=_jobs(), incidents=(Incident(kind="outage", at=2.0, seconds=6.0),)
    ),
    "a stranger takes over": Scenario(
        jobs=_jobs(), incidents=(Incident(kind="stranger", at=2.0, worker=0, seconds=3.0),)
    ),
    "no model for a while": Scenario(
        jobs=_jobs(), incidents=(Incident(kind="endpoint_down", at=1.5, seconds=3.0),)
    ),
    "records that nobody can read": Scenario(
        jobs=_jobs(),
        poison=(
            Poison(at=0.5, value="ff0a00", binary=True),
            Poison(at=0.7),
            Poison(at=0.9, value='{"id": "x", "text": 1}'),
            Poison(at=1.1, topic="job-events", key="default/nobody", value="{"),
            Poison(at=1.3, topic="subtasks", value="no command"),
        ),
    ),
}
"""Scenarios that run on the log in memory and on a real Kafka, and must end the same."""
