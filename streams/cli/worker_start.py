"""What a worker makes sure of before it takes any goal."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final, TypeVar

import structlog

from agents.configuration.building import with_model
from agents.configuration.problems import nearest
from agents.configuration.values import DEFAULT, Configuration, Endpoint
from agents.ports import ModelError
from streams.cli.endpoint import Listing, advice, list_models, variables
from streams.cli.exits import Exit, Stop
from streams.kafka import admin
from streams.kafka.allowed import missing
from streams.log import LogUnavailable, NotAllowed
from streams.settings import Settings

T = TypeVar("T")

AGAIN_S: Final = 0.5
"""Seconds between two tries to reach what is not there yet."""

SHOWN: Final = 50
"""Models of an endpoint that the log names."""


async def ready(settings: Settings, *, wait_s: float) -> Settings:
    """Wait for Kafka and an endpoint, check the topics, choose the model; the settings with it.

    Raises:
        Stop: topics are missing or wrong, something is not allowed, or there is no model to use.
        LogUnavailable: no broker in *wait_s* seconds.
        NotAllowed: the brokers do not let us in.
    """
    ends = asyncio.get_running_loop().time() + wait_s
    if lacking := await _patiently(lambda: missing(settings, "worker"), ends):
        told = "\n".join(f"  {acl.operation} {acl.resource} {acl.name} ({acl.why})" for acl in lacking)
        raise Stop(
            f"Kafka at {settings.brokers} does not let this worker do what it has to:\n{told}\n"
            "to do: `anabranch acls worker --commands` prints how to allow it",
            Exit.POOR,
        )
    problems = await _patiently(lambda: admin.check(settings), ends)
    if problems:
        told = "\n".join(f"  {each.topic} {each.what}; to do: {each.remedy}" for each in problems)
        raise Stop(f"the topics at {settings.brokers} are not right:\n{told}", Exit.POOR)
    return await with_models(settings, ends)


async def _patiently(ask: Callable[[], Awaitable[T]], ends: float) -> T:
    """Ask until there is an answer, or until *ends* by the loop's time."""
    loop = asyncio.get_running_loop()
    told = False
    while True:
        try:
            return await ask()
        except (LogUnavailable, ModelError) as error:
            lasting = isinstance(error, NotAllowed) or (isinstance(error, ModelError) and not error.retry)
            if lasting or loop.time() + AGAIN_S > ends:
                raise
            if not told:
                left = round(ends - loop.time(), 1)
                structlog.get_logger().warning("waiting_at_start", reason=str(error), seconds_left=left)
                told = True
            await asyncio.sleep(AGAIN_S)


async def with_models(settings: Settings, ends: float) -> Settings:
    """The settings with a model where goals name none, after a look at what the endpoints have."""
    configuration = settings.configuration
    asked = [each for each in configuration.endpoints.values() if _can_be_asked(each)]
    if not asked:
        raise Stop(_no_key(configuration), Exit.USAGE)
    answers = await _ask_all(asked, ends)
    listings = {name: answer for name, answer in answers.items() if isinstance(answer, Listing)}
    open_ = configuration.kinds[DEFAULT].models[0] == ""
    errors = {name: answer for name, answer in answers.items() if isinstance(answer, ModelError)}
    if not listings and (open_ or all(error.kind == "bad_key" for error in errors.values())):
        told = (
            f"{error.reason}; to do: {advice(configuration.endpoints[name], error)}"
            for name, error in errors.items()
        )
        raise Stop("\n".join(told), Exit.POOR)
    _tell(configuration, answers)
    if not open_:
        return settings
    (listing,) = listings.values()  # several endpoints have models by name
    if len(listing.models) != 1:
        raise Stop(f"which model? Set ANABRANCH_MODEL or --model; {nearest('', listing.models)}", Exit.USAGE)
    if settings.configured is None:
        return replace(settings, model=listing.models[0])
    return replace(settings, configured=with_model(configuration, listing.models[0]))


def _can_be_asked(endpoint: Endpoint) -> bool:
    """Without a key OpenAI's own, where no address is set, says nothing."""
    return bool(endpoint.base_url or endpoint.keys)


def _no_key(configuration: Configuration) -> str:
    if configuration.path:
        told = "; ".join(f"set {variables(each)}" for each in configuration.endpoints.values())
        return f"{configuration.path}: no endpoint has a key: {told}; `anabranch doctor` checks them"
    return (
        "there is no model: set OPENAI_API_KEY (and OPENAI_BASE_URL for another endpoint than OpenAI's), "
        "or run a simulated one by `anabranch model`; `anabranch doctor` checks them"
    )


async def _ask_all(endpoints: list[Endpoint], ends: float) -> Mapping[str, Listing | ModelError]:
    """What each endpoint has, by its name; waits for one of them until *ends*."""
    answers: dict[str, Listing | ModelError] = {}

    async def ask() -> None:
        found = await asyncio.gather(*map(_ask, endpoints))
        answers.update(zip((each.name for each in endpoints), found, strict=True))
        errors = [answer for answer in found if isinstance(answer, ModelError)]
        if len(errors) == len(found):
            raise next((error for error in errors if error.retry), errors[0])

    with suppress(ModelError):  # they are among the answers
        await _patiently(ask, ends)
    return answers


async def _ask(endpoint: Endpoint) -> Listing | ModelError:
    """With the first of its keys that it takes."""
    refused: ModelError | None = None
    for key in endpoint.keys or ("",):
        try:
            return await list_models(endpoint, key)
        except ModelError as error:
            refused = error
            if error.kind not in {"bad_key", "quota"}:
                break
            if len(endpoint.keys) > 1:
                todo = advice(endpoint, error, key)
                structlog.get_logger().warning("key_refused", reason=error.reason, to_do=todo)
    assert refused is not None
    return refused


def _tell(configuration: Configuration, answers: Mapping[str, Listing | ModelError]) -> None:
    """What is there, and what is missing."""
    log = structlog.get_logger()
    for name, answer in answers.items():
        endpoint = configuration.endpoints[name]
        if isinstance(answer, ModelError):
            # It may be back before the first call, or have no list of its models at all.
            log.warning("models_unknown", endpoint=name, reason=answer.reason, to_do=advice(endpoint, answer))
            continue
        log.info("models_listed", endpoint=name, models=answer.models[:SHOWN], count=len(answer.models))
        for model in configuration.models.values():
            if model.endpoint == name and model.id and model.id not in answer.models:
                hint = nearest(model.id, answer.models)
                log.warning("model_not_listed", endpoint=name, model=model.id, hint=hint)
    for name, endpoint in configuration.endpoints.items():
        if name not in answers or (endpoint.key_variables and not endpoint.keys and name != DEFAULT):
            log.warning("endpoint_without_key", endpoint=name, to_do=f"set {variables(endpoint)}")
