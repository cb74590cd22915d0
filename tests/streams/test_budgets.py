"""A job's budget holds over the whole path: as the endpoint counts it, however it fails and stalls."""

import asyncio
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from agents.configuration.values import DEFAULT, Configuration, Endpoint, Kind, ModelSettings, Prices
from agents.grants import Price, input_tokens
from agents.judge import ModelJudge
from agents.models.prices import own_price
from agents.models.retry import PatientModel
from agents.models.traffic import Traffic
from agents.planner import ModelPlanner
from agents.ports import Crew, ModelError, ModelReply, ModelRequest
from agents.sub_agent import ToolUsingAgent
from agents.synthesis import ModelSynthesiser
from streams.core.commands import Answer
from streams.core.values import NO_USAGE, Usage
from streams.memory_log.virtual_time import run
from streams.settings import Settings
from tests.streams.scripted import NoTools, Script
from tests.streams.swarm_in_memory import SwarmInMemory

PRICE = own_price(Prices(tokens_in=1.0, tokens_out=4.0))
PARTS = 100
KINDS = ("reply",) * 12 + (
    "slow",
    "slow",
    "timeout",
    "malformed",
    "connection",
    "rate_limited",
    "server_error",
)


@dataclass(kw_only=True)
class Account:
    """An endpoint that works for all that it does not refuse, and bills the whole of it.

    Attributes:
        chance: What its calls come to.
        worked: What it will bill.
        in_flight: Calls that it works for at the moment.
    """

    chance: Random
    worked: Usage = NO_USAGE
    in_flight: list[Usage] = field(default_factory=list)

    async def price(self, model: ModelSettings) -> Price | None:
        """The same as it bills."""
        return PRICE

    async def chat(
        self,
        request: ModelRequest,
        *,
        model: ModelSettings,
        key: str,
        timeout_s: float,
        thinking: bool | None,
    ) -> ModelReply:
        """Reply, soon or late or never."""
        kind = self.chance.choice(KINDS)
        if kind in ("rate_limited", "server_error"):
            raise ModelError(kind, "no", retry=True, wait_s=2.0 if kind == "rate_limited" else None)
        cost = Usage(
            calls=1,
            tokens_in=self.chance.randint(input_tokens(request) // 2, input_tokens(request)),
            tokens_out=self.chance.choice((request.max_tokens, self.chance.randint(1, request.max_tokens))),
        )
        cost = replace(cost, usd=PRICE(cost))
        self.worked += cost
        self.in_flight.append(cost)
        try:
            await asyncio.sleep(timeout_s if kind == "timeout" else 30.0 if kind == "slow" else 1.0)
        finally:
            self.in_flight.remove(cost)
        if kind in ("timeout", "malformed", "connection"):
            raise ModelError(kind, "no", retry=True)
        message = {"role": "assistant", "content": "ok"}
        return ModelReply(message=message, finish_reason="stop", usage=cost, model=model.id)


class RealAgents(Script):
    """The agents that a worker has, on one account."""

    def __init__(self, account: Account) -> None:
        super().__init__()
        self._account = account

    def crew(self) -> Crew:
        """Of each worker its own."""
        configuration = Configuration(
            endpoints={DEFAULT: Endpoint(name=DEFAULT)},
            models={"m": ModelSettings(name="m", endpoint=DEFAULT, id="m-1")},
            kinds={DEFAULT: Kind(name=DEFAULT, models=("m",))},
        )
        tools = NoTools()
        model = PatientModel(Traffic(configuration, {DEFAULT: self._account}, start=PARTS))
        return Crew(
            planner=ModelPlanner(model, tools),
            sub_agent=ToolUsingAgent(model, tools),
            synthesiser=ModelSynthesiser(model),
            judge=ModelJudge(model),
            tools=tools,
            close=super().crew().close,
        )


def goal_of(budget: dict[str, float]) -> dict[str, object]:
    """A hundred sub-tasks side by side, and a budget for a part of them."""
    plan = [{"id": f"t{n}", "goal": f"do {n}"} for n in range(PARTS)]
    limits = {"concurrency": PARTS, "timeout_s": 90.0, "max_attempts": 2}
    return {"id": "g", "goal": "all of it", "plan": plan, "budget": budget, "limits": limits}


def played(
    budget: dict[str, float], seed: int, *, kill_after_s: float | None = None
) -> tuple[Account, Usage, Answer]:
    """The account after the job, what was in flight when its worker was killed, and the answer."""

    async def story() -> tuple[Account, Usage, Answer]:
        account = Account(chance=Random(seed))  # noqa: S311 - repeatable
        swarm = SwarmInMemory(
            script=RealAgents(account), settings=Settings(concurrency=PARTS, stall_s=900.0), seed=seed
        )
        worker, killed = swarm.worker(), NO_USAGE
        await swarm.submit(goal_of(budget))
        if kill_after_s is not None:
            await asyncio.sleep(kill_after_s)
            killed = sum(account.in_flight, NO_USAGE)
            worker.kill()
            swarm.worker()
        answers = await swarm.answers(1, within_s=20_000.0)
        await asyncio.sleep(600.0)  # what is out when a job ends goes on spending what it was granted
        return account, killed, answers["g"]

    return run(story())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "budget", [{"calls": 60}, {"tokens": 60_000}, {"usd": 0.15}, {"calls": 70, "tokens": 70_000}]
)
def test_a_hundred_side_by_side_never_spend_more_than_their_budget(
    budget: dict[str, float], seed: int
) -> None:
    """Retries, timeouts and lost replies among it; and there is one answer, of what could be paid for."""
    account, _, answer = played(budget, seed)
    for what, most in budget.items():
        assert getattr(account.worked, what) <= most
        assert getattr(account.worked, what) <= getattr(answer.usage, what) <= most
    assert (answer.outcome, answer.rule) == ("partial", "budget")
    done = [line for line in answer.subtasks if line.outcome == "succeeded"]
    assert len(done) > PARTS / 5


def test_a_budget_that_is_enough_changes_nothing_but_what_is_granted() -> None:
    """All run, and the synthesis has its share."""
    account, _, answer = played({"calls": 3_000}, 1)
    assert answer.rule == "all_done"
    assert answer.value == "ok", "the synthesis wrote it"
    assert account.worked.calls <= answer.usage.calls


def test_a_killed_worker_costs_no_more_than_what_it_had_in_flight() -> None:
    """Nobody knows of those calls any more: they are made again, and the endpoint bills both."""
    for seed in range(2):
        account, killed, answer = played({"calls": 60}, seed, kill_after_s=0.8)
        assert killed.calls > 0
        assert account.worked.calls <= 60 + killed.calls
        assert answer.usage.calls <= 60
