"""(5) The fold alone, and the orchestrator on a log that is already full."""

import asyncio
import time
from itertools import chain

from bench.figures import Figure, median
from streams.app import quieten_collector
from streams.core.events import Event, JobSubmitted, Planned, SubTaskStarted, SubTaskSucceeded
from streams.core.goal import Goal, Limits, Source
from streams.core.job import absorb
from streams.core.plan import SubTask
from streams.core.states import Job, New
from streams.core.values import ANSWER, PLAN, Inline, Usage
from streams.kafka import admin
from streams.kafka.log import KafkaLog
from streams.orchestrator import Orchestrator
from streams.settings import Settings
from streams.topics import ANSWERS, JOB_EVENTS, partition_of
from streams.wire.events import write_event

JOBS, AT_ONCE = 400, 16
USAGE = Usage(calls=1, tokens_in=300, tokens_out=40)


def history(job: str, subtasks: int = 100) -> list[Event]:
    """All events of one job that goes well."""
    plan = tuple(SubTask(id=f"t{n}", goal=f"Part {n} of the whole") for n in range(subtasks))
    goal = Goal(text=Inline(value="A goal"), digest=job, limits=Limits(concurrency=100))
    source = Source(topic="goals", partition=0, offset=0)
    events: list[Event] = [JobSubmitted(job=job, goal=goal, source=source)]
    for task in (PLAN, *(item.id for item in plan), ANSWER):
        events.append(SubTaskStarted(job=job, task=task, attempt=1, run="run"))
        if task == PLAN:
            events.append(Planned(job=job, task=task, attempt=1, plan=plan, usage=USAGE))
        else:
            result = Inline(value={"found": f"the result of {task}"})
            events.append(
                SubTaskSucceeded(job=job, task=task, attempt=1, result=result, size=40, usage=USAGE)
            )
    return events


async def fold_alone() -> list[Figure]:
    """Events a second of CPU through ``absorb``, in one process, without Kafka or JSON."""
    events = history("default/job")
    rates = []
    for _ in range(5):
        began = time.process_time()
        for _ in range(100):
            job: Job = New()
            for event in events:
                job, _ = absorb(job, event)
        rates.append(100 * len(events) / (time.process_time() - began))
    return [Figure(name="fold", value=median(rates), unit="events/s", floor=50_000, higher=True)]


async def prefilled(servers: str) -> list[Figure]:
    """Events a second from a full log to rows, commands and answers, transactions included."""
    settings = Settings(brokers=servers, prefix=f"bench-fold-{time.time_ns()}.")
    await admin.create(settings)
    jobs, total = JOBS, 0
    async with KafkaLog(settings) as log:
        # As pacing leaves it: about two jobs at a time on each partition, their events in turn.
        for first in range(0, jobs, AT_ONCE):
            histories = [history(f"default/job{number}") for number in range(first, first + AT_ONCE)]
            sent = []
            for event in chain.from_iterable(zip(*histories, strict=True)):
                key, partition = event.job.encode(), partition_of(event.job, settings.lanes)
                sent.append(
                    await log.producer.send(JOB_EVENTS, write_event(event), key=key, partition=partition)
                )
            await asyncio.gather(*sent)
            total += len(sent)
        quieten_collector()  # as a worker does
        answered = 0
        async with asyncio.timeout(300), log.follow(ANSWERS, range(settings.lanes), since=0) as answers:
            began = time.perf_counter()
            running = asyncio.create_task(Orchestrator(log, settings).run())
            async for records in answers:
                answered += sum(b'"outcome":"succeeded"' in (record.value or b"") for record in records)
                if answered >= jobs:
                    break
            took = time.perf_counter() - began
        running.cancel()
        await asyncio.wait([running])
    await admin.delete(settings)
    rate = total / took
    return [
        Figure(
            name="orchestrator on a pre-filled log", value=rate, unit="events/s", floor=20_000, higher=True
        )
    ]
