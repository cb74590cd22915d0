"""How a job begins that may: with the plan that its goal brings, with its candidates, or with planning."""

from dataclasses import replace

from streams.core.candidates import candidates
from streams.core.ending import Folded
from streams.core.events import Event
from streams.core.moves import first, put
from streams.core.settling import take_plan
from streams.core.states import Open
from streams.core.values import PLAN


def begin(job: Open, event: Event) -> Folded:
    """Begin a job that has nothing yet but its goal; *event* lets it."""
    if plan := job.submitted.plan:
        # From here on the nodes are the plan: the row that keeps the goal need not repeat it.
        return take_plan(replace(job, submitted=replace(job.submitted, plan=())), event, plan)
    if candidacy := candidates(job.submitted.goal):
        return take_plan(job, event, candidacy)
    return put(job, {PLAN: first(job, PLAN)}), ()
