"""Jobs that wait for a person or for a child job, on a real Kafka through a worker with one slot."""

import asyncio

from agents import simulator
from streams.client import Swarm
from streams.core.events import SubTaskSuspended
from streams.core.values import Json
from streams.held import Waits, waiting
from streams.topics import JOB_EVENTS
from streams.wire.events import read_event
from tests.acceptance.conftest import Programs
from tests.acceptance.running import running
from tests.conftest import NewSystem

ONE: list[dict[str, Json]] = [{"id": "a", "goal": "Count the boats"}]
CALL: list[dict[str, Json]] = [{"id": "a", "tool": "noop", "args": {}}]
WITHIN_S = 60.0


async def waits(swarm: Swarm, *due: tuple[str, str]) -> dict[tuple[str, str], Waits]:
    """Wait until these jobs wait for these things, and say all that waits."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            found: dict[tuple[str, str], Waits] = {
                (each.job, each.on): each async for each in waiting(swarm.log, swarm.lanes)
            }
            if set(due) <= set(found):
                return found
            await asyncio.sleep(0.2)


async def test_jobs_wait_for_people_and_for_their_children(new_system: NewSystem, programs: Programs) -> None:
    """Plan, call and answer approved or not, a job cancelled, a child answered; nothing holds the slot."""
    settings = await new_system(lanes=2, concurrency=1)
    async with (
        running(settings, programs, simulator.Behaviour()) as here,
        Swarm(settings.brokers, prefix=settings.prefix) as swarm,
    ):
        worker = await here.worker()
        await swarm.submit("x", id="plan", plan=ONE, approve=["plan"])
        await swarm.submit("x", id="call", plan=CALL, tools=["noop"], approve=["tools"])
        await swarm.submit("x", id="no", plan=CALL, tools=["noop"], approve=["tools"])
        await swarm.submit("x", id="answer", plan=ONE, approve=["answer"])
        await swarm.submit("x", id="late", plan=ONE, approve=["answer"], deadline_s=4)
        await swarm.submit("x", id="cancel", plan=[{"id": "a", "goal": "Wait [[slow 600]]"}])
        found = await waits(
            swarm,
            ("default/plan", "plan"),
            ("default/call", "tools"),
            ("default/no", "tools"),
            ("default/answer", "answer"),
        )
        assert found["default/call", "tools"].tool == "noop"
        await swarm.cancel("default/cancel", reason="ordered twice")
        cancelled = await swarm.wait("default/cancel", within_s=WITHIN_S)
        assert (cancelled.outcome, cancelled.reason) == ("cancelled", "cancelled: ordered twice")

        # The slot is free, and what waits goes on at another worker.
        await worker.kill()
        await here.worker()
        parent = await swarm.answer(
            "Hand it over",
            id="parent",
            plan=[{"id": "a", "goal": "Hand it over", "input": "all"}],
            input=[{"goal": "Count the boats in one harbour [[plan 1]]"}],
            tools=["submit_goal"],
            within_s=WITHIN_S,
        )
        assert parent.outcome == "succeeded"
        await swarm.approve("default/plan", what="plan", by="ada")
        await swarm.approve("default/call", by="ada")
        await swarm.approve("default/answer", by="ada")
        await swarm.reject("default/no", reason="not now", by="eve")
        names = ("plan", "call", "answer", "no", "late")
        answers = {name: await swarm.wait(f"default/{name}", within_s=WITHIN_S) for name in names}
        assert {name: (each.outcome, each.rule, each.by) for name, each in answers.items()} == {
            "plan": ("succeeded", "all_done", "ada (claimed)"),
            "call": ("succeeded", "all_done", "ada (claimed)"),
            "answer": ("succeeded", "all_done", "ada (claimed)"),
            "no": ("rejected", "not_approved", "eve (claimed)"),
            "late": ("failed", "deadline", ""),
        }
        assert answers["call"].value == "ok"
        assert answers["late"].value is None
        events = [read_event(record) for record in await here.records(JOB_EVENTS)]
        children = {e.child for e in events if isinstance(e, SubTaskSuspended) and e.on == "child"}
        [child] = [each for each in children if each is not None]
        answered = await swarm.wait(child, within_s=WITHIN_S)
        assert (answered.outcome, answered.parent) == ("succeeded", "default/parent")
