"""Who may do what on Kafka: the ACLs that each part of a system needs, and not one more.

Kafka lets whoever may read or write a topic describe it, too, and whoever may write any topic have
an idempotent producer (KIP-679, since 2.8), so neither stands here. A test runs a system with
exactly these and reads off the broker that each was used and none was missing.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from streams.settings import Settings
from streams.topics import (
    ANSWERS,
    DEAD_LETTERS,
    GOALS,
    JOB_EVENTS,
    JOBS,
    SUBTASKS,
    TRANSCRIPTS,
    topics,
)

Resource: TypeAlias = Literal["topic", "group", "transactional-id"]
Operation: TypeAlias = Literal["Read", "Write", "Create", "Describe", "DescribeConfigs"]

PARTS: Final = {
    "worker": "runs intake, orchestrator and lanes",
    "submitter": "sends goals",
    "reader": "reads answers",
    "watcher": "follows jobs: `anabranch watch`, and with `submitter` and `reader` `anabranch submit --wait`",
    "operator": "makes and checks topics, looks after dead letters",
    "auditor": "reads everything: `anabranch export` and `replay`",
}
"""Everybody who has to do with a system, and what they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acl:
    """Something that a part must be allowed.

    Attributes:
        part: One of :data:`PARTS`.
        resource: What kind of thing.
        name: Its name, or with *prefixed* how its name begins.
        operation: As Kafka calls it.
        why: What for, and where a worker needs it, which of its own parts.
    """

    part: str
    resource: Resource
    name: str
    operation: Operation
    why: str
    prefixed: bool = False

    @property
    def pattern(self) -> str:
        """Kafka's pattern type."""
        return "prefixed" if self.prefixed else "literal"


def acls(settings: Settings, parts: Iterable[str] = tuple(PARTS)) -> tuple[Acl, ...]:
    """The ACLs of these parts of a system, each once a part."""
    every = (*_worker(settings), *_others(settings))
    return tuple(acl for part in parts for acl in every if acl.part == part)


def commands(settings: Settings, granted: Iterable[Acl], principal: str) -> Iterator[str]:
    """The lines of ``kafka-acls.sh`` that give these to *principal*."""
    where = f"kafka-acls.sh --bootstrap-server {settings.brokers}"
    if settings.access.protocol != "PLAINTEXT":
        where += " --command-config admin.properties"
    lines: dict[tuple[Resource, bool, tuple[Operation, ...]], list[str]] = {}
    named: dict[tuple[Resource, bool, str], list[Operation]] = {}
    for acl in granted:
        named.setdefault((acl.resource, acl.prefixed, acl.name), []).append(acl.operation)
    for (resource, prefixed, name), operations in named.items():
        lines.setdefault((resource, prefixed, tuple(sorted(operations))), []).append(name)
    for (resource, prefixed, allowed), names in lines.items():
        pattern = " --resource-pattern-type prefixed" if prefixed else ""
        may = "".join(f" --operation {operation}" for operation in allowed)
        on = "".join(f" --{resource} {shlex.quote(name)}" for name in names)
        yield f"{where} --add --allow-principal {shlex.quote(principal)}{may}{pattern}{on}"


def _worker(settings: Settings) -> Iterator[Acl]:
    def topic(name: str, operation: Operation, why: str) -> Acl:
        return Acl(part="worker", resource="topic", name=settings.prefix + name, operation=operation, why=why)

    def group(name: str, why: str) -> Acl:
        return Acl(part="worker", resource="group", name=settings.prefix + name, operation="Read", why=why)

    yield topic(GOALS, "Read", "intake: takes goals in")
    yield topic(GOALS, "Write", "lanes: child goals of sub-agents")
    yield topic(JOB_EVENTS, "Read", "orchestrator: folds them; lanes: results by claim check")
    yield topic(JOB_EVENTS, "Write", "intake: jobs; lanes: how attempts went; orchestrator: what is due")
    yield topic(SUBTASKS, "Read", "lanes: run them")
    yield topic(SUBTASKS, "Write", "orchestrator: releases commands")
    yield topic(TRANSCRIPTS, "Read", "lanes: go on from the journal, values by claim check")
    yield topic(TRANSCRIPTS, "Write", "lanes: the journal; intake and lanes: values by claim check")
    yield topic(JOBS, "Read", "orchestrator: restores the table; lanes: what is outstanding")
    yield topic(JOBS, "Write", "orchestrator: the table")
    yield topic(ANSWERS, "Read", "orchestrator: what was answered, where the table was lost")
    yield topic(ANSWERS, "Write", "orchestrator: answers")
    yield topic(DEAD_LETTERS, "Read", "orchestrator: what was buried, where the table was lost")
    yield topic(DEAD_LETTERS, "Write", "intake, orchestrator and lanes: what cannot be read")
    yield from _on_all(settings, "worker", "DescribeConfigs", "at its start: are the topics right?")
    yield group("agents", "intake and lanes: share the partitions among workers")
    yield group("orchestrator", "orchestrator: shares the partitions among workers")
    yield Acl(
        part="worker",
        resource="transactional-id",
        name=f"{settings.prefix}orchestrator-",
        prefixed=True,
        operation="Write",
        why="orchestrator: one transactional id a partition",
    )


def _others(settings: Settings) -> Iterator[Acl]:
    def topic(part: str, name: str, operation: Operation, why: str) -> Acl:
        return Acl(part=part, resource="topic", name=settings.prefix + name, operation=operation, why=why)

    count = "the number of partitions"
    yield topic("submitter", GOALS, "Write", "sends goals, and approves, rejects and cancels")
    yield topic("submitter", JOB_EVENTS, "Describe", count)
    yield topic("reader", ANSWERS, "Read", "reads answers")
    yield topic("reader", TRANSCRIPTS, "Read", "answers over 256 KB, which are there by claim check")
    yield topic("reader", JOB_EVENTS, "Describe", count)
    yield topic("watcher", JOB_EVENTS, "Read", "what happens to jobs")
    yield topic("watcher", TRANSCRIPTS, "Read", "values over 8 KB, which are there by claim check")
    yield from _on_all(settings, "operator", "Create", "`anabranch topics create`")
    yield from _on_all(settings, "operator", "Describe", "`anabranch topics check`")
    yield from _on_all(settings, "operator", "DescribeConfigs", "`anabranch topics check`")
    yield topic("operator", DEAD_LETTERS, "Read", "`anabranch dead-letters list` and `show`")
    yield topic("operator", DEAD_LETTERS, "Write", "`redrive` and `drop`: marks say what became of them")
    for back in (GOALS, SUBTASKS, JOB_EVENTS):
        yield topic("operator", back, "Write", "`redrive`: sends them back; opens jobs again")
        yield topic("operator", back, "Read", "`redrive`: values that were left out; what became of a job")
    yield topic("operator", JOBS, "Read", "`redrive`: how a job ended; `waiting`: what waits")
    yield Acl(
        part="operator",
        resource="transactional-id",
        name=f"{settings.prefix}redrive-",
        prefixed=True,
        operation="Write",
        why="`redrive` and `drop`: one transactional id a partition",
    )
    yield from _on_all(settings, "auditor", "Read", "reads all")


def _on_all(settings: Settings, part: str, operation: Operation, why: str) -> Iterator[Acl]:
    """On every topic of the system: by its prefix, where it has one."""
    names: Sequence[str] = [settings.prefix] if settings.prefix else [each.name for each in topics(settings)]
    for name in names:
        yield Acl(
            part=part,
            resource="topic",
            name=name,
            operation=operation,
            why=why,
            prefixed=bool(settings.prefix),
        )
