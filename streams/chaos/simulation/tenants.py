"""What the tenants of lives may do."""

from dataclasses import replace
from typing import Final

from agents.configuration.tenants import Tenant
from agents.configuration.values import Configuration, one_endpoint
from agents.simulator.behaviour import MODEL
from streams.core.values import Grant

FEW: Final = "few"
"""Two of its jobs run at once, the others wait their turn."""

POOR: Final = "poor"
"""Its day does not pay for much: what its jobs come to depends on which of them is first."""


def configured() -> Configuration:
    """As ``anabranch.toml`` would say it."""
    tenants = {
        FEW: Tenant(name=FEW, jobs=2),
        POOR: Tenant(name=POOR, jobs=3, day=Grant(calls=24)),
    }
    return replace(one_endpoint(base_url="", api_key="", model=MODEL), tenants=tenants)
