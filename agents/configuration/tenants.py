"""What tenants may do, who may submit for them, and what their goals must pass: of ``anabranch.toml``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from streams.core.values import Grant, Json

ALL: Final = "*"
"""Among the tenants of a principal or a key: every one."""

WHOLE: Final = frozenset({"answer_schema", "row"})
"""Fields that are JSON Schemas: of two the one counts, and not a mixture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwanted:
    """Goals that are refused.

    Attributes:
        pattern: What stands in their words, as the regular expressions of Rust's ``regex``.
        reason: What their senders are told.
    """

    pattern: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What a goal must pass before anything is spent on it.

    Attributes:
        refuse: What is refused by its words.
        longest: Characters that its words may have. None: any number.
        model: A model looks at it, and may refuse it.
    """

    refuse: tuple[Unwanted, ...] = ()
    longest: int | None = None
    model: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """What a tenant may do, over all partitions and workers.

    Attributes:
        name: The tenant; empty: all that have no table of their own.
        weight: Its share of turns, in proportion to the others'.
        jobs: Its jobs that run at once. None: any number.
        in_flight: Its sub-agents that run at once. None: any number.
        requests_per_second: Its calls of models. None: any number.
        day: What its jobs may spend in a day (UTC). None: any amount.
        gate: What its goals must pass.
        defaults: Fields of its goals where they say nothing, in a goal's own JSON; those for all tenants and
            the timeouts of kinds among them.
    """

    name: str = ""
    weight: int = 1
    jobs: int | None = None
    in_flight: int | None = None
    requests_per_second: float | None = None
    day: Grant | None = None
    gate: Gate = Gate()
    defaults: Mapping[str, Json] = field(default_factory=dict)


UNLIMITED: Final = Tenant()
"""Any tenant, where nothing is configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryKey:
    """A key that goals are signed with.

    Attributes:
        name: By which a signature names it.
        secret: What signs; never shown.
        tenants: Whose goals it may sign; ``*``: everybody's.
    """

    name: str
    secret: str = field(repr=False)
    tenants: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRules:
    """Who may submit goals for whom. A goal comes in by either of both ways.

    Attributes:
        header: The header in which a trusted gateway says who sent a goal. Empty: none is trusted.
        principals: For each who stands in it, the tenants; ``*``: all.
        keys: By name.
        worker: The name of the key that workers sign goals with which their sub-agents submit.
    """

    header: str = ""
    principals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keys: Mapping[str, EntryKey] = field(default_factory=dict)
    worker: str = ""


def merged(under: Mapping[str, Json], over: Mapping[str, Json]) -> dict[str, Json]:
    """What *over* says, and where it says nothing (null is nothing) what *under* does; objects key by key.

    A JSON Schema is one value.
    """
    found = dict(under)
    for name, value in over.items():
        below = found.get(name)
        if isinstance(value, Mapping) and isinstance(below, Mapping) and name not in WHOLE:
            found[name] = merged(below, value)
        elif value is not None:
            found[name] = value
    return found
