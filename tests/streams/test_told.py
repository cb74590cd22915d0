"""What a group has told to be done: an answer that is none is not taken for one."""

from collections.abc import Mapping

from aiokafka import TopicPartition
from aiokafka.structs import OffsetAndMetadata

from streams.kafka.told import offsets_told
from streams.memory_log.virtual_time import run

A, B = TopicPartition("goals", 0), TopicPartition("goals", 1)


class Broker:
    """Answers in the order given, the last one for ever."""

    def __init__(self, *answers: Mapping[TopicPartition, int]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def list_consumer_group_offsets(
        self, group_id: str, *, partitions: list[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        return {place: OffsetAndMetadata(offset, "") for place, offset in answer.items()}


def test_a_coordinator_on_its_way_is_asked_again() -> None:
    broker = Broker({}, {A: 3}, {A: 4, B: -1})
    assert run(offsets_told(broker, "agents", (A, B))) == {A: 4}
    assert broker.asked == 3


def test_a_group_that_told_nothing_has_told_nothing() -> None:
    assert run(offsets_told(Broker({A: -1, B: -1}), "agents", (A, B))) == {}
