"""What people say to a job: that it may go on, that it may not, that it is to end."""

from streams.core.ending import Folded
from streams.core.events import ApprovalGiven, ApprovalRefused, JobCancelled
from streams.core.states import Open


def hear(job: Open, event: ApprovalGiven | ApprovalRefused | JobCancelled) -> Folded:
    """Do what a person says."""
    del event
    return job, ()
