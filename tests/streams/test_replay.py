"""Replay, from the log in memory and from files: what it tells is what happened."""

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.ports import Attempt, Done, GaveUp, ModelReply, ModelRequest
from streams.claims import Resolver
from streams.core.commands import Answer, MakeAnswer, MakePlan, RunSubTask
from streams.core.events import JobSubmitted, SubTaskStarted
from streams.core.states import Released, Running, Waiting
from streams.core.values import INLINE_SET_BYTES, NO_USAGE
from streams.log import Record
from streams.memory_log.virtual_time import run
from streams.replay.calls import calls
from streams.replay.files import NotAnExport, read_lines, write_lines
from streams.replay.folding import Change, Replay, replay
from streams.replay.recording import JobUnknown, RecordedLog, Recording, record_job
from streams.replay.simulated import was_simulated
from streams.resolved import resolved
from streams.topics import ANSWERS, JOB_EVENTS, SUBTASKS, TRANSCRIPTS
from streams.transcript import ModelCalled
from streams.wire.answers import read_answer, write_answer
from streams.wire.commands import read_command
from streams.wire.events import read_event
from tests.streams.scripted import Script, chain, echo
from tests.streams.swarm_in_memory import SwarmInMemory

THREE = [{"id": "a", "goal": "x"}, {"id": "b", "goal": "x"}, {"id": "c", "goal": "x", "dep": ["a", "b"]}]


async def _sometimes(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
    """The second sub-task fails once, the last one for good."""
    if command.task == "t1" and command.attempt == 1:
        return GaveUp(kind="server_error", reason="try again", final=False)
    if command.task == "t2":
        return GaveUp(kind="content_filter", reason="no", final=True)
    return await echo(command, attempt)


def recorded(goal: str = "3", script: Script | None = None, **options: object) -> tuple[Recording, set[str]]:
    """One finished job among others, recorded; and the keys of the commands that were really given."""

    async def story() -> tuple[Recording, set[str]]:
        system = SwarmInMemory(script=script or Script())
        system.worker()
        for name in ("other", "job", "job2"):
            await system.submit({"id": name, "goal": goal, **options})
        await system.answers(3)
        before = [await system.records(topic) for topic in (JOB_EVENTS, ANSWERS, TRANSCRIPTS)]
        recording = await record_job(system.cluster.connect("reader"), "default/job")
        assert before == [await system.records(topic) for topic in (JOB_EVENTS, ANSWERS, TRANSCRIPTS)]
        commands = [read_command(record) for record in await system.records(SUBTASKS)]
        given = {f"{each.task}/{each.attempt}" for each in commands if each.job == "default/job"}
        return recording, given

    return run(story())


def keys(told: Replay) -> list[str]:
    """The commands of a replay, in order."""
    orders = [order.command for step in told.steps for order in step.orders]
    return [f"{command.task}/{command.attempt}" for command in orders]


def test_a_replay_tells_the_commands_and_the_answer_of_the_run() -> None:
    """With retries and failures: every command that was given, each once, and the published answer."""
    recording, given = recorded(script=Script(work=_sometimes))
    told = replay(recording)
    assert sorted(keys(told)) == sorted(given)
    assert told.agrees
    assert told.answer is not None
    assert told.answer == told.published
    assert told.answer.outcome == "partial"
    assert told.steps[0].before == "new"
    assert [step.after for step in told.steps if step.after != step.before] == [
        "planning",
        "running",
        "answering",
        "partial",
    ]


def test_a_job_that_brought_its_plan_is_told_without_planning() -> None:
    """Its first event leads to its sub-tasks; of a single one the result is the answer."""
    for entries, orders in (
        ([{"id": "a", "goal": "x"}], ["a/1"]),
        (THREE, ["a/1", "b/1", "c/1", "answer/1"]),
    ):
        recording, given = recorded(plan=entries)
        told = replay(recording)
        assert keys(told) == orders
        assert sorted(given) == sorted(orders)
        assert told.agrees
        assert told.answer is not None
        assert (told.steps[0].before, told.steps[0].after) == ("new", "running")


@pytest.mark.parametrize("plan", [None, THREE])
@pytest.mark.parametrize("simulated", [True, False])
def test_any_call_tells_whether_the_model_was_simulated(plan: object, *, simulated: bool) -> None:
    """With or without planning, wherever the job's lanes are."""

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        async def call(request: ModelRequest, timeout_s: float) -> ModelReply:
            return ModelReply(
                message={}, finish_reason="stop", usage=NO_USAGE, model="m", simulated=simulated
            )

        await attempt.model(ModelRequest(messages=[]), call)
        return Done(result=1)

    recording, _ = recorded(script=Script(work=work), plan=plan)
    submitted = read_event(recording.events[0])
    assert isinstance(submitted, JobSubmitted)
    assert run(was_simulated(RecordedLog(recording), submitted)) is simulated


def test_steps_show_what_the_fold_made_of_each_event() -> None:
    """A chain of two: the goal asks for a plan, the plan for its first sub-task, that for the next."""
    recording, _ = recorded("chain", Script({"chain": chain(2)}))
    first, planned, started, *_ = replay(recording).steps
    assert isinstance(first.event, JobSubmitted)
    assert [type(order.command) for order in first.orders] == [MakePlan]
    assert first.changes == (Change(task="plan", before=None, after=Released(attempt=1, at=first.at)),)
    assert isinstance(started.event, SubTaskStarted)  # the planning ended at once and has none
    assert isinstance(started.changes[0].after, Running)
    assert [order.command.task for order in planned.orders] == ["t0"]
    after = {change.task: type(change.after) for change in planned.changes}
    assert (after["t0"], after["t1"]) == (Released, Waiting)
    assert [type(order.command) for step in replay(recording).steps for order in step.orders][
        -1
    ] is MakeAnswer


def test_the_jobs_own_concurrency_paces_a_replay() -> None:
    """With one at a time no step leads to two commands."""
    recording, given = recorded("5", limits={"concurrency": 1})
    told = replay(recording)
    assert max(len(step.orders) for step in told.steps) == 1
    assert set(keys(told)) == given


def test_repetitions_show_as_such() -> None:
    """An event that is on the log twice changes nothing, and says so."""
    recording, _ = recorded()
    twice = replace(recording, events=tuple(each for each in recording.events for _ in range(2)))
    told = replay(twice)
    assert [step.absorbed for step in told.steps] == [False, True] * len(recording.events)
    assert told.answer == replay(recording).answer


def test_what_cannot_be_read_is_told_and_passed_over() -> None:
    """A foreign record with the job's key among its events."""
    recording, _ = recorded()
    foreign = replace(recording.events[1], value=b"hello")
    told = replay(replace(recording, events=(*recording.events[:1], foreign, *recording.events[1:])))
    assert told.steps[1].event is None
    assert "not JSON" in told.steps[1].unreadable
    assert told.agrees


def test_an_answer_that_the_events_do_not_lead_to_is_seen() -> None:
    """Somebody published another one: the field is named, with both values."""
    recording, _ = recorded()
    (record,) = recording.answers
    forged: Answer = replace(read_answer(record), outcome="failed", reason="nobody knows")
    value, _ = write_answer(forged)
    told = replay(replace(recording, answers=(replace(record, value=value),)))
    assert not told.agrees
    assert {(each.field, each.folded, each.published) for each in told.differences} == {
        ("outcome", "succeeded", "failed"),
        ("reason", "", "nobody knows"),
    }


def test_an_unfinished_job_agrees_with_having_no_answer() -> None:
    """A log that was read in the middle of a job."""
    recording, _ = recorded()
    told = replay(replace(recording, events=recording.events[:3], answers=()))
    assert told.answer is None
    assert told.agrees
    assert not replay(replace(recording, answers=())).agrees


def test_a_file_holds_all_of_a_job() -> None:
    """Exported and read again it is the same recording, of this job alone, journal included."""
    recording, _ = recorded()
    lines = list(write_lines(recording))
    assert read_lines(lines) == recording
    assert {record.key.split(b"/")[1] for record in recording.records if record.key} == {b"job"}
    told = calls(recording)
    assert {(each.task, each.attempt) for each in told} >= {(task, 1) for task in ("t0", "t1", "t2")}
    by_task = {each.task: each.entries for each in told}
    assert isinstance(by_task["t0"][0], ModelCalled)
    assert by_task["t0"][0].reply.text == "t0"
    # For jq: what is JSON stands as JSON.
    assert orjson.loads(lines[1])["value"]["type"] == "JobSubmitted"


async def _verbose(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
    return Done(result="x" * (INLINE_SET_BYTES // 2))


def test_large_values_are_resolved_offline() -> None:
    """An answer by claim check: its chunks are in the file."""
    recording, _ = recorded(script=Script(work=_verbose), join={"chunk_bytes": 1_000_000})
    told = replay(read_lines(write_lines(recording)))
    assert told.agrees
    assert told.answer is not None
    with pytest.raises(ValueError, match="claim check"):
        _ = told.answer.value

    async def story() -> Answer:
        assert told.answer is not None
        return await resolved(Resolver(RecordedLog(recording)), told.answer)

    value = run(story()).value
    assert value == dict.fromkeys(("t0", "t1", "t2"), "x" * (INLINE_SET_BYTES // 2))


def test_an_unknown_job_is_an_error() -> None:
    """Which says where it was looked for."""

    async def story() -> None:
        system = SwarmInMemory()
        with pytest.raises(JobUnknown, match=r"default/typo on job-events\[\d\]"):
            await record_job(system.cluster.connect("reader"), "default/typo")

    run(story())


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "empty"),
        ([b"hello\n"], "line 1"),
        ([b'{"v": 2, "type": "AnabranchExport", "job": "a/b"}'], "newer"),
        ([b'{"v": 1, "type": "AnabranchExport", "job": "a/b"}', b'{"topic": "jobs"}'], "line 2"),
    ],
)
def test_other_files_are_refused(lines: list[bytes], why: str) -> None:
    """With the line, and what writes such a file."""
    with pytest.raises(NotAnExport, match=why):
        read_lines(lines)


@given(
    st.none() | st.binary() | st.sampled_from([b'{"a": 1}', b'{"a":1}', b"1e5", b"null", b'"\xc3\xa9"']),
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
)
def test_any_record_comes_back_as_it_was(
    value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    """Byte for byte, whoever wrote it."""
    record = Record(ANSWERS, 3, 7, 1_700_000_000_000, b"a/b", value, tuple(headers))
    recording = Recording(job="a/b", answers=(record,))
    assert read_lines(write_lines(recording)) == recording
