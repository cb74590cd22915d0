"""A job at its tenant's account: it waits for its turn, and for money of the tenant's day."""

from dataclasses import replace

from streams.core.commands import Tell
from streams.core.ending import Folded
from streams.core.events import Event, MoneyAsked, MoneyGiven, PlaceAsked, PlaceGiven, PlaceReturned
from streams.core.leases import first_want
from streams.core.purse import grant_of, more, of
from streams.core.states import Finished, Hold, Job, New, Open
from streams.core.telling import account_of
from streams.core.values import Grant


def enter(job: Job, event: Event) -> Folded:
    """A job that has just been opened: where its tenant has limits it asks for a place before all else."""
    if not isinstance(job, Open) or not job.submitted.goal.rules.limited:
        return job, ()
    before, hold = job.decided.hold, Hold(on="place", since=event.at)
    if before is not None and before.on in ("plan", "answer"):
        hold = replace(before, on="place", since=event.at, then=before.on)
    held = replace(job, decided=replace(job.decided, hold=hold, asked=1, given=0, short="", before=job.usage))
    return held, (Tell(event=place_asked(held)),)


def place_asked(job: Open) -> PlaceAsked:
    """What a job asks for before it begins."""
    goal = job.submitted.goal
    return PlaceAsked(
        job=account_of(job.submitted.job),
        of=job.submitted.job,
        revision=job.revision.number,
        priority=goal.priority,
        since=job.submitted.at,
        jobs=goal.rules.jobs,
        day=goal.rules.day,
        want=first_want(goal),
        parent=goal.parent if goal.asker is not None else None,
    )


def money_asked(job: Open, want: Grant) -> MoneyAsked:
    """What a job asks for that has begun: the asking that its account has not answered."""
    return MoneyAsked(
        job=account_of(job.submitted.job),
        of=job.submitted.job,
        revision=job.revision.number,
        n=job.decided.asked,
        want=want,
    )


def given(job: Open, event: PlaceGiven | MoneyGiven) -> Folded:
    """The account has answered; what it has answered before changes nothing."""
    decided = job.decided
    if event.revision != job.revision.number or not decided.asked:
        return job, ()
    hold = decided.hold
    match event:
        case PlaceGiven(lease=lease):
            if decided.given:
                return job, ()
            if hold is not None and hold.on == "place":
                hold = replace(hold, on=hold.then, since=event.at, then="") if hold.then else None
            return replace(job, decided=replace(decided, hold=hold, given=1, lease=lease)), ()
        case MoneyGiven(n=n, more=gift, reason=reason):
            if n != decided.asked or decided.given == n:
                return job, ()
            if hold is not None and hold.on == "money":
                hold = None
            lease = None if decided.lease is None else grant_of(more(of(decided.lease), of(gift)))
            return replace(job, decided=replace(decided, hold=hold, given=n, lease=lease, short=reason)), ()


def gone(job: Job, event: PlaceGiven) -> Folded:
    """A place for a job that has ended, or never was: its account has not heard of that, or too early."""
    if isinstance(job, New) or (isinstance(job, Finished) and event.revision <= job.revision):
        account = account_of(event.job)
        return job, (
            Tell(event=PlaceReturned(job=account, of=event.job, revision=event.revision, spent=None)),
        )
    return job, ()
