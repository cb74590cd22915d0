"""What the verifier looks at: topics as a read_committed reader sees them, and the world's own records.

The round on a real Kafka and the life on the log in memory both gather this, so that one verifier
judges both. All times are milliseconds since 1970 of one clock: the broker's append times, the
endpoint's log and the attacker's notes are taken on one machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streams.core.values import JobId, Json
from streams.log import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the answer to a goal must be: that of the same goal in a run without faults.

    Attributes:
        outcome: The answer's outcome.
        answer: Its JSON, None where there is none.
        exact: The answer's words follow from the goal alone. Without it, as where an attempt's time
            runs out, only the outcome is compared.
    """

    outcome: str
    answer: Json
    exact: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a model as the endpoint logged it.

    Attributes:
        call_id: The text of a :class:`streams.transcript.CallId`.
        began, ended: When it came, and when its reply was whole or it was cut; None: it never was.
        status: ``200`` where a whole and sound reply was sent, so that a failure that chance chose (half
            a JSON, say) stands under its own name; another HTTP status; ``left`` where the client
            did not wait for the reply; ``cut`` where the endpoint cut the connection.
    """

    call_id: str
    began: int
    ended: int | None
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One life of a worker process.

    Attributes:
        run: The name it gives itself, as it stands in its records and calls.
        began, ended: From its start to its end; None: it still lives.
        how: ``killed`` (at once), ``stopped`` (it was told to, and drained), ``crashed`` (by itself).
        told: When it was told to stop; None: not, or it is not known.
        pauses: Spans in which it took no step, as after SIGSTOP.
    """

    run: str
    began: int
    ended: int | None = None
    how: str = ""
    told: int | None = None
    pauses: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A look at what a group said is done.

    Attributes:
        at: A time not before which the offset was committed already.
        offset: The next offset: all below it is said to be done.
    """

    group: str
    topic: str
    partition: int
    offset: int
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that is known of one round or life, once lag is 0 and a fresh goal was answered.

    Attributes:
        lanes: Partitions of the system.
        concurrency: The cluster-wide cap of sub-agents running at once.
        records: By topic, without its prefix: every record from the beginning, by partition and
            offset. ``goals``, ``job-events``, ``subtasks``, ``transcripts``, ``jobs`` (all versions
            of the rows, not yet compacted), ``answers``, ``dead-letters``.
        seen: The answers in the order in which a reader that ran all along saw them.
        expected: By job. A job that is not here is only checked for having one answer.
        calls: The endpoint's log, oldest first.
        lives: Every worker's lives.
        committed: Looks at the groups' offsets during the round.
        open_transactions: What transactions are still open, for a person.
        lag: Records behind, by group, topic and partition, where it is not 0.
        fresh_answered: A goal submitted after all faults were over was answered.
        outages: Spans in which no broker took records. What could not be journaled then may be called
            again, as after a kill.
        clocks_apart: Workers' clocks were set apart: the times that producers wrote mean nothing.
        rebuilt: A table was lost and rebuilt from its log: its rows of before are not among the records,
            and commands that were out may have been given again.
    """

    lanes: int
    concurrency: int
    records: Mapping[str, Sequence[Record]]
    seen: Sequence[Record]
    expected: Mapping[JobId, Expected]
    calls: Sequence[Call] = ()
    lives: Sequence[Life] = ()
    committed: Sequence[Committed] = ()
    open_transactions: Sequence[str] = ()
    lag: Mapping[str, int] = field(default_factory=dict)
    fresh_answered: bool = True
    outages: Sequence[tuple[int, int]] = ()
    clocks_apart: bool = False
    rebuilt: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One way in which the promise was broken.

    Attributes:
        kind: ``lost``, ``duplicated``, ``wrong``, ``unaccounted``, ``too_early``, ``command`` (one that its
            log does not ask for, or given twice), ``stop`` (of what was needed, or one that is missing),
            ``after_stop`` (a call), ``cap``, ``called_again``, ``rows_differ``, ``committed_early``,
            ``open_transaction``, ``lag``, ``not_recovered`` or ``unseen``.
        where: Job, task, topic, partition, offset: as much as is known.
        what: What was found and what should have been, for a person.
    """

    kind: str
    where: str
    what: str
