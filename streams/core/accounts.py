"""Accounts: what a tenant may have under way and spend in a day, over all partitions."""

from streams.core.ending import Folded
from streams.core.events import MoneyAsked, PlaceAsked, PlaceReturned
from streams.core.states import Job


def keep(job: Job, event: PlaceAsked | MoneyAsked | PlaceReturned) -> Folded:
    """Let a job of the tenant begin, give it more money, or take back what it leaves over."""
    del event
    return job, ()
