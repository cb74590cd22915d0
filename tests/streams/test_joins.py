"""Joins on the log in memory: a tree over more than any call holds, votes, quorum, and workers that die."""

import asyncio
from collections import Counter

from agents.joins.parts import in_parts
from agents.ports import Attempt, Done, GaveUp
from streams.core.commands import Judge, MakeAnswer, RunSubTask
from streams.core.values import Inline, Json
from streams.memory_log.virtual_time import run
from streams.settings import Settings
from tests.streams.scripted import Script, Work, echo
from tests.streams.swarm_in_memory import SwarmInMemory
from tests.streams.test_swarm import value_of

LONG = 200_000


class Reducing(Script):
    """Counts which bytes of which results the leaves of a tree are given, and sums up in a few words."""

    def __init__(self, work: Work = echo) -> None:
        super().__init__(work=work)
        self.read: Counter[str] = Counter()
        self.steps: list[str] = []
        self.joined: list[str] = []

    async def answer(self, command: MakeAnswer, attempt: Attempt) -> Done | GaveUp:
        """A summary that names what it is made of, or the answer, which cites them all."""
        names = [item.task for item in command.results]
        if not command.reduce:
            self.joined = names
            return Done(result="all", cites=tuple(names))
        self.steps.append(command.task)
        for item in in_parts(command.results, command.parts):
            assert isinstance(item.result, Inline)
            value = item.result.value
            if item.task.startswith("t"):
                text = value["text"] if isinstance(value, dict) else value
                assert isinstance(text, str)
                self.read[item.task] += len(text)
        await asyncio.sleep(1)
        return Done(result="s" * 20_000, cites=tuple(names))


async def long_results(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
    """A text, of which no two are the same."""
    return Done(result=command.task + "x" * (LONG - len(command.task)))


def test_a_hundred_results_of_200_kb_are_joined_in_a_tree_over_the_death_of_a_worker() -> None:
    """Every byte of every result is read by a leaf once; no call is given more than it may be."""

    async def story() -> None:
        script = Reducing(long_results)
        swarm = SwarmInMemory(script=script, settings=Settings(concurrency=16))
        worker = swarm.worker()
        await swarm.submit({"id": "g", "goal": "100"})
        while len(script.steps) < 20:
            await asyncio.sleep(0.5)
        worker.kill()
        swarm.worker()
        answer = (await swarm.answers(1))["g"]
        names = [f"t{n}" for n in range(100)]
        assert (answer.outcome, answer.rule) == ("succeeded", "all_done")
        assert (list(answer.used), list(answer.cites)) == (names, names)
        # What ran when the worker died ran again; each step has one result.
        twice = Counter(script.steps)
        leaves = [f"~reduce-{n}" for n in range(1, 101)]
        assert set(leaves) < set(twice)
        assert all(1 <= count <= 2 for count in twice.values())
        assert all(script.read[name] == LONG * twice[leaf] for name, leaf in zip(names, leaves, strict=True))
        # 100 summaries of 20 KB are 2 MB, in groups of 13: eight steps more, of 160 KB together.
        assert len(twice) == 108
        assert script.joined == [f"~reduce-{n}" for n in range(101, 109)]

    run(story())


def test_votes_are_counted_by_fingerprints_that_lanes_make() -> None:
    """Case, spaces and punctuation do not matter; who is still at work then is not waited for."""
    said: dict[str, Json] = {
        "candidate-1": "The year is 1969.",
        "candidate-3": "the year  is 1969",
    }

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        assert command.goal == "Which year?"
        if command.task not in said:
            await asyncio.sleep(600)
        return Done(result=said[command.task])

    async def story() -> None:
        swarm = SwarmInMemory(script=Script(work=work))
        swarm.worker()
        join = {"strategy": "vote", "candidates": 3, "counting": "quorum", "quorum": 2}
        for equality in ("normalised", "exact"):
            rule = {**join, "equality": equality}
            await swarm.submit({"id": equality, "goal": "Which year?", "join": rule, "deadline_s": 100})
        answers = await swarm.answers(2)
        won, open_still = answers["normalised"], answers["exact"]
        assert (won.outcome, won.rule, value_of(won)) == ("succeeded", "vote", "The year is 1969.")
        assert [votes.tasks for votes in won.votes] == [("candidate-1", "candidate-3")]
        assert won.answered_at - won.submitted_at < 10_000
        assert (open_still.outcome, open_still.rule) == ("partial", "deadline")
        assert [votes.tasks for votes in open_still.votes] == [("candidate-1",), ("candidate-3",)]
        assert value_of(open_still) == {name: said[name] for name in ("candidate-1", "candidate-3")}

    run(story())


def test_a_quorum_stops_the_rest() -> None:
    """The answer is made of those who were first, and says that the others were stopped."""

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        if command.task in {"t3", "t4"}:
            await asyncio.Event().wait()
        return await echo(command, attempt)

    async def story() -> None:
        swarm = SwarmInMemory(script=Script(work=work))
        swarm.worker()
        await swarm.submit({"id": "g", "goal": "5", "join": {"quorum": 3}})
        answer = (await swarm.answers(1))["g"]
        assert (answer.outcome, answer.rule) == ("succeeded", "quorum")
        assert answer.used == ("t0", "t1", "t2")
        assert {line.task: line.outcome for line in answer.subtasks if line.outcome != "succeeded"} == {
            "t3": "unfinished",
            "t4": "unfinished",
        }

    run(story())


def test_duplicates_contradictions_and_a_judge_on_the_lanes() -> None:
    """Near duplicates are found by what the lanes made of them; the verdicts are events like any other."""
    text = " ".join(f"The boat number {n} lies in the harbour." for n in range(200))
    said: dict[str, Json] = {
        "t0": text,
        "t1": text.replace("number 100", "number one hundred").upper(),
        "t2": "There are no boats.",
        "t3": text + " That is all.",
        "~tie": "There are 200 boats.",
    }

    async def work(command: RunSubTask, attempt: Attempt) -> Done | GaveUp:
        return Done(result=said[command.task])

    class Judging(Script):
        async def judge(self, command: Judge, attempt: Attempt) -> Done | GaveUp:
            assert [item.task for item in command.results] == ["t0", "t2"]
            return Done(result={"contradictions": [{"tasks": ["t0", "t2"], "about": "the boats"}]})

    async def story() -> None:
        swarm = SwarmInMemory(script=Judging(work=work))
        swarm.worker()
        join = {"duplicates": "near", "check": True, "tie_break": True}
        await swarm.submit({"id": "g", "goal": "4", "join": join})
        answer = (await swarm.answers(1))["g"]
        assert (answer.outcome, answer.used) == ("succeeded", ("t0", "t2"))
        assert [(each.task, each.of) for each in answer.duplicates] == [("t1", "t0"), ("t3", "t0")]
        assert [each.tasks for each in answer.contradictions] == [("t0", "t2")]
        value = value_of(answer)
        assert isinstance(value, dict)
        assert list(value) == ["t0", "t2", "~tie"]

    run(story())
