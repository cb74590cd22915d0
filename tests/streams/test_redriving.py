"""Dead letters and their way back, on the log in memory: each once, whoever redrives it and dies at it."""

import asyncio
from collections import Counter
from contextlib import suppress

import orjson
import pytest

from agents.ports import Attempt, Done, GaveUp
from streams import dead_letters
from streams.core.commands import RunSubTask
from streams.core.events import JobReopened, SubTaskSucceeded
from streams.core.plan import SubTask
from streams.core.values import Inline
from streams.delivery import Sender
from streams.letters import Wanted, find
from streams.log import LogUnavailable, Record
from streams.memory_log import Faults, Limits, MemoryCluster
from streams.memory_log.virtual_time import run
from streams.redriving import Done as Redone
from streams.redriving import NotDone, Outcome, redrive
from streams.topics import DEAD_LETTERS, GOALS, JOB_EVENTS, JOBS, SUBTASKS, partition_of
from streams.wire.events import write_event
from streams.wire.marks import Dropped, Redriven, is_mark
from tests.streams.redriving_in_memory import NEWER, RedrivenSwarm, as_was
from tests.streams.scripted import Script, echo

TWO = (SubTask(id="a", goal="x"), SubTask(id="b", goal="y"), SubTask(id="c", goal="z", dep=("a",)))
GOAL = {"id": "g", "goal": "two", "limits": {"max_attempts": 1}, "join": {"min_success_ratio": 1.0}}


def redone(outcomes: list[Outcome]) -> list[Redriven]:
    """The marks of those that were redriven now.

    Raises:
        AssertionError: one was not.
    """
    marks = []
    for outcome in outcomes:
        assert isinstance(outcome, Redone), outcome
        assert isinstance(outcome.mark, Redriven)
        assert not outcome.again
        marks.append(outcome.mark)
    return marks


async def failed(swarm: RedrivenSwarm, *unread: str) -> None:
    """A job fails, since no lane can read the commands of these sub-tasks; then the worker is upgraded."""
    old = swarm.old_worker(*unread)
    await swarm.submit(GOAL)
    answer = (await swarm.answers(1))["g"]
    assert answer.outcome == "failed"
    await old.close()
    swarm.worker()


def test_a_redriven_command_brings_its_job_a_second_answer() -> None:
    """The command goes back as it was, and alone what is missing runs; the first answer stays."""

    async def story() -> None:
        swarm = RedrivenSwarm(script=Script({"two": TWO}))
        await failed(swarm, "a")
        (letter,) = await swarm.letters(topic=SUBTASKS)
        assert (letter.job, letter.attempt, letter.dead.reason) == ("default/g", 1, NEWER)
        (mark,) = redone(await swarm.redrive())
        assert (mark.job, mark.revision, mark.topic) == ("default/g", 2, SUBTASKS)
        await asyncio.sleep(30)
        first, second = (await swarm.revisions())["g"]
        assert (first.outcome, second.outcome, second.revision) == ("failed", "succeeded", 2)
        assert second.answer == Inline(
            value={
                "a": {"did": "a", "with": []},
                "b": {"did": "b", "with": []},
                "c": {"did": "c", "with": [{"did": "a", "with": []}]},
            }
        )
        assert Counter(swarm.script.ran) == Counter(
            {("default/g", "a", 1): 1, ("default/g", "b", 1): 1, ("default/g", "c", 1): 1}
        )
        commands = [record for record in await swarm.records(SUBTASKS) if b"/a/" in (record.key or b"")]
        original, back = commands
        assert as_was(original) == as_was(back)
        assert (back.partition, back.offset) == (mark.partition, mark.to)

    run(story())


def test_what_is_redriven_stays_so() -> None:
    """A second time says when and by whom, and does nothing; neither does a drop."""

    async def story() -> None:
        swarm = RedrivenSwarm(script=Script({"two": TWO}))
        await failed(swarm, "a", "c")
        chosen = await swarm.letters()
        (mark,) = redone(await swarm.redrive(chosen))
        await asyncio.sleep(30)
        before = [await swarm.records(topic) for topic in (SUBTASKS, JOB_EVENTS, DEAD_LETTERS)]
        for outcomes in (await swarm.redrive(chosen), await swarm.drop(chosen)):
            (outcome,) = outcomes
            assert isinstance(outcome, Redone)
            assert outcome.again
            assert isinstance(outcome.mark, Redriven)
            assert (outcome.mark.to, outcome.mark.by) == (mark.to, "ada")
        assert before == [await swarm.records(topic) for topic in (SUBTASKS, JOB_EVENTS, DEAD_LETTERS)]
        assert await swarm.letters() == []
        assert [letter.lot for letter in await swarm.letters(lot=None)] == ["redriven"]
        assert len((await swarm.revisions())["g"]) == 2

    run(story())


def test_dead_letters_of_one_job_open_it_once() -> None:
    """Each command goes back, and none of them runs beside a new one."""

    async def story() -> None:
        swarm = RedrivenSwarm(script=Script({"two": TWO}))
        await failed(swarm, "a", "b")
        marks = redone(await swarm.redrive())
        assert len(marks) == 2
        assert all(mark.to is not None for mark in marks)
        await asyncio.sleep(30)
        assert len(await swarm.events(JobReopened)) == 1
        assert [answer.outcome for answer in (await swarm.revisions())["g"]] == ["failed", "succeeded"]
        assert Counter(swarm.script.ran).most_common(1)[0][1] == 1
        assert {(task, attempt) for _, task, attempt in swarm.script.ran} == {("a", 1), ("b", 1), ("c", 1)}

    run(story())


def test_an_attempt_that_later_ones_followed_is_not_run_again() -> None:
    """Three attempts were buried: the last goes back, and the job needs no more of them."""

    async def story() -> None:
        swarm = RedrivenSwarm(script=Script({"two": TWO}))
        old = swarm.old_worker("a")
        await swarm.submit({**GOAL, "limits": {"max_attempts": 3}})
        assert (await swarm.answers(1))["g"].outcome == "failed"
        await old.close()
        swarm.worker()
        marks = redone(await swarm.redrive())
        assert sorted(mark.to is None for mark in marks) == [False, True, True]
        await asyncio.sleep(30)
        assert [attempt for _, task, attempt in swarm.script.ran if task == "a"] == [3]
        assert [answer.outcome for answer in (await swarm.revisions())["g"]] == ["failed", "succeeded"]

    run(story())


@pytest.mark.parametrize("key", [b"default/g/a/1", b"default/g/a/7", b"default/other/a/1", b"", None])
def test_a_record_that_is_no_command_goes_back_and_is_buried_again(key: bytes | None) -> None:
    """What nobody can read does no harm; where its key names a job that failed, that is tried again."""

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        if command.task == "a" and command.attempt == 1:
            return GaveUp(kind="refused", reason="no", final=True)
        return await echo(command, attempt)

    async def story() -> None:
        swarm = RedrivenSwarm(script=Script({"two": TWO}, work))
        log = swarm.worker()
        await swarm.submit(GOAL)
        assert (await swarm.answers(1))["g"].outcome == "failed"
        headers = (("own", b"1"), ("own", None))
        await (await log.producer.send(SUBTASKS, b"\xff", key=key, partition=3, headers=headers))
        await asyncio.sleep(5)
        outcomes = await swarm.redrive()
        if key == b"default/other/a/1":
            (outcome,) = outcomes
            assert isinstance(outcome, NotDone)
            assert "job-events[" in outcome.reason
            assert "no event of default/other" in outcome.reason
            return
        (mark,) = redone(outcomes)
        await asyncio.sleep(30)
        original, back = [record for record in await swarm.records(SUBTASKS) if record.value == b"\xff"]
        assert as_was(original) == as_was(back) == (key, b"\xff", headers)
        assert back.offset == mark.to
        (again,) = await swarm.letters()
        assert again.dead.place.offset == back.offset
        outcome_of = [answer.outcome for answer in (await swarm.revisions())["g"]]
        assert outcome_of == (
            ["failed", "succeeded"] if (key or b"").startswith(b"default/g") else ["failed"]
        )

    run(story())


def test_a_command_that_nobody_waits_for_is_not_paid_for() -> None:
    """Its job goes on with a later attempt, or was answered without it: it waits to be dropped."""

    async def story() -> None:
        swarm = RedrivenSwarm(script=Script({"two": TWO}))
        swarm.old_worker("a/1")
        await swarm.submit({**GOAL, "limits": {"max_attempts": 2}})
        async with asyncio.timeout(60):
            while not (chosen := await swarm.letters()):
                await asyncio.sleep(0.1)
        (early,) = await swarm.redrive(chosen[:1])
        assert (await swarm.answers(1))["g"].outcome == "succeeded"
        (late,) = await swarm.redrive(chosen[:1])
        for outcome, why in ((early, "gone on without it: a is"), (late, "answered without it (succeeded)")):
            assert isinstance(outcome, NotDone)
            assert why in outcome.reason
        assert [(task, attempt) for _, task, attempt in swarm.script.ran if task == "a"] == [("a", 2)]
        (dropped,) = await swarm.drop(chosen[:1])
        assert isinstance(dropped, Redone)
        assert isinstance(dropped.mark, Dropped)
        (again,) = await swarm.redrive(chosen[:1])
        assert isinstance(again, Redone)
        assert again.again
        assert [letter.lot for letter in await swarm.letters(lot="dropped")] == ["dropped"]

    run(story())


def test_a_rejected_goal_comes_back_when_it_can_be_read() -> None:
    """Whole and once; the job that was rejected has a second answer."""

    async def story() -> None:
        swarm = RedrivenSwarm(script=Script({"two": TWO}))
        old = swarm.old_worker(refuses="default/g")
        goal = orjson.dumps({"id": "g", "goal": "two"})
        headers = (("trace", b"17"),)
        await swarm.submit(goal, headers=headers, partition=5)
        assert (await swarm.answers(1))["g"].outcome == "rejected"
        await old.close()
        swarm.worker()
        (letter,) = await swarm.letters(job="default/g")
        assert letter.dead.place.partition == 5
        (mark,) = redone(await swarm.redrive())
        original, back = await swarm.records(GOALS)
        assert as_was(original) == as_was(back) == (b"", goal, headers)
        assert (mark.topic, mark.partition, mark.to, mark.job) == (GOALS, 5, back.offset, None)
        await asyncio.sleep(30)
        first, second = (await swarm.revisions())["g"]
        assert (first.outcome, second.outcome) == ("rejected", "succeeded")
        assert [header.name for header in second.headers] == ["trace"]
        assert await swarm.letters() == []

    run(story())


def test_what_the_log_does_not_take_holds_up_nothing() -> None:
    """It stays as it is, and those behind it go back."""

    async def story() -> None:
        topics = dict.fromkeys((GOALS, SUBTASKS, JOB_EVENTS, JOBS, DEAD_LETTERS), 1)
        limits = Limits(record_bytes=1_000, topic_bytes={DEAD_LETTERS: 10_000})
        log = MemoryCluster(topics, limits=limits).connect("operator")
        sender = Sender(log.producer)
        for n, value in enumerate((b"small", b"x" * 5_000, b"small too")):
            await dead_letters.bury(sender, Record(GOALS, 0, n, 0, None, value), "no goal")
        chosen = await find(log, range(1), Wanted())
        outcomes = [each async for each in redrive(log, chosen, lanes=1, by="ada")]
        assert [type(each) for each in outcomes] == [Redone, NotDone, Redone]
        refused = outcomes[1]
        assert isinstance(refused, NotDone)
        assert "the log does not take it" in refused.reason
        assert [letter.place for letter in await find(log, range(1), Wanted())] == [(0, 1)]

    run(story())


def test_a_goal_that_is_rejected_again_is_a_dead_letter_again() -> None:
    """Its answer stays the one it has."""

    async def story() -> None:
        swarm = RedrivenSwarm()
        swarm.worker()
        await swarm.submit({"id": "g", "text": "no goal"})
        assert (await swarm.answers(1))["g"].outcome == "rejected"
        redone(await swarm.redrive())
        await asyncio.sleep(30)
        assert len((await swarm.revisions())["g"]) == 1
        (again,) = await swarm.letters()
        assert again.dead.place.offset > 0

    run(story())


def test_many_go_back_together_each_once() -> None:
    """Over all partitions, in parts; nothing is sent twice and nothing is left out."""

    async def story() -> None:
        swarm = RedrivenSwarm()
        sender = Sender(swarm.operator().producer)
        goals = [orjson.dumps({"id": f"g{n}", "goal": "1"}) for n in range(40)]
        for n, value in enumerate(goals):
            place = Record(GOALS, n % 8, n, 0, b"%d" % n, value)
            await dead_letters.bury(sender, place, NEWER)
        chosen = await swarm.letters()
        assert len(chosen) == len(goals)
        marks = redone(await swarm.redrive(chosen))
        back = await swarm.records(GOALS)
        assert Counter(record.value for record in back) == Counter(goals)
        assert sorted((mark.partition, mark.to) for mark in marks) == sorted(
            (record.partition, record.offset) for record in back
        )
        swarm.worker()
        assert {answer.outcome for answer in (await swarm.answers(40)).values()} == {"succeeded"}

    run(story())


def test_a_value_that_was_too_large_for_its_dead_letter_is_read_from_its_topic() -> None:
    """While it is there; then the dead letter says so."""

    async def story() -> None:
        swarm = RedrivenSwarm()
        sender = Sender(swarm.operator().producer)
        value = b"\xff" * 50_000
        place = await (
            await sender.producer.send(GOALS, value, key=None, partition=2, headers=(("own", b"1"),))
        )
        (original,) = await swarm.records(GOALS)
        assert original.offset == place
        for record in (original, Record(GOALS, 2, 99, 0, None, b"gone")):
            key, none, headers = dead_letters.write_without_value(record, "too large")
            await sender.deliver(DEAD_LETTERS, none, key=key, partition=2, headers=headers)
        outcomes = await swarm.redrive()
        redone(outcomes[:1])
        lost = outcomes[1]
        assert isinstance(lost, NotDone)
        assert "goals[2]@99 any more" in lost.reason
        first, back = await swarm.records(GOALS)
        assert as_was(first) == as_was(back) == (None, value, (("own", b"1"),))

    run(story())


def test_an_event_goes_back_and_its_job_goes_on_with_what_it_brings() -> None:
    """A result that the orchestrator could not read then: it is paid for, and counts now."""

    async def story() -> None:
        swarm = RedrivenSwarm(script=Script({"two": TWO}))
        swarm.old_worker("b")
        await swarm.submit(GOAL)
        assert (await swarm.answers(1))["g"].outcome == "failed"
        event = SubTaskSucceeded(job="default/g", task="b", attempt=1, result=Inline(value="paid"), size=6)
        place = partition_of("default/g", swarm.settings.lanes)
        sender = Sender(swarm.operator().producer)
        offset = await sender.deliver(JOB_EVENTS, write_event(event), key=b"default/g", partition=place)
        await asyncio.sleep(5)
        (record,) = [
            each
            for each in await swarm.records(JOB_EVENTS)
            if (each.partition, each.offset) == (place, offset)
        ]
        await dead_letters.bury(sender, record, NEWER)
        swarm.worker()
        chosen = await swarm.letters(topic=JOB_EVENTS)
        (mark,) = redone(await swarm.redrive(chosen))
        assert (mark.job, mark.revision) == ("default/g", 2)
        await asyncio.sleep(30)
        _, second = (await swarm.revisions())["g"]
        assert isinstance(second.answer, Inline)
        assert isinstance(second.answer.value, dict)
        assert second.answer.value["b"] == "paid"
        assert ("default/g", "b", 1) not in swarm.script.ran
        events = [each for each in await swarm.records(JOB_EVENTS) if each.value == record.value]
        assert [as_was(each) for each in events] == [as_was(record)] * 2

    run(story())


def test_a_job_whose_budget_is_spent_is_not_opened_for_nothing() -> None:
    """Its next answer would be the same."""

    async def story() -> None:
        swarm = RedrivenSwarm(script=Script({"two": TWO}))
        old = swarm.old_worker("a")
        await swarm.submit({**GOAL, "budget": {"calls": 1}})
        assert (await swarm.answers(1))["g"].outcome == "failed"
        await old.close()
        swarm.worker()
        (outcome,) = await swarm.redrive()
        assert isinstance(outcome, NotDone)
        assert "budget of 1 model calls is spent" in outcome.reason
        assert await swarm.events(JobReopened) == []
        assert len(await swarm.letters()) == 1

    run(story())


def test_a_job_that_the_log_no_longer_has_says_so() -> None:
    """Nothing is done, and the dead letter stays."""

    async def story() -> None:
        swarm = RedrivenSwarm(script=Script({"two": TWO}))
        await failed(swarm, "a")
        later = RedrivenSwarm()
        sender = Sender(later.operator().producer)
        for record in await swarm.records(DEAD_LETTERS):
            await sender.deliver(
                DEAD_LETTERS,
                record.value,
                key=record.key or b"",
                partition=record.partition,
                headers=record.headers,
            )
        (outcome,) = await later.redrive()
        assert isinstance(outcome, NotDone)
        assert "no event of default/g (any more)" in outcome.reason
        assert await later.records(SUBTASKS) == []

    run(story())


@pytest.mark.parametrize("wait", [0.0, 0.03, 0.06, 0.09, 0.12, 0.2, 0.3, 0.4])
def test_two_who_redrive_at_once_redrive_once(wait: float) -> None:
    """The later one fences the earlier one, or finds its mark."""

    async def story() -> None:
        swarm = RedrivenSwarm(script=Script({"two": TWO}), faults=Faults(delay_s=0.02))
        await failed(swarm, "a")
        chosen = await swarm.letters()

        async def later() -> list[Outcome]:
            await asyncio.sleep(wait)
            return await swarm.redrive(chosen)

        both = await asyncio.gather(swarm.redrive(chosen), later())
        outcomes = [each for some in both for each in some]
        assert sum(isinstance(each, Redone) and not each.again for each in outcomes) == 1
        assert all("somebody else" in each.reason for each in outcomes if isinstance(each, NotDone))
        await asyncio.sleep(60)
        await check_once(swarm)

    run(story())


@pytest.mark.parametrize("wait", [0.0, 0.05, 0.1, 0.2, 0.3])
def test_two_commands_of_one_job_redriven_at_once_open_it_once(wait: float) -> None:
    """Whose event comes second finds that the job gives a new command, and sends none beside it."""

    async def story() -> None:
        swarm = RedrivenSwarm(script=Script({"two": TWO}), faults=Faults(delay_s=0.02))
        await failed(swarm, "a", "b")
        first, second = await swarm.letters()

        async def later() -> list[Outcome]:
            await asyncio.sleep(wait)
            return await swarm.redrive([second])

        both = await asyncio.gather(swarm.redrive([first]), later())
        marks = redone([each for some in both for each in some])
        assert [mark.revision for mark in marks] == [2, 2]
        assert [mark.to is None for mark in marks] in ([False, True], [True, False])
        await asyncio.sleep(60)
        assert [answer.outcome for answer in (await swarm.revisions())["g"]] == ["failed", "succeeded"]
        ran = sorted((task, attempt) for _, task, attempt in swarm.script.ran)
        assert ran in ([("a", 1), ("b", 2), ("c", 1)], [("a", 2), ("b", 1), ("c", 1)])

    run(story())


@pytest.mark.parametrize("seed", range(16))
def test_whoever_dies_at_it_and_does_it_again_redrives_once(seed: int) -> None:
    """Killed at any moment, replies lost, commits of unknown outcome: done again until it says so."""
    faults = Faults(delay_s=0.02)
    if seed % 2:
        faults = Faults(delay_s=0.02, lost_replies=0.05, unknown_commits=0.2)

    async def story() -> None:
        swarm = RedrivenSwarm(script=Script({"two": TWO}), seed=seed, faults=faults)
        old = swarm.old_worker("a")
        await swarm.submit_surely(GOAL)
        while not await swarm.revisions():
            await asyncio.sleep(5)
        await old.close()
        swarm.worker()
        chosen = await swarm.letters()
        doomed = swarm.operator()
        trying = doomed.start(swarm.redrive(chosen, log=doomed))
        await asyncio.sleep(0.03 * seed)
        doomed.kill()
        await asyncio.wait([trying])
        outcomes: list[Outcome] = []
        while not outcomes:
            with suppress(LogUnavailable):
                outcomes = await swarm.redrive(chosen)
        assert all(isinstance(each, Redone) for each in outcomes), outcomes
        while len((await swarm.revisions())["g"]) == 1:
            await asyncio.sleep(5)
        await check_once(swarm)

    run(story())


async def check_once(swarm: RedrivenSwarm) -> None:
    """One command went back, one mark says so, and one answer followed."""
    commands = [record for record in await swarm.records(SUBTASKS) if b"/a/" in (record.key or b"")]
    assert len(commands) == 2
    assert sum(map(is_mark, await swarm.records(DEAD_LETTERS))) == 1
    assert [answer.outcome for answer in (await swarm.revisions())["g"]] == ["failed", "succeeded"]
    assert Counter(swarm.script.ran).most_common(1)[0][1] == 1
