"""What a worker makes sure of before it takes any goal."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, TypeVar

import structlog

from agents.ports import ModelError
from streams.cli.endpoint import advice, list_models, nearest
from streams.cli.exits import Exit, Stop
from streams.kafka import admin
from streams.kafka.allowed import missing
from streams.log import LogUnavailable, NotAllowed
from streams.settings import Settings

T = TypeVar("T")

AGAIN_S: Final = 0.5
"""Seconds between two tries to reach what is not there yet."""


async def ready(settings: Settings, *, wait_s: float) -> Settings:
    """Wait for Kafka and the endpoint, check the topics, choose the model; the settings with it.

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
    return replace(settings, model=await _model(settings, ends))


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


async def _model(settings: Settings, ends: float) -> str:
    """The model to use where goals name none: the configured one, or the endpoint's only one."""
    if not settings.base_url and not settings.api_key:
        raise Stop(
            "there is no model: set OPENAI_API_KEY (and OPENAI_BASE_URL for another endpoint than OpenAI's), "
            "or run a simulated one by `anabranch model`; `anabranch doctor` checks them",
            Exit.USAGE,
        )
    log = structlog.get_logger()
    try:
        listing = await _patiently(lambda: list_models(settings), ends)
    except ModelError as error:
        todo = advice(settings, error)
        if error.kind == "bad_key" or not settings.model:
            raise Stop(f"{error.reason}; to do: {todo}", Exit.POOR) from None
        # It may be back before the first call, or have no list of its models at all.
        log.warning("models_unknown", reason=error.reason, to_do=todo)
        return settings.model
    if settings.model:
        if settings.model not in listing.models:
            log.warning(
                "model_not_listed", model=settings.model, hint=nearest(settings.model, listing.models)
            )
        return settings.model
    if len(listing.models) == 1:
        return listing.models[0]
    raise Stop(f"which model? Set ANABRANCH_MODEL or --model; {nearest('', listing.models)}", Exit.USAGE)
