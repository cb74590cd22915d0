"""The evidence, read once: what each record says, and where what it speaks of stands."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from streams import dead_letters
from streams.chaos.evidence import Call, Evidence, Finding
from streams.claims import ValueLost, value_in
from streams.core.commands import Answer, StopAttempt
from streams.core.events import (
    UNREADABLE,
    ApprovalGiven,
    ApprovalRefused,
    Event,
    FromOutside,
    GoalRejected,
    JobCancelled,
    JobSubmitted,
    Planned,
    SubTaskFailed,
    SubTaskStarted,
    SubTaskSucceeded,
)
from streams.core.goal import Source
from streams.core.values import Inline, JobId, Json, Value
from streams.dead_letters import DeadLetter
from streams.effects import REFUSED
from streams.log import Record
from streams.suspension import run_key
from streams.topics import ANSWERS, DEAD_LETTERS, GOALS, JOB_EVENTS, SUBTASKS, TRANSCRIPTS
from streams.transcript import CallId, attempt_key
from streams.wire.answers import read_answer
from streams.wire.commands import read_command
from streams.wire.envelope import Unreadable
from streams.wire.events import read_event
from streams.wire.goals import BadGoal, read_goal
from streams.wire.marks import is_mark
from streams.wire.outside import read_word
from streams.wire.transcripts import TRANSCRIPTS as JOURNAL

Place: TypeAlias = tuple[str, int, int]
"""Topic, partition and offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeCall:
    """A call at the endpoint, with its name read.

    Attributes:
        attempt: The key of its attempt, as on ``subtasks``.
    """

    call: Call
    name: CallId
    attempt: bytes

    @property
    def which(self) -> tuple[bytes, int]:
        """Which call of which attempt it is; a call made again is the same one."""
        return self.attempt, self.name.n


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the evidence says, record by record.

    Times are milliseconds since 1970; attempts go by their keys.

    Attributes:
        goals: Every goal on ``goals``, and what intake should make of it; what is no goal among them.
        words: What people say of jobs, on the same topic.
        events: Every record of ``job-events`` in order, with None where it cannot be read.
        opened: By the goal's place: when the first event that it led to was appended.
        ends: When the first event that ended an attempt was appended.
        ran: The first event that tells that an attempt ran.
        answers: By job and revision; more than one where there should be one.
        unreadable: Answers that no reader can read, and why.
        letters: The dead letters.
        buried: How many dead letters tell of the record at a place, as their own or as their source.
        refused: Places of events that were buried unfolded, since what they ask for cannot land.
        calls: The calls whose names can be read, oldest first.
        replied: By call and run: when its reply was first on the journal.
        failed: By call, try and run: when it was first on the journal that no reply came.
        started: By attempt and id of a call of a tool that must not be called twice: the runs that were
            about to make it, and when that was first on the journal.
        tools_ended: Attempt, id of a tool's call, and run: those whose end is on the journal.
        stops: Words that nobody needs an attempt any more, by the attempt's key.
    """

    evidence: Evidence
    goals: tuple[tuple[Record, JobSubmitted | BadGoal], ...]
    words: tuple[Record, ...]
    events: tuple[tuple[Record, Event | None], ...]
    opened: Mapping[Place, int]
    ends: Mapping[bytes, int]
    ran: Mapping[bytes, Record]
    answers: Mapping[tuple[JobId, int], list[tuple[Record, Answer]]]
    unreadable: tuple[Finding, ...]
    letters: tuple[DeadLetter, ...]
    buried: Mapping[Place, int]
    refused: frozenset[Place]
    calls: tuple[MadeCall, ...]
    replied: Mapping[tuple[bytes, int, str], int]
    failed: Mapping[tuple[bytes, int, int, str], int]
    started: Mapping[tuple[bytes, str], Mapping[str, int]]
    tools_ended: frozenset[tuple[bytes, str, str]]
    stops: Mapping[bytes, list[Record]]
    _at: dict[str, dict[tuple[int, int], Record]] = field(default_factory=dict)

    def records(self, topic: str) -> Iterable[Record]:
        """The records of a topic."""
        return self.evidence.records.get(topic, ())

    def value(self, value: Value) -> Json:
        """The value itself, read from the records where it is a claim check.

        Raises:
            ValueLost: it is not there.
        """
        if isinstance(value, Inline):
            return value.value
        if value.topic not in self._at:
            self._at[value.topic] = {(r.partition, r.offset): r for r in self.records(value.topic)}
        stands = self._at[value.topic]
        try:
            return value_in(value, [stands[value.partition, offset] for offset in value.offsets])
        except KeyError as missing:
            raise ValueLost(f"no record at {value.topic}{missing}") from None


def read(evidence: Evidence) -> Facts:
    """Read the evidence."""
    events = tuple((record, _event(record)) for record in evidence.records.get(JOB_EVENTS, ()))
    opened: dict[Place, int] = {}
    ends: dict[bytes, int] = {}
    ran: dict[bytes, Record] = {}
    for record, event in events:
        match event:
            case JobSubmitted() | GoalRejected() | ApprovalGiven() | ApprovalRefused() | JobCancelled():
                if event.source is not None:
                    opened.setdefault(place_of(event.source), record.timestamp)
            case SubTaskFailed(kind=kind) if kind == UNREADABLE:
                pass
            case SubTaskStarted() | Planned() | SubTaskSucceeded() | SubTaskFailed():
                key = attempt_key(event.job, event.task, event.attempt)
                ran.setdefault(key, record)
                if not isinstance(event, SubTaskStarted):
                    ends.setdefault(key, record.timestamp)
            case _:
                pass
    answers: dict[tuple[JobId, int], list[tuple[Record, Answer]]] = {}
    unreadable: list[Finding] = []
    for record in evidence.records.get(ANSWERS, ()):
        try:
            answer = read_answer(record)
        except Unreadable as error:
            unreadable.append(Finding(kind="wrong", where=stands(record), what=f"no answer: {error}"))
        else:
            answers.setdefault((answer.job, answer.revision), []).append((record, answer))
    letters = tuple(
        dead_letters.read(record) for record in evidence.records.get(DEAD_LETTERS, ()) if not is_mark(record)
    )
    buried: dict[Place, int] = {}
    for letter in letters:
        for place in {place_of(source) for source in (letter.place, letter.source) if source is not None}:
            buried[place] = buried.get(place, 0) + 1
    asked = evidence.records.get(GOALS, ())
    words = [record for record in asked if isinstance(read_word(record), FromOutside)]
    replied, failed, started, tools_ended = _journal(evidence.records.get(TRANSCRIPTS, ()))
    return Facts(
        evidence=evidence,
        goals=tuple((r, read_goal(r, lanes=evidence.lanes)) for r in asked if r not in words),
        words=tuple(words),
        events=events,
        opened=opened,
        ends=ends,
        ran=ran,
        answers=answers,
        unreadable=tuple(unreadable),
        letters=letters,
        buried=buried,
        refused=frozenset(place_of(letter.place) for letter in letters if letter.reason == REFUSED),
        calls=tuple(_calls(evidence.calls)),
        replied=replied,
        failed=failed,
        started=started,
        tools_ended=tools_ended,
        stops=_stops(evidence.records.get(SUBTASKS, ())),
    )


def command_key(record: Record) -> bytes:
    """The key of a record's command; one that goes on with an attempt which was suspended has its own."""
    key = record.key or b""
    if b'"resume":{' in (record.value or b""):
        with suppress(Unreadable):
            command = read_command(record)
            return key if isinstance(command, StopAttempt) else run_key(command, key)
    return key


def is_stop(record: Record) -> bool:
    """Whether a record of ``subtasks`` stops an attempt."""
    if b'"StopAttempt"' not in (record.value or b"")[:40]:
        return False
    try:
        return isinstance(read_command(record), StopAttempt)
    except Unreadable:
        return False


def _stops(records: Iterable[Record]) -> dict[bytes, list[Record]]:
    stops: dict[bytes, list[Record]] = {}
    for record in records:
        if is_stop(record):
            stops.setdefault(record.key or b"", []).append(record)
    return stops


def place_of(what: Source | Record) -> Place:
    """Where it stands."""
    return what.topic, what.partition, what.offset


def stands(record: Record) -> str:
    """A record's place, for a person."""
    return f"{record.topic}[{record.partition}]@{record.offset}"


def _event(record: Record) -> Event | None:
    try:
        return read_event(record)
    except Unreadable:
        return None


def _calls(calls: Iterable[Call]) -> Iterable[MadeCall]:
    for call in sorted(calls, key=lambda each: each.began):
        name = CallId.read(call.call_id)
        if name is not None:
            yield MadeCall(call=call, name=name, attempt=attempt_key(name.job, name.task, name.attempt))


def _journal(
    records: Iterable[Record],
) -> tuple[
    dict[tuple[bytes, int, str], int],
    dict[tuple[bytes, int, int, str], int],
    dict[tuple[bytes, str], dict[str, int]],
    frozenset[tuple[bytes, str, str]],
]:
    """What the journal says of calls: replies, failures, and tools that must not be called twice.

    Only the few fields that count are looked at: a round's journal has tens of thousands of
    records, and to check each whole would take most of the verifier's time.
    """
    replied: dict[tuple[bytes, int, str], int] = {}
    failed: dict[tuple[bytes, int, int, str], int] = {}
    started: dict[tuple[bytes, str], dict[str, int]] = {}
    tools_ended: set[tuple[bytes, str, str]] = set()
    for record in records:
        try:
            entry: Any = JOURNAL.parse(record)
            match entry["type"]:
                case "ModelCalled":
                    replied.setdefault((_key(entry), entry["n"], entry["run"]), record.timestamp)
                case "ModelFailed":
                    failed.setdefault(
                        (_key(entry), entry["n"], entry["tried"], entry["run"]), record.timestamp
                    )
                case "ToolStarted":
                    runs = started.setdefault((_key(entry), entry["call"]["id"]), {})
                    runs.setdefault(entry["run"], record.timestamp)
                case "ToolCalled":
                    tools_ended.add((_key(entry), entry["call"]["id"], entry["run"]))
                case _:
                    pass
        except (Unreadable, KeyError, TypeError):
            continue  # somebody else's: lanes pass over it as well
    return replied, failed, started, frozenset(tools_ended)


def _key(entry: Any) -> bytes:
    return attempt_key(entry["job"], entry["task"], entry["attempt"])
