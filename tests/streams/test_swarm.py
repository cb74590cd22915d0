"""The whole path on the log in memory: goals in, one answer each out, whatever comes in and whoever dies."""

import asyncio
from collections import Counter

import pytest

from agents.ports import Attempt, Done, GaveUp, PlanRefused
from streams import dead_letters
from streams.claims import Resolver
from streams.core.commands import Answer, RunSubTask
from streams.core.plan import SubTask
from streams.core.values import Inline, Reference
from streams.memory_log import Faults
from streams.memory_log.virtual_time import run
from streams.settings import Settings
from streams.topics import ANSWERS, DEAD_LETTERS, JOB_EVENTS, JOBS, SUBTASKS
from streams.wire.rows import POSITION_KEY, read_row
from tests.streams.scripted import Script, chain, echo, flat
from tests.streams.swarm_in_memory import SwarmInMemory


def value_of(answer: Answer) -> object:
    """What stands in an answer."""
    assert isinstance(answer.answer, Inline)
    return answer.answer.value


def test_a_goal_becomes_one_answer() -> None:
    """A plan of three sub-tasks: all of them run, and the answer joins their results."""

    async def story() -> None:
        swarm = SwarmInMemory()
        swarm.worker()
        await swarm.submit({"id": "g", "goal": "3"})
        answer = (await swarm.answers(1))["g"]
        assert answer.outcome == "succeeded"
        assert value_of(answer) == {name: {"did": name, "with": []} for name in ("t0", "t1", "t2")}
        assert answer.usage.calls == 3

    run(story())


def test_a_goal_that_brings_its_plan_asks_no_planner() -> None:
    """Its sub-tasks run as planned, also over the death of their worker; one that is refused is answered."""
    entries = [{"id": f"t{n}", "goal": f"do {n}", "dep": []} for n in range(30)]
    entries += [{"id": "sum", "goal": "sum", "deps": ["t0", "t29"]}]

    async def story() -> None:
        swarm = SwarmInMemory(settings=Settings(concurrency=4))
        worker = swarm.worker()
        await swarm.submit({"id": "many", "goal": "no number", "plan": entries})
        await swarm.submit({"id": "bad", "goal": "no number", "plan": entries[30:]})
        await asyncio.sleep(1)
        worker.kill()
        swarm.worker()
        answers = await swarm.answers(2)
        value = value_of(answers["many"])
        assert isinstance(value, dict)
        assert set(value) == {*(f"t{n}" for n in range(30)), "sum"}
        assert [each["did"] for each in value["sum"]["with"]] == ["t0", "t29"]
        assert (answers["bad"].outcome, answers["bad"].rule) == ("rejected", "rejected")
        assert answers["bad"].reason == "`plan`: sum depends on unknown t0; sum depends on unknown t29"
        assert [dead_letters.read(r).reason for r in await swarm.records(DEAD_LETTERS)] == [
            answers["bad"].reason
        ]

    run(story())


def test_the_result_of_a_single_sub_task_is_the_answer() -> None:
    """As it is, in the record up to 256 KB, by claim check above: nobody is asked to plan or to join."""
    sizes = {"middle": "x" * 250_000, "large": "x" * 270_000}

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        return Done(result=sizes.get(command.goal, {"n": 1}))

    async def story() -> None:
        swarm = SwarmInMemory(script=Script(work=work))
        log = swarm.worker()
        for name in ("small", *sizes):
            await swarm.submit({"id": name, "goal": "x", "plan": [{"id": "only", "goal": name}]})
        await swarm.submit({"id": "planned", "goal": "1"})
        answers = await swarm.answers(4)
        assert value_of(answers["small"]) == value_of(answers["planned"]) == {"n": 1}
        assert value_of(answers["middle"]) == sizes["middle"]
        check = answers["large"].answer
        assert isinstance(check, Reference)
        assert await Resolver(log).resolve(check) == sizes["large"]
        commands = {(record.key or b"").decode() for record in await swarm.records(SUBTASKS)}
        assert commands == {
            "default/small/only/1",
            "default/middle/only/1",
            "default/large/only/1",
            "default/planned/plan/1",
            "default/planned/t0/1",
        }

    run(story())


def test_a_dependency_gives_its_result_to_its_dependants() -> None:
    """Each link of a chain sees what the one before it did."""

    async def story() -> None:
        swarm = SwarmInMemory(script=Script({"chain": chain(5)}))
        swarm.worker()
        await swarm.submit({"id": "g", "goal": "chain"})
        value = value_of((await swarm.answers(1))["g"])
        nested: object = []
        for n in range(5):
            link = {"did": f"t{n}", "with": nested}
            assert isinstance(value, dict)
            assert value[f"t{n}"] == link
            nested = [link]

    run(story())


def test_bad_records_are_buried_and_hold_up_nobody() -> None:
    """A tombstone, bytes that are no text and a goal without a goal among good ones."""

    async def story() -> None:
        swarm = SwarmInMemory()
        swarm.worker()
        for goal in (None, b"\xff\xfe\x00", {"id": "g1", "text": "x"}, {"id": "good", "goal": "1"}):
            await swarm.submit(goal)
        answers = await swarm.answers(2)
        assert answers["good"].outcome == "succeeded"
        assert answers["g1"].outcome == "rejected"
        assert "goal" in answers["g1"].reason
        buried = [dead_letters.read(record) for record in await swarm.records(DEAD_LETTERS)]
        assert sorted(letter.place.offset for letter in buried) == [0, 1, 2]
        assert {letter.place.topic for letter in buried} == {"goals"}

    run(story())


def test_the_same_goal_twice_is_one_job_and_another_goal_under_its_id_is_buried() -> None:
    """Redelivery is no second job; a clash of ids is told, and the first is answered."""

    async def story() -> None:
        swarm = SwarmInMemory()
        swarm.worker()
        for goal in ("1", "1", "2"):
            await swarm.submit({"id": "g", "goal": goal})
        answer = (await swarm.answers(1))["g"]
        assert value_of(answer) == {"did": "t0", "with": []}
        (buried,) = [dead_letters.read(record) for record in await swarm.records(DEAD_LETTERS)]
        assert "another goal" in buried.reason
        assert buried.source is not None
        assert buried.source.offset == 2
        await swarm.submit({"id": "g", "goal": "1"})  # long after its end
        await asyncio.sleep(10)
        assert len(await swarm.answers(1)) == 1

    run(story())


def test_headers_come_back_on_the_answer() -> None:
    """Names, order and bytes as they came."""

    async def story() -> None:
        swarm = SwarmInMemory()
        swarm.worker()
        headers = (("traceparent", b"00-1-2-01"), ("raw", b"\xff\x00"), ("none", None), ("raw", b"again"))
        await swarm.submit({"id": "g", "goal": "1"}, headers=headers)
        await swarm.answers(1)
        (record,) = await swarm.records(ANSWERS)
        assert record.headers[: len(headers)] == headers

    run(story())


def test_a_failed_branch_makes_a_partial_answer_that_names_it() -> None:
    """A failure for good, and what needed it: the answer never reads as complete."""

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        if command.task == "bad":
            return GaveUp(kind="content_filter", reason="high risk", final=True)
        return await echo(command, attempt)

    plan = (
        SubTask(id="good", goal="a"),
        SubTask(id="bad", goal="b"),
        SubTask(id="behind", goal="c", dep=("bad",)),
    )

    async def story() -> None:
        swarm = SwarmInMemory(script=Script({"branches": plan}, work))
        swarm.worker()
        await swarm.submit({"id": "g", "goal": "branches"})
        await swarm.submit({"id": "strict", "goal": "branches", "join": {"min_success_ratio": 0.9}})
        answers = await swarm.answers(2)
        assert answers["g"].outcome == "partial"
        assert {report.task: report.outcome for report in answers["g"].subtasks} == {
            "good": "succeeded",
            "bad": "failed",
            "behind": "skipped",
        }
        assert "content_filter: high risk" in {report.reason for report in answers["g"].subtasks}
        assert answers["strict"].outcome == "failed"
        assert answers["strict"].answer is None

    run(story())


def test_an_attempt_that_fails_is_tried_again_and_one_that_hangs_ends_at_its_timeout() -> None:
    """Both end within their attempts, and the job with them."""

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        if command.task == "t0" and command.attempt < 3:
            return GaveUp(kind="server_error", reason="500", final=False)
        if command.task == "t1":
            await asyncio.Event().wait()
        return await echo(command, attempt)

    async def story() -> None:
        script = Script(work=work)
        swarm = SwarmInMemory(script=script)
        swarm.worker()
        await swarm.submit({"id": "g", "goal": "3", "limits": {"timeout_s": 20}})
        answer = (await swarm.answers(1))["g"]
        reports = {report.task: report for report in answer.subtasks}
        assert (reports["t0"].outcome, reports["t0"].attempts) == ("succeeded", 3)
        assert (reports["t1"].outcome, reports["t1"].attempts) == ("failed", 3)
        assert reports["t1"].reason.startswith("timeout")
        assert answer.outcome == "partial"

    run(story())


def test_a_plan_refused_fails_the_job_with_the_reasons() -> None:
    """What the planner could not make good is told to whoever asked."""

    async def story() -> None:
        refused = PlanRefused(reasons=("duplicate id a", "cycle a -> a"))
        swarm = SwarmInMemory(script=Script({"bad": refused}))
        swarm.worker()
        await swarm.submit({"id": "g", "goal": "bad"})
        answer = (await swarm.answers(1))["g"]
        assert (answer.outcome, answer.rule) == ("failed", "planning")
        assert "duplicate id a; cycle a -> a" in answer.reason

    run(story())


def test_a_deadline_ends_a_job_with_what_is_there() -> None:
    """Also where a sub-task hangs, and where nobody has started the job."""

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        if command.task == "t1":
            await asyncio.Event().wait()
        return await echo(command, attempt)

    async def story() -> None:
        swarm = SwarmInMemory(script=Script(work=work))
        swarm.worker()
        await swarm.submit({"id": "g", "goal": "3", "deadline_s": 30})
        answer = (await swarm.answers(1))["g"]
        assert (answer.outcome, answer.rule) == ("partial", "deadline")
        assert value_of(answer) == {name: {"did": name, "with": []} for name in ("t0", "t2")}
        assert 30_000 <= answer.answered_at - answer.submitted_at < 33_000

    run(story())


def test_a_sub_task_longer_than_any_poll_interval_runs_once() -> None:
    """400 s of work: the worker stays in its group, and nothing runs twice."""

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        await asyncio.sleep(400)
        return Done(result="done")

    async def story() -> None:
        script = Script(work=work)
        swarm = SwarmInMemory(script=script)
        swarm.worker()
        await swarm.submit({"id": "g", "goal": "2", "limits": {"timeout_s": 1000}})
        assert (await swarm.answers(1, within_s=2000))["g"].outcome == "succeeded"
        assert Counter(script.ran).most_common(1)[0][1] == 1

    run(story())


def test_a_result_of_two_megabytes_goes_by_claim_check() -> None:
    """The log never refuses it, its dependant gets it whole, and the answer holds a reference."""
    large = "x" * 2_000_000

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        if command.dep:
            (item,) = command.dep
            assert isinstance(item.result, Inline)
            return Done(result=item.result.value == large)
        return Done(result=large)

    async def story() -> None:
        swarm = SwarmInMemory(script=Script({"two": chain(2)}, work))
        log = swarm.worker()
        await swarm.submit({"id": "g", "goal": "two", "join": {"chunk_bytes": 4_000_000}})
        answer = (await swarm.answers(1))["g"]
        assert isinstance(answer.answer, Reference)
        assert await Resolver(log).resolve(answer.answer) == {"t0": large, "t1": True}
        assert await swarm.records(DEAD_LETTERS) == []

    run(story())


def test_concurrency_of_a_job_and_the_cap_of_the_lanes_are_kept() -> None:
    """Never more at once than the job asks for, nor than the lanes may run."""
    now, most = Counter[str](), Counter[str]()

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        for name in (command.job, "all"):
            now[name] += 1
            most[name] = max(most[name], now[name])
        await asyncio.sleep(1)
        for name in (command.job, "all"):
            now[name] -= 1
        return Done(result=None)

    async def story() -> None:
        swarm = SwarmInMemory(script=Script(work=work), settings=Settings(concurrency=16))
        swarm.worker()
        await swarm.submit({"id": "a", "goal": "60", "limits": {"concurrency": 5}})
        await swarm.submit({"id": "b", "goal": "60"})
        await swarm.answers(2)
        assert most["default/a"] == 5
        assert most["all"] == 16

    run(story())


@pytest.mark.parametrize("how", ["kill", "close", "pause"])
def test_a_worker_lost_in_the_middle_loses_nothing(how: str) -> None:
    """One of two workers is killed, stopped, or asleep for longer than its session: one answer each."""

    async def story() -> None:
        swarm = SwarmInMemory(script=Script({"chain": chain(6)}), settings=Settings(concurrency=20))
        first = swarm.worker()
        swarm.worker()
        for n in range(10):
            await swarm.submit({"id": f"flat{n}", "goal": "30"}, partition=n % 8)
            await swarm.submit({"id": f"chain{n}", "goal": "chain"}, partition=n % 8)
        await asyncio.sleep(2)
        if how == "kill":
            first.kill()
        elif how == "close":
            await first.close()
        else:
            first.pause()
            await asyncio.sleep(20)
            first.resume()
        answers = await swarm.answers(20)
        assert {answer.outcome for answer in answers.values()} == {"succeeded"}
        assert {len(a.subtasks) for name, a in answers.items() if name.startswith("flat")} == {30}

    run(story())


@pytest.mark.parametrize("seed", range(5))
def test_a_log_that_loses_replies_and_commits_loses_no_job(seed: int) -> None:
    """Sends that fail though they landed, commits of unknown outcome, outages: one answer each."""
    faults = Faults(
        delay_s=0.2,
        lost_sends=0.02,
        lost_replies=0.02,
        unknown_commits=0.02,
        short_batches=0.3,
        outages=((10.0, 25.0),),
    )

    async def story() -> None:
        swarm = SwarmInMemory(script=Script({"chain": chain(4)}), seed=seed, faults=faults)
        swarm.worker()
        swarm.worker()
        for n in range(6):
            await swarm.submit_surely({"id": f"flat{n}", "goal": "10"}, partition=n)
            await swarm.submit_surely({"id": f"chain{n}", "goal": "chain"}, partition=n)
        answers = await swarm.answers(12, within_s=3000)
        assert {answer.outcome for answer in answers.values()} == {"succeeded"}

    run(story())


def test_finished_jobs_leave_a_marker_and_nothing_else() -> None:
    """The table keeps our position and one row a finished job, on the partition of its log."""

    async def story() -> None:
        swarm = SwarmInMemory(script=Script({"flat": flat(20)}))
        swarm.worker()
        for n in range(4):
            await swarm.submit({"id": f"g{n}", "goal": "flat"})
        await swarm.answers(4)
        rows: dict[tuple[int, str], bytes | None] = {}
        for record in await swarm.records(JOBS):
            rows[record.partition, (record.key or b"").decode()] = record.value
            if record.value is not None:
                read_row(record)
        left = {key for (_, key), value in rows.items() if value is not None and key != POSITION_KEY}
        assert left == {f"default/g{n}" for n in range(4)}
        events = {record.partition for record in await swarm.records(JOB_EVENTS)}
        assert {partition for (partition, key), value in rows.items() if value} == events

    run(story())
