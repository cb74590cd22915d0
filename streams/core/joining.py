"""The join: from the results of a job's sub-tasks to its answer.

Its steps follow from the state: what is left out as a duplicate, the check for contradictions, the one
that settles them, the judge of votes and candidates, the tree of what is too much for one call, and
``answer``. Each is begun when those before it have ended, so a job that is restored goes on from there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from streams.core.answering import CHECK, JUDGE, TIE, sources, succeeded, used
from streams.core.commands import Part
from streams.core.duplicates import duplicates
from streams.core.ending import Folded, finish
from streams.core.events import Event
from streams.core.money import over_budget
from streams.core.moves import first, put
from streams.core.reduction import next_level, reductions
from streams.core.states import Failed, Open, Role, Stopped, Succeeded
from streams.core.stepping import begin, step_id
from streams.core.values import ANSWER, TaskId
from streams.core.verdicts import alike, contradictions
from streams.core.votes import counted, groups, ruling

_ONCE: Final[Mapping[TaskId, Role]] = {CHECK: "check", TIE: "tie", JUDGE: "judge"}

OF_THE_JOIN: Final[frozenset[Role]] = frozenset({"check", "tie", "judge", "reduce"})
"""What steps of the join are for."""


def join(job: Open, event: Event) -> Folded:
    """Begin the join, or go on with it: *event* brought the last result it waited for."""
    if ANSWER in job.states or any(_runs(job, name) for name in job.steps):
        return job, ()
    rule = job.submitted.goal.join
    if rule.strategy == "vote":
        return _vote(job, event)
    job = _begun(job)
    if rule.check and len(used(job)) > 1:
        if CHECK not in job.states:
            return _step(job, event, CHECK, used(job))
        job = _checked(job)
        if rule.tie_break and job.decided.contradictions and TIE not in job.states:
            return _settle(job, event)
    match rule.strategy:
        case "rank":
            return _rank(job, event)
        case "concat" | "table":
            return put(job, {ANSWER: first(job, ANSWER)}), ()
        case _:
            return _synthesize(job, event)


def _begun(job: Open) -> Open:
    """The job once it is decided which results are joined."""
    if job.decided.used:
        return job
    there = succeeded(job)
    out = duplicates(((name, _result(job, name).fingerprint) for name in there), job.submitted.goal.join)
    left = {each.task for each in out}
    kept = tuple(name for name in there if name not in left)
    return replace(job, decided=replace(job.decided, used=kept, duplicates=out))


def _checked(job: Open) -> Open:
    found = contradictions(job.states.get(CHECK), used(job))
    if found == job.decided.contradictions:
        return job
    return replace(job, decided=replace(job.decided, contradictions=found))


def _settle(job: Open, event: Event) -> Folded:
    """One more sub-task is to find out which of the results that contradict each other hold."""
    tasks = [*dict.fromkeys(name for each in job.decided.contradictions for name in each.tasks)]
    text = (
        f"The results of the sub-tasks {', '.join(tasks)} contradict each other, as {CHECK} says. "
        "Find out which of them holds, and say why."
    )
    return _step(job, event, TIE, [*tasks, CHECK], text)


def _synthesize(job: Open, event: Event) -> Folded:
    level = next_level(job, sources(job))
    if level and (spent := over_budget(job)):
        return finish(job, event, rule="budget", reason=spent)
    number = len(reductions(job))
    for group in level:
        number += 1
        job = begin(job, step_id("reduce", number), "reduce", group)
    return (job if level else put(job, {ANSWER: first(job, ANSWER)})), ()


def _rank(job: Open, event: Event) -> Folded:
    candidates = used(job)
    if len(candidates) > 1 and JUDGE not in job.states:
        # With what settled a contradiction among them, which the order of candidates leaves out.
        return _step(job, event, JUDGE, sources(job))
    if job.submitted.goal.join.keep == 1:
        return finish(job, event, rule="all_done")
    return put(job, {ANSWER: first(job, ANSWER)}), ()


def _vote(job: Open, event: Event) -> Folded:
    """All have voted who will."""
    rule = job.submitted.goal.join
    reason = ""
    if rule.equality == "exact":
        said = groups(job, by="exact")
    else:
        said = groups(job, by="normalised")
        if rule.equality == "judged" and len(said) > 1:
            voters = succeeded(job)
            if JUDGE not in job.states:
                return _step(job, event, JUDGE, voters)
            judged = alike(job.states[JUDGE], voters)
            reason = "" if judged else ", by their words alone, since no judge has compared them"
            said = judged or said
    count = counted(job, said)
    how = ruling(rule, count)
    return finish(voted(job, said), event, rule=how, reason=_why(how, job, count.votes[0].weight) + reason)


def voted(job: Open, said: Sequence[Sequence[TaskId]]) -> Open:
    """The job once its votes are decided, so that the answer tells them."""
    return replace(job, decided=replace(job.decided, votes=counted(job, said).votes))


def _why(how: str, job: Open, most: float) -> str:
    rule = job.submitted.goal.join
    needed = f"{rule.quorum} votes" if rule.counting == "quorum" else "more than half"
    if how == "tie":
        return f"several answers have the most votes, {most:g} each"
    return f"no answer has {needed}: the most is {most:g}"


def _step(job: Open, event: Event, name: TaskId, of: Sequence[TaskId], text: str = "") -> Folded:
    """Begin a step of the join, where there is money left for it."""
    if spent := over_budget(job):
        return finish(job, event, rule="budget", reason=spent)
    return begin(job, name, _ONCE[name], tuple(Part(task=each) for each in of), text), ()


def _runs(job: Open, name: TaskId) -> bool:
    ended = isinstance(job.states[name], Succeeded | Failed | Stopped)
    return job.steps[name].role in OF_THE_JOIN and not ended


def _result(job: Open, name: TaskId) -> Succeeded:
    state = job.states[name]
    assert isinstance(state, Succeeded)
    return state
