"""Time on a real Kafka, as the model endpoint sees it: stopped calls, a hedge that wins, a take-over."""

from agents import simulator
from agents.simulator.counters import Call
from streams.core.commands import RunSubTask, StopAttempt
from streams.core.events import STOPPED, SubTaskFailed
from streams.core.values import Json
from streams.topics import ANSWERS, SUBTASKS
from streams.transcript import CallId
from streams.wire.answers import read_answer
from streams.wire.commands import read_command
from streams.wire.events import read_event
from tests.acceptance.conftest import Programs
from tests.acceptance.running import Running, running
from tests.conftest import NewSystem

SLOTS = 4
TASKS = 12
OUT = 2 * SLOTS
"""Commands that the orchestrator has out at once."""

SOON_S = 20.0
"""Long before anything else would end a call that hangs; a quiet machine takes a fraction of a second."""

LATE: dict[str, Json] = {
    "id": "late",
    "goal": "Do what nobody can do",
    "plan": [{"id": f"t{n}", "goal": "Do it [[hang]]"} for n in range(TASKS)],
    "deadline_s": 3.0,
}
HEDGED: dict[str, Json] = {
    "id": "hedged",
    "goal": "Do twelve things",
    "plan": [{"id": f"t{n}", "goal": f"Do it {n}" + " [[straggle 200]]" * (n == 0)} for n in range(TASKS)],
    "hedge": {"share": 0.05, "floor_s": 0.5},
}
TAKEN_OVER: dict[str, Json] = {
    "id": "taken-over",
    "goal": "Do one thing",
    "plan": [{"id": "only", "kind": "count", "goal": "Do it in time [[straggle 200]]"}],
    "limits": {"timeouts": {"count": 1.0}},
}


def calls_of(here: Running, name: str) -> dict[str, list[Call]]:
    """What a job asked of the endpoint, by sub-task."""
    found: dict[str, list[Call]] = {}
    for call in here.endpoint.counters.log()["calls"]:
        read = CallId.read(call.call_id)
        if read is not None and read.job == f"default/{name}":
            found.setdefault(read.task, []).append(call)
    return found


async def test_time_on_a_real_kafka(new_system: NewSystem, programs: Programs) -> None:
    """What a job no longer needs is cancelled, and what waits never begins; slow ones are overtaken."""
    settings = await new_system(lanes=2, concurrency=SLOTS)
    async with running(settings, programs, simulator.Behaviour(hang_s=300.0)) as here:
        await here.worker()
        await here.send(LATE)
        late = (await here.answers(1))["late"]
        await here.see(lambda seen: sum(_is_stopped(read_event(each)) for each in seen) >= OUT)
        asked = calls_of(here, "late")
        assert len(asked) == SLOTS, "what waited for a slot never began"
        for (call,) in asked.values():
            assert call.status == "left"
            assert call.seconds is not None
            assert call.at + call.seconds < late.answered_at / 1000 + SOON_S

        await here.send(HEDGED, partition=1)
        await here.send(TAKEN_OVER)
        await here.see(lambda seen: len(seen) >= 4, ANSWERS)
        told = {answer.id: answer for answer in map(read_answer, await here.records(ANSWERS))}
        hedged, taken_over = told["hedged"], told["taken-over"]
        assert hedged.outcome == "succeeded"
        assert [line.task for line in hedged.subtasks if line.hedged] == ["t0"]
        first, second = calls_of(here, "hedged")["t0"], calls_of(here, "hedged")["~hedge-1"]
        assert [call.status for call in (*first, *second)] == ["left", "200"]
        assert [(line.task, line.attempts) for line in taken_over.subtasks] == [("only", 2)]
        orders = [(each.partition, read_command(each)) for each in await here.records(SUBTASKS)]
        lanes = [lane for lane, each in orders if isinstance(each, RunSubTask) and each.task == "only"]
        assert len(set(lanes)) == 2, "another lane takes over"
        stopped = [each for _, each in orders if isinstance(each, StopAttempt)]
        assert {each.task for each in stopped if each.job == "default/hedged"} == {"t0"}
        assert len([each for each in stopped if each.job == "default/late"]) == OUT


def _is_stopped(event: object) -> bool:
    return isinstance(event, SubTaskFailed) and event.kind == STOPPED
