"""An account whose rows are damaged is folded again from its log, and nobody waits for ever."""

import asyncio

import pytest

from agents.configuration.tenants import Tenant
from streams.core.commands import Answer
from streams.core.telling import account_of
from streams.core.values import Grant
from streams.memory_log.virtual_time import run
from streams.topics import JOBS
from tests.streams.test_budgets import Account
from tests.streams.test_tenant_days import LANES, goal_of, running_at_once, swarm_of

KEY = account_of("acme/any")


@pytest.mark.parametrize("value", [b"no row", None])
def test_a_damaged_account_is_mended(value: bytes | None) -> None:
    """Its row is nonsense or gone while jobs run and wait: still one at a time, and each is answered."""

    async def story() -> tuple[Account, dict[str, Answer], int]:
        swarm, account = swarm_of(Tenant(jobs=1, day=Grant(calls=1_000)), 3)
        worker = swarm.worker()
        for number in range(4):
            await swarm.submit(goal_of(number), partition=number % LANES)
        await asyncio.sleep(5.4)
        worker.kill()
        (place,) = {each.partition for each in await swarm.records(JOBS) if each.key == KEY.encode()}
        outside = swarm.cluster.connect("somebody")
        await (await outside.producer.send(JOBS, value, key=KEY.encode(), partition=place))
        swarm.worker()
        answers = await swarm.answers(4, within_s=20_000.0)
        return account, answers, await running_at_once(swarm, answers)

    account, answers, at_once = run(story())
    assert at_once == 1
    assert {answer.rule for answer in answers.values()} == {"all_done"}
    assert account.worked.calls > 0
