"""Large and hostile goals on a real Kafka, through a worker that is a process of its own."""

import orjson
import pytest

from streams import dead_letters
from streams.claims import Resolver
from streams.core.commands import Answer
from streams.log import Headers, RecordRefused
from streams.topics import ANSWERS, DEAD_LETTERS, GOALS
from tests.acceptance.conftest import Programs
from tests.acceptance.running import Running, running
from tests.conftest import NewSystem
from tests.hostile.large import RESULT_BYTES
from tests.hostile.wire_kafka import batch, send

WORKER = "from tests.hostile.large import main; main()"
HEADERS: Headers = tuple((f"h{n}", b"%d" % n) for n in range(1_000))


async def test_what_is_large_is_answered_and_what_is_hostile_disturbs_nobody(
    new_system: NewSystem, programs: Programs
) -> None:
    """A hundred results of 200 KB joined into one, one of 2 MB, goals of a megabyte, a thousand headers."""
    settings = await new_system(lanes=2, concurrency=20)
    async with running(settings, programs) as here:
        worker = await programs.start(system=settings, code=WORKER)
        await worker.says("large_worker_ready")
        await here.send({"id": "wide", "goal": "100"})
        only = {"goal": "x", "plan": [{"id": "t0", "goal": "2000000", "input": "all"}]}
        await here.send(only | {"id": "two-megabytes"})
        await here.send(only | {"id": "one-value", "input": "y" * 1_000_000}, partition=1)
        await here.send(
            only | {"id": "many", "input": [7] * 400_000, "plan": [{"id": "t", "goal": "9", "input": "each"}]}
        )
        crowded = orjson.dumps({"id": "crowded", "goal": "1"})
        await (await here.log.producer.send(GOALS, crowded, key=b"", partition=0, headers=HEADERS))
        largest = b"\xff" * 4_190_000
        await (await here.log.producer.send(GOALS, largest, key=b"k", partition=0))
        topic = settings.prefix + GOALS
        nameless = batch((b"k" * 1_000_000, b"\xff", (("NAME", b"1"),)), names={b"NAME": b"\xff\xfe\xff\xfe"})
        assert await send(settings.brokers, topic, 1, nameless) == 0
        answers = await here.answers(5)
        assert {answer.outcome for answer in answers.values()} == {"succeeded"}, answers
        assert answers["wide"].value == {f"t{n}": RESULT_BYTES for n in range(100)}
        assert len(str(await whole(here, answers["two-megabytes"]))) == 2_000_000
        (told,) = [r for r in await here.records(ANSWERS) if r.key == b"default/crowded"]
        assert told.headers == HEADERS
        letters = [dead_letters.read(record) for record in await here.records(DEAD_LETTERS)]
        assert {(len(letter.key or b""), letter.value) for letter in letters} == {
            (1, largest),
            (1_000_000, b"\xff"),
        }


async def whole(here: Running, answer: Answer) -> object:
    """The value of an answer, read by its claim check."""
    return (await Resolver(here.log).resolve_answer(answer)).value


async def test_a_record_larger_than_the_topic_is_the_senders_to_deal_with(new_system: NewSystem) -> None:
    """It never was a goal: Kafka says so at once."""
    settings = await new_system(lanes=1)
    async with running(settings, Programs()) as here:
        with pytest.raises(RecordRefused, match="goals"):
            await (await here.log.producer.send(GOALS, bytes(4_300_000), key=b"", partition=0))
