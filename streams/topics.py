"""The topics of a system: their names, where a job's records stand on them, and their settings.

Nothing here talks to Kafka: ``streams.kafka.admin`` makes these topics and checks them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from streams.core.results import JOB_EVENTS, partition_of
from streams.settings import Settings

__all__ = [
    "ANSWERS",
    "DEAD_LETTERS",
    "GOALS",
    "JOBS",
    "JOB_EVENTS",
    "MAX_LETTER_BYTES",
    "MAX_RECORD_BYTES",
    "SUBTASKS",
    "TRANSCRIPTS",
    "Topic",
    "partition_of",
    "topics",
]

GOALS = "goals"
SUBTASKS = "subtasks"
TRANSCRIPTS = "transcripts"
JOBS = "jobs"
ANSWERS = "answers"
DEAD_LETTERS = "dead-letters"

MAX_RECORD_BYTES = 4_194_304
"""Bytes a record batch may have on topics that carry values: a full set of inline values (256 KB)
many times over, and the largest goal that intake has to read before it can refuse it."""

MAX_LETTER_BYTES = MAX_RECORD_BYTES + 65_536
"""Bytes of a dead letter: a record as large as its topic takes, and what is said of it."""

_DAY_MS = 86_400_000
_SEGMENT_BYTES = 268_435_456


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """How one topic must be.

    Attributes:
        name: Without the system's prefix.
        partitions: Fixed for the life of a system: a job's partition follows from it.
        config: Kafka's own names and values.
    """

    name: str
    partitions: int
    config: Mapping[str, str]


def topics(settings: Settings, *, replication: int = 1) -> tuple[Topic, ...]:
    """Every topic of a system.

    Args:
        replication: Replicas of each partition. With 3 or more, a write counts once two have it,
            so that one broker may be lost; with 1 or 2 it could not go on without each of them.
    """
    in_sync = "1" if replication <= 2 else "2"  # noqa: PLR2004 - explained above

    def topic(name: str, **config: str | int) -> Topic:
        shared = {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "max.message.bytes": str(MAX_RECORD_BYTES),
            "message.timestamp.type": "CreateTime",
            "min.insync.replicas": in_sync,
            "segment.bytes": str(_SEGMENT_BYTES),
        }
        own = {key.replace("_", "."): str(value) for key, value in config.items()}
        return Topic(name=name, partitions=settings.lanes, config=MappingProxyType(shared | own))

    return (
        # Whoever sends goals may compress them. Unpacked by the broker they are what they are there:
        # 4 MB of zeros made small would be gigabytes for whoever reads them.
        # By the broker's time, since a goal stamped 1970 would be past its retention before it is read.
        topic(
            GOALS,
            retention_ms=7 * _DAY_MS,
            compression_type="uncompressed",
            message_timestamp_type="LogAppendTime",
        ),
        # One clock for all events of a partition: the fold sees the broker's time only.
        topic(JOB_EVENTS, retention_ms=30 * _DAY_MS, message_timestamp_type="LogAppendTime"),
        # A command's append time is where the reading of its journal begins.
        topic(SUBTASKS, retention_ms=7 * _DAY_MS, message_timestamp_type="LogAppendTime"),
        topic(TRANSCRIPTS, retention_ms=30 * _DAY_MS, message_timestamp_type="LogAppendTime"),
        # Restoring a partition reads all of it. Only closed segments are compacted, so they are
        # small and close after an hour; a tenth of superseded rows is worth a compaction. A
        # tombstone stays for an hour, longer than any restore takes: each finished job leaves one
        # for its goal and one for each sub-task, and a day's of them would be most of what is read.
        topic(
            JOBS,
            cleanup_policy="compact",
            segment_bytes=33_554_432,
            segment_ms=3_600_000,
            min_cleanable_dirty_ratio="0.1",
            delete_retention_ms=3_600_000,
        ),
        topic(ANSWERS, retention_ms=30 * _DAY_MS),
        topic(DEAD_LETTERS, retention_ms=30 * _DAY_MS, max_message_bytes=MAX_LETTER_BYTES),
    )
