"""What a goal costs: the tokens that were recorded, by the prices of today."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from agents.configuration.values import Configuration, ModelSettings
from agents.models.faults import PUBLIC_URL
from agents.models.prices import Price, find_price, own_price
from agents.simulator.behaviour import MODEL as SIMULATED
from streams.core.commands import Answer
from streams.core.values import NO_USAGE, Usage
from streams.following import readable
from streams.replay.calls import calls
from streams.replay.recording import Recording
from streams.transcript import ModelCalled, ModelFailed
from streams.wire.answers import read_answer

MONTH_DAYS: Final = 30

NOT_RECORDED: Final = ""
"""The model of calls of which only the sum is recorded."""

Prices = Callable[[str, str], Price | None]
"""How to price calls of a model at an endpoint (empty: any); None where nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A model call, or the sum of many where no more is recorded.

    Attributes:
        model: As the endpoint calls it, or :data:`NOT_RECORDED`.
        endpoint: Its configured name, empty where none is recorded.
        simulated: The simulated endpoint answered it.
        failed: It brought no reply, and may have cost something all the same: its usage is an
            estimate, and its model the configured name.
    """

    model: str
    usage: Usage
    endpoint: str = ""
    simulated: bool = False
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What goals took.

    Attributes:
        goals: How many there are; costs are those of one, on average.
        calls: Of all of them.
    """

    goals: int
    calls: tuple[Call, ...]

    @property
    def usage(self) -> Usage:
        """Of all goals together."""
        return total(call.usage for call in self.calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one goal costs at one model, on average.

    Attributes:
        model: As the endpoint calls it, or :data:`NOT_RECORDED`.
        usage: Of all goals together; its ``usd`` is what was reckoned at the time.
        usd: US dollars a goal by the prices of today; None where the price is unknown.
        simulated: No model worked for it: the tokens are those of the simulated endpoint, and free.
        failed: Of the calls without a reply.
    """

    model: str
    usage: Usage
    usd: float | None
    simulated: bool = False
    failed: bool = False


def of_job(recording: Recording) -> Recorded:
    """The model calls that are on a job's journal, or else the sum that its answer tells."""
    entries = [entry for attempt in calls(recording) for entry in attempt.entries]
    replies = [entry.reply for entry in entries if isinstance(entry, ModelCalled)]
    simulated = {reply.endpoint for reply in replies if reply.simulated}
    made = (
        *(
            Call(model=reply.model, usage=reply.usage, endpoint=reply.endpoint, simulated=reply.simulated)
            for reply in replies
        ),
        *(
            Call(
                model=entry.model,
                usage=entry.usage,
                endpoint=entry.endpoint,
                simulated=entry.endpoint in simulated,
                failed=True,
            )
            for entry in entries
            if isinstance(entry, ModelFailed) and entry.usage.calls
        ),
    )
    if not made:
        answers = [answer for record in recording.answers if (answer := readable(read_answer, record))]
        return of_answers(answers) if answers else Recorded(goals=1, calls=())
    return Recorded(goals=1, calls=made)


def of_answers(answers: Sequence[Answer]) -> Recorded:
    """What answers say of their jobs: sums, without the models. The last answer to a goal has all of it."""
    last = {answer.job: answer for answer in answers}
    sums = tuple(Call(model=NOT_RECORDED, usage=answer.usage) for answer in last.values())
    return Recorded(goals=len(last), calls=sums)


def as_it_was(recorded: Recorded, prices: Prices) -> tuple[Cost, ...]:
    """What each model cost, the most calls first."""
    groups: dict[tuple[str, str, bool, bool], list[Call]] = {}
    for call in recorded.calls:
        one = (call.model, call.endpoint, call.simulated, call.failed)
        groups.setdefault(one, []).append(call)
    costs = []
    for (model, endpoint, simulated, failed), group in groups.items():
        usage = total(call.usage for call in group)
        if simulated:
            usd: float | None = 0.0
        elif model == NOT_RECORDED:
            usd = usage.usd / recorded.goals if usage.usd else None
        else:
            usd = _priced(group, prices(model, endpoint), recorded.goals)
        costs.append(Cost(model=model, usage=usage, usd=usd, simulated=simulated, failed=failed))
    return tuple(sorted(costs, key=lambda cost: -cost.usage.calls))


def all_at(model: str, recorded: Recorded, prices: Prices) -> Cost:
    """What it would cost if *model* had read and written the same tokens."""
    return Cost(
        model=model,
        usage=recorded.usage,
        usd=_priced(recorded.calls, prices(model, ""), recorded.goals),
    )


def others(named: Iterable[str], configuration: Configuration) -> tuple[str, ...]:
    """The models to compare with: those *named*, and the configured ones, but no simulated one."""
    configured = (name for name, model in configuration.models.items() if not _is_simulated(model))
    return tuple(filter(None, dict.fromkeys((*named, *configured))))


def _is_simulated(model: ModelSettings) -> bool:
    return model.id.partition("-")[0] == SIMULATED


def _priced(group: Iterable[Call], price: Price | None, goals: int) -> float | None:
    # Call by call: some models cost more a token in long prompts.
    return None if price is None else sum(price(call.usage) for call in group) / goals


def total(usages: Iterable[Usage]) -> Usage:
    """All of them together."""
    return sum(usages, NO_USAGE)


def prices_of(configuration: Configuration) -> Prices:
    """Prices as the configuration has them, else as genai-prices lists them."""
    found: dict[tuple[str, str], Price | None] = {}

    def price(model: str, endpoint: str) -> Price | None:
        if (model, endpoint) not in found:
            found[model, endpoint] = _look_up(model, endpoint, configuration)
        return found[model, endpoint]

    return price


def _look_up(model: str, endpoint: str, configuration: Configuration) -> Price | None:
    settings = settings_of(model, endpoint, configuration)
    if settings is not None and settings.prices is not None:
        return own_price(settings.prices)
    at = configuration.endpoints.get(settings.endpoint if settings is not None else endpoint)
    url = "" if at is None else at.base_url or PUBLIC_URL
    return find_price(settings.id if settings is not None else model, url)


def settings_of(model: str, endpoint: str, configuration: Configuration) -> ModelSettings | None:
    """The configured model that is meant, by its name or by what its endpoint calls it."""
    models = [each for each in configuration.models.values() if endpoint in ("", each.endpoint)]
    named = next((each for each in models if each.name == model), None)
    return named or next((each for each in models if each.id == model), None)
