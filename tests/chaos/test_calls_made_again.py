"""Which calls may be made again, and which repetition is a finding: every case, by hand."""

from collections.abc import Sequence

import pytest

from agents.ports import ModelReply, ToolCall
from streams.chaos.evidence import Call, Evidence, Life
from streams.chaos.verifying.calls import READABLE_MS, repetitions
from streams.chaos.verifying.facts import read
from streams.core.events import SubTaskSucceeded
from streams.core.values import NO_USAGE, Inline
from streams.log import Record
from streams.topics import JOB_EVENTS, TRANSCRIPTS
from streams.transcript import (
    Asked,
    CallId,
    ModelCalled,
    ModelFailed,
    ToolCalled,
    ToolStarted,
    TranscriptRecord,
    attempt_key,
)
from streams.wire.events import write_event
from streams.wire.transcripts import write_transcript

JOB, TASK = "default/g", "t1"
ASKED = Asked(seen=0, messages=Inline(value=[]))
REPLY = ModelReply(message={"content": "yes"}, finish_reason="stop", usage=NO_USAGE, model="m")

BEGAN, ENDED = 10_000, 11_000
"""The first call, unless a case says otherwise."""

LATER = 20_000
"""When it is made again."""


def call(
    run: str, began: int, ended: int | None = None, status: str = "200", *, n: int = 1, tried: int = 1
) -> Call:
    """A call of the one attempt there is."""
    name = CallId(job=JOB, task=TASK, attempt=1, n=n, tried=tried, run=run)
    return Call(call_id=str(name), began=began, ended=ended, status=status)


def replied(run: str, at: int, n: int = 1) -> tuple[int, TranscriptRecord]:
    """Its reply on the journal."""
    return at, ModelCalled(
        job=JOB, task=TASK, attempt=1, run=run, n=n, request=ASKED, request_hash="", reply=REPLY
    )


def no_reply(run: str, at: int, tried: int = 1) -> tuple[int, TranscriptRecord]:
    """Word on the journal that it brought none."""
    return at, ModelFailed(
        job=JOB, task=TASK, attempt=1, run=run, n=1, tried=tried, kind="timeout", reason="late"
    )


def found(
    calls: Sequence[Call],
    journal: Sequence[tuple[int, TranscriptRecord]] = (),
    lives: Sequence[Life] = (),
    *,
    outages: Sequence[tuple[int, int]] = (),
    over_at: int | None = None,
) -> tuple[int, int]:
    """How many findings there are, and how many calls were made again as they may be."""
    key = attempt_key(JOB, TASK, 1)
    transcripts = [
        Record(TRANSCRIPTS, 0, place, at, key, write_transcript(entry))
        for place, (at, entry) in enumerate(journal)
    ]
    event = SubTaskSucceeded(job=JOB, task=TASK, attempt=1, result=Inline(value=1))
    events = [] if over_at is None else [Record(JOB_EVENTS, 0, 0, over_at, JOB.encode(), write_event(event))]
    evidence = Evidence(
        lanes=1,
        concurrency=1,
        records={TRANSCRIPTS: transcripts, JOB_EVENTS: events},
        seen=(),
        expected={},
        calls=calls,
        lives=lives,
        outages=outages,
    )
    findings, excused = repetitions(read(evidence))
    assert {finding.kind for finding in findings} <= {"called_again"}
    return len(findings), excused


NEEDLESS, EXCUSED, FINE = (1, 0), (0, 1), (0, 0)
ALIVE = Life(run="b", began=0)
KILLED = Life(run="a", began=0, ended=12_000, how="killed")
CRASHED = Life(run="a", began=0, ended=12_000, how="crashed: a watchdog")
ASLEEP = Life(run="a", began=0, pauses=((12_000, 30_000),))
STOPPED = Life(run="a", began=0, ended=15_000, how="stopped", told=10_500)
FIRST, AGAIN = call("a", BEGAN, ENDED), call("b", LATER, LATER + 1)


@pytest.mark.parametrize("gone", [KILLED, CRASHED, ASLEEP])
def test_what_was_not_on_the_journal_when_its_worker_went_may_be_called_again(gone: Life) -> None:
    """Answered or under way, or found by the endpoint to be without a client."""
    assert found([FIRST, AGAIN], lives=[gone, ALIVE]) == EXCUSED
    assert found([call("a", BEGAN), AGAIN], lives=[gone, ALIVE]) == EXCUSED
    assert found([call("a", BEGAN, 12_000, "left"), AGAIN], lives=[gone, ALIVE]) == EXCUSED


@pytest.mark.parametrize("gone", [KILLED, CRASHED, ASLEEP])
def test_what_was_on_the_journal_may_not(gone: Life) -> None:
    """Neither what was there in time, nor what came later and could be read long before the call."""
    assert found([FIRST, AGAIN], [replied("a", 11_500)], [gone, ALIVE]) == NEEDLESS
    assert found([FIRST, AGAIN], [replied("a", LATER - READABLE_MS)], [gone, ALIVE]) == NEEDLESS
    assert found([FIRST, AGAIN], [replied("a", LATER - READABLE_MS + 1)], [gone, ALIVE]) == EXCUSED


def test_between_live_workers_nothing_is_called_again() -> None:
    """Neither what was answered, nor what is under way, nor what a lane dropped as it was lost."""
    lives = [Life(run="a", began=0), ALIVE]
    assert found([FIRST, AGAIN], lives=lives) == NEEDLESS
    assert found([FIRST, AGAIN], [replied("a", 11_500)], lives) == NEEDLESS
    assert found([call("a", BEGAN), AGAIN], lives=lives) == NEEDLESS
    assert found([call("a", BEGAN, ENDED, "left"), AGAIN], lives=lives) == NEEDLESS
    assert found([FIRST, AGAIN]) == NEEDLESS


def test_a_break_before_the_call_or_after_its_repetition_excuses_nothing() -> None:
    """A process that woke up and called was alive."""
    woke = Life(run="a", began=0, pauses=((1_000, 9_000),))
    assert found([FIRST, AGAIN], lives=[woke, ALIVE]) == NEEDLESS
    later = Life(run="a", began=0, ended=LATER + 1, how="killed")
    assert found([FIRST, AGAIN], lives=[later, ALIVE]) == NEEDLESS


def test_a_worker_that_is_told_to_stop_gives_up_what_does_not_end_in_time() -> None:
    """And nothing else: what was answered is on the journal before it goes."""
    given_up = call("a", BEGAN, 13_500, "left")
    assert found([given_up, AGAIN], lives=[STOPPED, ALIVE]) == EXCUSED
    assert found([FIRST, AGAIN], lives=[STOPPED, ALIVE]) == NEEDLESS
    dropped = call("a", BEGAN, 10_400, "left")
    assert found([dropped, AGAIN], lives=[STOPPED, ALIVE]) == NEEDLESS
    untold = Life(run="a", began=0, ended=15_000, how="stopped")
    assert found([given_up, AGAIN], lives=[untold, ALIVE]) == EXCUSED


def test_failed_calls_are_tried_again() -> None:
    """By whoever has the attempt; the status says so, or the journal that its caller saw no reply."""
    lives = [Life(run="a", began=0), ALIVE]
    for status in ("500", "429", "cut", "malformed"):
        assert found([call("a", BEGAN, ENDED, status), call("a", LATER, tried=2)], lives=lives) == FINE
        assert found([call("a", BEGAN, ENDED, status), AGAIN], lives=lives) == FINE
    retried = [FIRST, call("a", LATER, tried=2)]
    assert found(retried, [no_reply("a", 15_000)], lives) == FINE
    assert found(retried, [no_reply("a", LATER + 1)], lives) == NEEDLESS
    assert found(retried, [no_reply("a", 15_000, tried=2)], lives) == NEEDLESS
    assert found(retried, lives=lives) == NEEDLESS


def test_a_worker_never_repeats_its_own_answered_call() -> None:
    """Not even after a sleep: it had the reply."""
    assert found([FIRST, call("a", 31_000)], lives=[ASLEEP]) == NEEDLESS


def test_what_no_broker_could_take_may_be_called_again() -> None:
    """The reply could not be journaled; one that was there before the outage could."""
    lives = [Life(run="a", began=0), ALIVE]
    assert found([FIRST, AGAIN], lives=lives, outages=[(10_500, 18_000)]) == EXCUSED
    assert found([FIRST, AGAIN], [replied("a", 11_100)], lives, outages=[(11_500, 18_000)]) == NEEDLESS
    assert found([FIRST, AGAIN], lives=lives, outages=[(1_000, 9_000)]) == NEEDLESS


def test_a_third_call_is_judged_by_both_before_it() -> None:
    """It is needless as soon as it repeats one of them needlessly."""
    third = call("c", 40_000)
    died = Life(run="b", began=0, ended=25_000, how="killed")
    alive = Life(run="c", began=0)
    assert found([FIRST, AGAIN, third], lives=[KILLED, died, alive]) == (0, 2)
    assert found([FIRST, AGAIN, third], [replied("b", 21_000)], [KILLED, died, alive]) == (1, 1)


def test_other_calls_of_an_attempt_are_others() -> None:
    """By their number."""
    assert found([FIRST, call("a", LATER, n=2)], [replied("a", 11_500)], [Life(run="a", began=0)]) == FINE


def test_an_attempt_that_is_over_makes_no_further_call() -> None:
    """As a process would that woke up after another had ended its attempt."""
    lives = [ASLEEP, ALIVE]
    assert found([FIRST, call("a", 31_000, n=2)], lives=lives, over_at=25_000) == NEEDLESS
    assert found([FIRST, call("a", 31_000, n=2)], lives=lives, over_at=31_000) == FINE
    assert found([FIRST, AGAIN], lives=lives, over_at=15_000) == EXCUSED


def test_a_tool_that_must_not_run_twice_is_begun_once() -> None:
    """By one worker; its own record may be there twice."""
    tool = ToolCall(id="c1", name="pay", arguments="{}")

    def started(run: str, at: int) -> tuple[int, TranscriptRecord]:
        return at, ToolStarted(job=JOB, task=TASK, attempt=1, run=run, call=tool)

    def ended(run: str, at: int) -> tuple[int, TranscriptRecord]:
        output = Inline(value=1)
        return at, ToolCalled(job=JOB, task=TASK, attempt=1, run=run, call=tool, output=output)

    assert found([], [started("a", 1_000), started("a", 9_000), ended("a", 9_500)]) == FINE
    assert found([], [started("a", 1_000), started("b", 9_000), ended("b", 9_500)]) == NEEDLESS
    assert found([], [started("a", 1_000), started("b", 9_000), ended("a", 9_500)]) == FINE, (
        "b did not call it"
    )
    both = [started("a", 1_000), started("b", 1_000), ended("a", 1_500), ended("b", 1_500)]
    assert found([], both) == NEEDLESS
    late = [started("b", 1_000), started("a", 9_000), ended("a", 9_500)]
    assert found([], late, outages=[(500, 9_000)]) == FINE, "what a wrote was under way all the time"
