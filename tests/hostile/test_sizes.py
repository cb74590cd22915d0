"""Sizes: what is large goes by claim check, comes whole where it is needed, and never jams a partition."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from streams import dead_letters
from streams.claims import Resolver
from streams.core.values import Reference
from streams.log import Headers
from streams.memory_log import Limits
from streams.memory_log.virtual_time import run
from streams.settings import Settings
from streams.topics import ANSWERS, DEAD_LETTERS, GOALS, SUBTASKS
from streams.wire.answers import read_answer
from tests.hostile.large import RESULT_BYTES, Large, large
from tests.hostile.systems import AS_ON_KAFKA
from tests.streams.swarm_in_memory import SwarmInMemory


def system(limits: Limits = AS_ON_KAFKA) -> SwarmInMemory:
    """A worker on one partition, of the log's usual size."""
    swarm = SwarmInMemory(script=Large(work=large), settings=Settings(lanes=1))
    swarm.cluster.limits = limits
    return swarm


@pytest.mark.parametrize("limits", [AS_ON_KAFKA, Limits()], ids=["4 MB", "1 MB"])
def test_a_hundred_results_of_200_kb_are_joined_into_one(limits: Limits) -> None:
    """Twenty megabytes reach the synthesis whole, and no record has more than a few hundred bytes of each."""

    async def story() -> None:
        swarm = system(limits)
        swarm.worker()
        await swarm.submit({"id": "wide", "goal": "100"})
        answer = (await swarm.answers(1))["wide"]
        assert (answer.outcome, answer.rule) == ("succeeded", "all_done")
        assert answer.value == {f"t{n}": RESULT_BYTES for n in range(100)}
        assert max(len(record.value or b"") for record in await swarm.records(SUBTASKS)) < 100_000

    run(story())


def test_results_that_are_not_joined_are_told_by_their_place() -> None:
    """A synthesis that fails still ends in an answer, which can be read."""

    async def story() -> None:
        swarm = system()
        log = swarm.worker()
        await swarm.submit({"id": "g", "goal": "3"})
        answer = (await swarm.answers(1))["g"]
        assert (answer.outcome, answer.rule) == ("partial", "synthesis")
        value = answer.value
        assert isinstance(value, Mapping)
        assert value.keys() == {"t0", "t1", "t2"}
        for name, place in value.items():
            assert isinstance(place, Mapping)
            fields: dict[str, Any] = {**place, "offsets": tuple(place["offsets"])}  # type: ignore[arg-type]
            assert str(await Resolver(log).resolve(Reference(**fields))).startswith(f"{name}:")

    run(story())


@pytest.mark.parametrize("size", [1, 8_000, 200_000, 1_000_000])
def test_a_goal_of_any_size_is_answered(size: int) -> None:
    """By its text, by one value, by many; what the log itself refuses never was a goal."""

    async def story() -> None:
        swarm = system()
        swarm.worker()
        plan = [{"id": "t0", "goal": "10", "input": "all"}]
        for name, value in (("one", "y" * size), ("many", [7] * (size // 2))):
            tasks = plan if name == "one" else [{"id": "t0", "goal": "10", "input": "each"}]
            limits = {"max_subtasks": 5}
            await swarm.submit({"id": name, "goal": "x", "input": value, "plan": tasks, "limits": limits})
        await swarm.submit({"id": "text", "goal": "z" * size, "plan": plan})
        answers = await swarm.answers(3)
        assert {answer.outcome for answer in answers.values()} == (
            {"succeeded"} if size > 1 else {"succeeded", "rejected"}
        )

    run(story())


@pytest.mark.parametrize("count", [1_000, 4_096, 4_097, 20_000])
def test_headers_come_back_or_are_said_to_be_too_many(count: int) -> None:
    """A thousand of them, and as many as there may be; one more is no goal, and is answered all the same."""

    async def story() -> None:
        swarm = system()
        swarm.worker()
        headers: Headers = tuple((f"h{n}", b"%d" % n) for n in range(count))
        await swarm.submit({"id": "g", "goal": "2"}, headers=headers)
        (answer,) = (await swarm.answers(1)).values()
        (record,) = await swarm.records(ANSWERS)
        if count <= 4_096:
            assert (answer.outcome, record.headers) == ("succeeded", headers)
        else:
            assert (answer.outcome, record.headers) == ("rejected", ())
            assert f"{count} headers, at most 4096" in answer.reason

    run(story())


def test_keys_and_values_of_any_size_are_buried_whole() -> None:
    """A key of a megabyte, a value of four, none at all: beside them a goal goes its way."""
    odd: list[tuple[bytes | None, bytes | None]] = [
        (b"k" * 1_000_000, b"\xff"),
        (b"", b"\xff" * 4_190_000),
        (None, None),
        (b"\xff", b""),
        (b"k" * 2_000_000, b"\x00" * 2_000_000),
    ]

    async def story() -> None:
        swarm = system()
        swarm.worker()
        for key, value in odd:
            swarm.cluster.partition(GOALS, 0).append(key, value, (), swarm.cluster.now_ms())
        await swarm.submit({"id": "good", "goal": "2"})
        assert (await swarm.answers(1))["good"].outcome == "succeeded"
        letters = [dead_letters.read(record) for record in await swarm.records(DEAD_LETTERS)]
        kept = {letter.place.offset: (letter.key, letter.value) for letter in letters}
        assert kept == dict(enumerate(odd))
        assert all(letter.lost_bytes is None for letter in letters)

    run(story())


def test_an_answer_of_a_quarter_megabyte_stays_in_its_record() -> None:
    """One that is larger goes by claim check; readers without our client see which it is."""

    async def story() -> None:
        swarm = system()
        log = swarm.worker()
        for size in (1_000, 250_000, 300_000, 2_000_000):
            plan = [{"id": "t0", "goal": str(size)}, {"id": "t1", "goal": "1"}]
            await swarm.submit({"id": f"g{size}", "goal": "x", "plan": plan})
        answers = await swarm.answers(4)
        assert {answer.outcome for answer in answers.values()} == {"succeeded"}
        for record in await swarm.records(ANSWERS):
            fields = orjson.loads(record.value or b"")
            assert ("answer" in fields) != ("answer_ref" in fields)
            await Resolver(log).resolve_answer(read_answer(record))

    run(story())
