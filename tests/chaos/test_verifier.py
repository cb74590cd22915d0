"""The verifier finds nothing in a life that kept the promise, and each single thing that is changed in it."""

from dataclasses import replace
from functools import partial
from operator import is_

import pytest

from streams.chaos.evidence import Call, Committed, Evidence, Expected
from streams.chaos.goals import Submission
from streams.chaos.simulation.series import silence
from streams.chaos.verifier import Figures, judge
from streams.dead_letters import read as read_letter
from streams.log import Record
from streams.memory_log.virtual_time import run
from streams.topics import ANSWERS, DEAD_LETTERS, GOALS, JOB_EVENTS, JOBS, SUBTASKS
from streams.transcript import CallId
from streams.wire.answers import read_answer
from streams.wire.rows import POSITION_KEY
from tests.chaos.changing import (
    BAD_INPUT,
    CALM,
    JOB,
    SMALL,
    again,
    calm,
    changed,
    first,
    kinds,
    lived,
    of,
    with_records,
    without,
)
from tests.chaos.one_worker import answered

NOTHING = b'{"v":1,"type":"Nothing"}'


@pytest.mark.parametrize("name", [CALM, BAD_INPUT])
def test_a_calm_life_keeps_the_promise(name: str) -> None:
    """Nothing is found, and nothing was called again."""
    verdict = judge(lived(name))
    assert verdict.findings == ()
    assert verdict.figures.repeated == 0
    assert verdict.figures.answers == verdict.figures.jobs > 8
    assert verdict.figures.calls > 30


@pytest.mark.parametrize(
    "name", ["a worker is killed in the middle", "a worker hands over", "a worker sleeps beyond its session"]
)
def test_a_life_with_faults_keeps_the_promise(name: str) -> None:
    """Nothing is found, whatever had to be called again."""
    assert judge(lived(name)).findings == ()


def test_a_lost_answer_is_found() -> None:
    """By its goal, and by the events that lead to it; once."""
    verdict = judge(without(calm(), ANSWERS, of(JOB)))
    assert [(finding.kind, finding.where) for finding in verdict.findings] == [("lost", JOB)]
    assert verdict.figures.lost == 1


def test_an_answer_published_twice_is_found() -> None:
    """Both places are told."""
    (finding,) = judge(again(calm(), ANSWERS, of(JOB))).findings
    assert (finding.kind, finding.where) == ("duplicated", JOB)
    assert finding.what.count("answers[") == 2


def test_an_answer_that_is_not_the_expected_one_is_found() -> None:
    """Another outcome, other words; without exact words the outcome counts alone."""
    expected = calm().expected
    assert JOB in expected

    def expecting(other: Expected) -> Evidence:
        return replace(calm(), expected={**expected, JOB: other})

    assert kinds(expecting(Expected(outcome="partial", answer=expected[JOB].answer))) == {"wrong"}
    assert kinds(expecting(Expected(outcome="succeeded", answer="42"))) == {"wrong"}
    assert kinds(expecting(Expected(outcome="succeeded", answer="42", exact=False))) == set()


def test_an_answer_that_its_log_does_not_lead_to_is_found() -> None:
    """Byte for byte: one figure of what it cost is enough. One that nobody can read as well."""

    def dearer(record: Record) -> Record:
        assert b'"calls":' in (record.value or b"")
        return replace(record, value=(record.value or b"").replace(b'"calls":', b'"calls":1', 1))

    assert kinds(changed(calm(), ANSWERS, of(JOB), dearer)) == {"wrong"}
    broken = changed(calm(), ANSWERS, of(JOB), lambda record: replace(record, value=NOTHING))
    assert kinds(broken) == {"wrong", "lost"}


def test_a_record_that_nothing_accounts_for_is_found() -> None:
    """Each dead letter that is missing, whatever it is of; what was committed was not done without it."""
    letters = [(record, read_letter(record)) for record in calm().records[DEAD_LETTERS]]
    assert {letter.place.topic for _, letter in letters} == {GOALS, JOB_EVENTS, SUBTASKS}
    for gone, letter in letters:
        answered = letter.place.topic == GOALS and b'"id"' in (letter.value or b"")  # as rejected
        committed = set() if letter.place.topic == JOB_EVENTS or answered else {"committed_early"}
        assert kinds(without(calm(), DEAD_LETTERS, partial(is_, gone))) == {"unaccounted"} | committed


def test_a_dead_letter_of_an_event_that_is_there_twice_is_found() -> None:
    """Its transaction holds one; those of intake and lanes may come again after a crash."""
    for record in calm().records[DEAD_LETTERS]:
        found = kinds(again(calm(), DEAD_LETTERS, partial(is_, record)))
        assert found == ({"unaccounted"} if read_letter(record).place.topic == JOB_EVENTS else set())


def test_answers_and_dead_letters_of_what_was_never_sent_are_found() -> None:
    """Source positions and what came of them are the same, both ways round."""
    source = read_answer(first(calm(), ANSWERS, of(JOB))).source
    assert source is not None

    def is_its_goal(record: Record) -> bool:
        return (record.partition, record.offset) == (source.partition, source.offset)

    assert kinds(without(calm(), GOALS, is_its_goal)) == {"unaccounted"}
    assert kinds(without(calm(), GOALS, lambda record: record.value is None)) == {"unaccounted"}


def tells(record: Record, kind: str, task: str) -> bool:
    """The record is an event of this kind of a sub-task of the job."""
    value = record.value or b""
    begins = b'{"v":1,"type":"%b","job":"%b","task":"%b"' % (kind.encode(), JOB.encode(), task.encode())
    return value.startswith(begins)


def test_what_ran_before_its_dependencies_ended_is_found() -> None:
    """On the log by its event, at its lane by its command, at the endpoint by its call."""
    evidence, key = calm(), f"{JOB}/t2/1"
    needed = first(evidence, JOB_EVENTS, lambda record: tells(record, "SubTaskSucceeded", "t1"))
    before = needed.timestamp - 1
    assert kinds(changed(evidence, SUBTASKS, of(key), lambda r: replace(r, timestamp=before))) == {
        "too_early"
    }

    def earlier(call: Call) -> Call:
        return replace(call, began=before) if call.call_id.startswith(f"{key}/") else call

    found = kinds(replace(evidence, calls=[earlier(call) for call in evidence.calls]))
    assert found - {"cap"} == {"too_early"}, "it may run beside more calls than the cap allows by then"
    log = list(evidence.records[JOB_EVENTS])
    result = first(evidence, JOB_EVENTS, lambda record: tells(record, "SubTaskSucceeded", "t2"))
    log[log.index(needed)] = replace(result, offset=needed.offset)
    log[log.index(result)] = replace(needed, offset=result.offset)
    assert "too_early" in kinds(with_records(evidence, JOB_EVENTS, log))


def test_calls_of_an_attempt_that_nobody_asked_for_are_found() -> None:
    """The log tells which attempts there are."""
    evidence = calm()
    name = CallId.read(evidence.calls[-1].call_id)
    assert name is not None
    stray = replace(evidence.calls[-1], call_id=str(replace(name, attempt=7)))
    assert kinds(replace(evidence, calls=[*evidence.calls, stray])) == {"too_early"}


def test_commands_that_the_log_does_not_ask_for_are_found() -> None:
    """Given twice, with other words, to an attempt that is not due; and what ran without one."""
    key = f"{JOB}/t2/1"
    assert kinds(again(calm(), SUBTASKS, of(key))) == {"command"}
    assert kinds(replace(again(calm(), SUBTASKS, of(key)), rebuilt=True)) == set()
    other = changed(
        calm(), SUBTASKS, of(key), lambda r: replace(r, value=(r.value or b"").replace(b"Part 2", b"Part 9"))
    )
    assert kinds(other) == {"command"}
    stray = changed(calm(), SUBTASKS, of(key), lambda r: replace(r, key=f"{JOB}/t2/9".encode()))
    assert "command" in kinds(stray)
    assert kinds(without(calm(), SUBTASKS, of(key))) == {"command"}


def test_rows_that_the_log_does_not_lead_to_are_found() -> None:
    """A marker lost, changed, or of a job that never was; a position that is missing or ahead."""
    evidence = calm()
    assert kinds(without(evidence, JOBS, of(JOB))) == {"rows_differ"}

    def older(record: Record) -> Record:
        return replace(record, value=(record.value or b"").replace(b'"revision":1', b'"revision":2'))

    marker = [record for record in evidence.records[JOBS] if record.key == JOB.encode()][-1]
    assert kinds(changed(evidence, JOBS, lambda record: record is marker, older)) == {"rows_differ"}
    stranger = changed(
        evidence,
        JOBS,
        lambda record: record is marker,
        lambda record: replace(record, key=b"default/stranger"),
    )
    assert kinds(stranger) == {"rows_differ"}
    left = again(evidence, JOBS, lambda r: r.key == f"{JOB}/t1".encode() and r.value is not None)
    assert kinds(left) == {"rows_differ"}
    assert "rows_differ" in kinds(without(evidence, JOBS, of(POSITION_KEY)))
    fewer = evidence.records[JOB_EVENTS][:-1]
    assert "rows_differ" in kinds(with_records(evidence, JOB_EVENTS, fewer))


def looks(group: str, topic: str, evidence: Evidence, at: int) -> Evidence:
    """The evidence with a look at which the group had committed all of the topic."""
    partition = first(evidence, topic, lambda record: record.value is not None).partition
    end = max(record.offset for record in evidence.records[topic] if record.partition == partition) + 1
    look = Committed(group=group, topic=topic, partition=partition, offset=end, at=at)
    return replace(evidence, committed=[*evidence.committed, look])


@pytest.mark.parametrize(
    ("group", "topic"), [("agents", GOALS), ("agents", SUBTASKS), ("orchestrator", JOB_EVENTS)]
)
def test_offsets_committed_before_the_work_are_found(group: str, topic: str) -> None:
    """At the very time at which the last of it came; at the end all is done."""
    evidence = replace(calm(), committed=())
    came = max(record.timestamp for record in evidence.records[topic])
    assert kinds(looks(group, topic, evidence, came + 600_000)) == set()
    early = came if topic == SUBTASKS else min(record.timestamp for record in evidence.records[topic])
    assert kinds(looks(group, topic, evidence, early - 1)) == {"committed_early"}


def test_offsets_committed_of_what_was_never_done_are_found() -> None:
    """A command without an end, a goal without an event."""
    evidence = calm()
    last = [r for r in evidence.records[JOB_EVENTS] if b'"SubTaskSucceeded"' in (r.value or b"")][-1]
    found = kinds(without(evidence, JOB_EVENTS, lambda record: record is last))
    assert {"committed_early", "lost"} & found


def test_what_is_open_or_behind_at_the_end_is_found() -> None:
    """A transaction, lag, a fresh goal without an answer."""
    assert kinds(replace(calm(), open_transactions=["orchestrator-1"])) == {"open_transaction"}
    assert kinds(replace(calm(), lag={"agents goals[0]": 1, "agents goals[1]": 0})) == {"lag"}
    assert kinds(replace(calm(), fresh_answered=False)) == {"not_recovered"}


def test_a_reader_that_ran_all_along_and_saw_something_else_is_found() -> None:
    """Less, more, or in another order of one partition; the order of partitions is nobody's."""
    evidence = calm()
    seen = list(evidence.seen)
    mine = [record for record in seen if record.partition == seen[0].partition]
    assert len(mine) > 1
    others = [record for record in seen if record.partition != seen[0].partition]
    assert kinds(replace(evidence, seen=[*others, *mine])) == set()
    assert kinds(replace(evidence, seen=[*others, mine[1], mine[0], *mine[2:]])) == {"unseen"}
    assert kinds(replace(evidence, seen=seen[1:])) == {"unseen"}
    aborted = replace(mine[-1], offset=mine[-1].offset + 1, key=b"default/aborted")
    assert kinds(replace(evidence, seen=[*seen, aborted])) == {"unseen"}


def test_more_calls_at_once_than_the_cap_are_found() -> None:
    """As the endpoint counts them. A cap below the number of lanes is that of one call a lane."""
    evidence = lived(CALM)
    assert kinds(replace(evidence, concurrency=2)) == {"cap"}
    away = ((min(call.began for call in evidence.calls), max(call.began for call in evidence.calls)),)
    assert kinds(replace(evidence, concurrency=2, outages=away)) == set(), "who could tell?"
    together = [replace(call, began=evidence.calls[0].began) for call in evidence.calls[:3]]
    alone = replace(evidence, concurrency=1, lanes=2, calls=together)
    assert "cap" in kinds(alone)
    assert "cap" not in kinds(replace(alone, calls=together[:2]))


def test_calls_without_a_name_are_found() -> None:
    """Else nobody could tell that they were made twice."""
    evidence = calm()
    nameless = replace(evidence.calls[0], call_id="")
    assert kinds(replace(evidence, calls=[*evidence.calls, nameless])) == {"unaccounted"}


def test_no_record_can_be_missing_unnoticed() -> None:
    """Of a small life each goal, command, row, answer and dead letter, one at a time."""
    evidence = lived(SMALL)
    newest = {(record.partition, record.key): record for record in evidence.records[JOBS]}
    rows = [record for record in newest.values() if record.value is not None]
    assert len(rows) > 5
    for record in (
        *rows,
        *(r for topic in (GOALS, SUBTASKS, ANSWERS, DEAD_LETTERS) for r in evidence.records[topic]),
    ):
        assert kinds(without(evidence, record.topic, partial(is_, record))), record


def test_each_revision_has_its_answer() -> None:
    """A goal that was rejected and comes back good: the second answer counts, and the first must be there."""
    bad = Submission(value=b'{"id": "g", "goal": "x", "priority": 99}', job="default/g")
    good = Submission(
        value=b'{"id": "g", "goal": "x", "plan": [{"id": "only", "tool": "noop"}], "tools": ["noop"]}',
        job="default/g",
        expected=Expected(outcome="succeeded", answer="ok"),
    )
    with silence():
        evidence = run(answered([bad, good]))
    assert [read_answer(record).revision for record in evidence.records[ANSWERS]] == [1, 2]
    assert kinds(evidence) == set()
    one, two = evidence.records[ANSWERS]
    assert kinds(with_records(evidence, ANSWERS, [two])) == {"lost"}
    assert kinds(with_records(evidence, ANSWERS, [one])) == {"lost", "wrong"}


def test_figures_add_up() -> None:
    """Of many rounds together."""
    figures = judge(without(calm(), ANSWERS, of(JOB))).figures
    both = figures + Figures(calls=1, kinds={"lost": 1, "cap": 2, "unaccounted": 1, "wrong": 1})
    assert (both.calls, both.goals) == (figures.calls + 1, figures.goals)
    assert (both.lost, both.wrong, both.duplicated, both.others) == (3, 1, 0, 2)


def test_the_calls_that_a_kill_repeated_are_counted() -> None:
    """Their replies were not on the journal when their worker died."""
    evidence = lived("a worker is killed in the middle")
    figures = judge(evidence).figures
    assert figures.repeated > 0
    survived = [replace(life, ended=None, how="") for life in evidence.lives]
    verdict = judge(replace(evidence, lives=survived))
    assert {finding.kind for finding in verdict.findings} >= {"called_again"}
    assert verdict.figures.repeated == 0
    assert len([f for f in verdict.findings if f.kind == "called_again"]) == figures.repeated


def test_a_call_that_was_on_its_way_when_its_worker_died_is_no_news() -> None:
    """An endpoint that is busy logs it a moment after the end of whoever sent it."""
    evidence = lived("a worker is killed in the middle")
    (killed,) = [life for life in evidence.lives if life.how == "killed"]
    assert killed.ended is not None
    before = replace(killed, ended=min(c.began for c in evidence.calls if killed.run in c.call_id) - 1)
    lives = [before if life is killed else life for life in evidence.lives]
    known = judge(evidence).figures.repeated
    told = judge(replace(evidence, lives=lives))
    assert "called_again" not in told.figures.kinds
    assert told.figures.repeated == known
