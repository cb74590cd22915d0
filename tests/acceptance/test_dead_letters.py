"""Dead letters on a real Kafka, as an operator deals with them."""

from typing import Any

import orjson

from streams.client import Swarm
from streams.core.events import SubTaskStarted
from streams.letters import Wanted, find
from streams.log import Record
from streams.topics import DEAD_LETTERS, GOALS, SUBTASKS
from tests.acceptance.conftest import Program, Programs
from tests.acceptance.running import running
from tests.conftest import NewSystem

POISON = b"\xff no command"
BAD = {"id": "bad", "gaol": "a goal with a mistyped field"}


def as_was(record: Record) -> tuple[object, ...]:
    """What comes back byte for byte."""
    return record.partition, record.key, record.value, record.headers


def printed(program: Program) -> list[dict[str, Any]]:
    """The JSON lines that a command printed."""
    return [orjson.loads(line) for line in program.lines if line.startswith("{")]


async def test_dead_letters_go_back_once_and_their_job_goes_on(
    new_system: NewSystem, programs: Programs
) -> None:
    """A command that nobody can read fails its job: redriven, the job has a second answer, a good one."""
    system = await new_system(lanes=2)

    async def dead_letters(*arguments: str, code: int = 0) -> list[dict[str, Any]]:
        program = await programs.start("dead-letters", *arguments, "--json", system=system)
        assert await program.ended() == code, program.output
        return printed(program)

    async with running(system, programs) as here, Swarm(log=here.log) as swarm:
        await here.worker()
        strict = {"join": {"min_success_ratio": 1.0}, "limits": {"max_attempts": 1}}
        await here.send({"id": "g", "goal": "[[plan 2]] [[slow 3 @2]]", **strict})
        await here.see_events(SubTaskStarted, 1)
        for topic, key, value in ((SUBTASKS, b"default/g/t2/1", POISON), (GOALS, None, orjson.dumps(BAD))):
            await (await here.log.producer.send(topic, value, key=key, partition=1, headers=(("own", b"1"),)))
        first = await swarm.wait("default/g", within_s=60)
        assert (first.outcome, first.revision) == ("failed", 1)
        assert (await swarm.wait("default/bad", within_s=60)).outcome == "rejected"

        listed = await dead_letters("list")
        by_topic = {letter["original"]["topic"]: letter for letter in listed}
        assert by_topic.keys() == {SUBTASKS, GOALS}
        place = by_topic[SUBTASKS]["place"]
        (done,) = await dead_letters("redrive", place)
        assert (done["done"], done["again"]) == (True, False)
        assert (done["mark"]["job"], done["mark"]["revision"]) == ("default/g", 2)
        second = await swarm.wait("default/g", revision=2, within_s=60)
        assert (second.outcome, second.revision) == ("succeeded", 2)
        (again,) = await dead_letters("redrive", place, code=1)
        assert (again["done"], again["again"], again["mark"]["to"]) == (True, True, done["mark"]["to"])

        (goal,) = await dead_letters("redrive", "--topic", GOALS, "--reason", "GAOL", "--yes")
        assert goal["mark"]["to"] is not None
        for topic, value in ((SUBTASKS, POISON), (GOALS, orjson.dumps(BAD))):
            await here.see(lambda seen, value=value: sum(r.value == value for r in seen) == 2, topic)  # type: ignore[misc]
            original, back = [record for record in await here.records(topic) if record.value == value]
            assert as_was(original) == as_was(back)
            assert back.offset == (done if topic == SUBTASKS else goal)["mark"]["to"]

        # Both are as bad as before: they are dead letters again, and dropped now.
        await here.see(lambda seen: len(seen) >= 6, DEAD_LETTERS)  # 4 dead letters, and 2 marks
        assert len(await find(here.log, range(system.lanes), Wanted())) == 2
        dropped = await dead_letters("drop", "--all", "--yes", "--why", "a test of ours", "--by", "ada")
        assert [(each["mark"]["type"], each["mark"]["by"]) for each in dropped] == [("Dropped", "ada")] * 2
        assert await find(here.log, range(system.lanes), Wanted()) == []
        states = [letter["state"] for letter in await dead_letters("list", "--all")]
        assert sorted(states) == ["dropped", "dropped", "redriven", "redriven"]
        answers = [(answer.id, answer.revision) for answer in await swarm.published()]
        assert sorted(answers) == [("bad", 1), ("g", 2)]
