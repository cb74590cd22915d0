"""A job at its tenant's account: it waits for its turn, and for money of the tenant's day."""

from streams.core.ending import Folded
from streams.core.events import MoneyGiven, PlaceGiven
from streams.core.states import Open


def given(job: Open, event: PlaceGiven | MoneyGiven) -> Folded:
    """The account has answered."""
    del event
    return job, ()
