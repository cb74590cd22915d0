"""A system on the secured Kafka, and what the broker's authoriser says of those who use it."""

import re
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from agents import simulator
from streams.access import VARIABLES, Access
from streams.acls import Acl, acls
from streams.client import Swarm
from streams.kafka import admin
from streams.settings import Settings
from tests.acceptance.conftest import Program, Programs
from tests.secured.kafka import Secured, allow, owner

LANES = 2

_DECISION = re.compile(
    r"Principal = User:(?P<user>\S+) is (?P<what>Allowed|Denied) operation = (?P<operation>\w+) .*"
    r"on resource = (?P<resource>\w+):LITERAL:(?P<name>\S+) for request = .* based on rule (?P<rule>.*)"
)
_RULE = re.compile(r"resourceType=(\w+), resourceName=([^,]+), patternType=(\w+).*operation=(\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the authoriser decided.

    Attributes:
        acl: Resource, name, pattern and operation of the ACL that allowed it; None for the owner, who
            needs none.
    """

    user: str
    operation: str
    resource: str
    name: str
    allowed: bool
    acl: tuple[str, str, str, str] | None


def decisions(log: Path, prefix: str) -> Iterable[Decision]:
    """All decisions on what begins with *prefix*."""
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        found = _DECISION.search(line)
        if found is None or not found["name"].startswith(prefix):
            continue
        rule = _RULE.search(found["rule"])
        yield Decision(
            user=found["user"],
            operation=found["operation"],
            resource=found["resource"],
            name=found["name"],
            allowed=found["what"] == "Allowed",
            acl=None if rule is None else rule.groups(),  # type: ignore[arg-type]
        )


def as_kafka_says(acl: Acl) -> tuple[str, str, str, str]:
    """As the broker's log has it."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", acl.operation).upper()
    return acl.resource.replace("-", "_").upper(), acl.name, acl.pattern.upper(), snake


def environment(access: Access) -> dict[str, str]:
    """The variables that say the same."""
    return {VARIABLES[each.name]: value for each in fields(access) if (value := getattr(access, each.name))}


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Its topics are made, by whoever may; every part has its ACLs and no others.

    Attributes:
        settings: Without any access.
        endpoint: The simulated model, in this process.
    """

    secured: Secured
    settings: Settings
    endpoint: simulator.Simulator
    programs: Programs

    def of(self, user: str, **options: Any) -> Settings:
        """The settings of a user with a password."""
        return replace(self.secured.by_password(user, **options), prefix=self.settings.prefix, lanes=LANES)

    def swarm(self, settings: Settings) -> Swarm:
        """A client."""
        return Swarm(settings.brokers, prefix=settings.prefix, access=settings.access)

    async def worker(self, settings: Settings, **variables: str) -> Program:
        """A worker, as users start it."""
        variables = {
            "OPENAI_BASE_URL": self.endpoint.url,
            "OPENAI_API_KEY": "simulated",
            **environment(settings.access),
            **variables,
        }
        return await self.programs.start("worker", "--json", system=settings, **variables)


@asynccontextmanager
async def system(secured: Secured, programs: Programs, users: dict[str, str]) -> AsyncIterator[System]:
    """A system of its own.

    Args:
        users: The users of the secured Kafka, each with its part.
    """
    prefix = f"{uuid.uuid4().hex[:8]}."
    endpoint = await simulator.start(simulator.Behaviour())
    plain = Settings(brokers=secured.open, prefix=prefix, lanes=LANES, concurrency=10)
    try:
        for user, part in users.items():
            await allow(secured, user, acls(plain, [part]))
        yield System(secured=secured, settings=plain, endpoint=endpoint, programs=programs)
    finally:
        await endpoint.close()
        async with owner(secured):
            await admin.delete(plain)
