"""The whole path on the log in memory: goals in, one answer each out."""

from streams.core.values import Inline
from tests.streams.swarm_in_memory import SwarmInMemory
from tests.streams.virtual_time import run


def test_a_goal_becomes_one_answer() -> None:
    """A plan of three sub-tasks: all of them run, and the answer joins their results."""

    async def story() -> None:
        swarm = SwarmInMemory()
        swarm.worker()
        await swarm.submit({"id": "g", "goal": "3"})
        answers = await swarm.answers(1)
        answer = answers["g"]
        assert answer.outcome == "succeeded"
        assert isinstance(answer.answer, Inline)
        assert answer.answer.value == {name: {"did": name, "with": []} for name in ("t0", "t1", "t2")}
        assert answer.usage.calls == 3

    run(story())
