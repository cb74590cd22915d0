"""Events and answers with what travels by claim check put in its place, for whoever reads them."""

from dataclasses import replace
from typing import overload

import structlog

from streams.claims import Resolver, ValueLost
from streams.core.commands import Answer
from streams.core.events import Event, JobSubmitted, SubTaskSucceeded
from streams.core.values import Inline, Value


@overload
async def resolved(resolver: Resolver, value: Answer) -> Answer: ...
@overload
async def resolved(resolver: Resolver, value: Event) -> Event: ...
async def resolved(resolver: Resolver, value: Answer | Event) -> Answer | Event:
    """The value with what is past its retention left as it is, with a warning.

    Raises:
        LogUnavailable: something could not be read in time.
    """
    try:
        match value:
            case Answer():
                return await resolver.resolve_answer(value)
            case JobSubmitted(goal=goal):
                text = await _inline(resolver, goal.text)
                given = None if goal.input is None else await _inline(resolver, goal.input)
                return replace(value, goal=replace(goal, text=text, input=given))
            case SubTaskSucceeded(result=result):
                return replace(value, result=await _inline(resolver, result))
            case _:
                return value
    except ValueLost as error:
        structlog.get_logger().warning("value_lost", job=value.job, reason=str(error))
        return value


async def _inline(resolver: Resolver, value: Value) -> Inline:
    return value if isinstance(value, Inline) else Inline(value=await resolver.resolve(value))
