"""Accounts: what a tenant may have under way and spend in a day, over all partitions.

An account is folded like a job, on the partition that its own key has, and all that its tenant's jobs ask
for is decided there, one asking after the other. Of money it gives **leases**: what is leased and what is
spent are never more than the day together, so that jobs on other partitions can spend without asking anybody.

Words between jobs and accounts come at least once, and those of two partitions in any order. A word that was
heard changes nothing, but is answered again. An asking that comes after its job has ended makes a guest of
nobody: the answer reaches the ended job, which says that it has ended.
"""

from dataclasses import replace
from itertools import islice
from typing import Final

from streams.core.commands import Bury, Effect, Tell
from streams.core.ending import Folded
from streams.core.events import MoneyAsked, MoneyGiven, PlaceAsked, PlaceGiven, PlaceReturned
from streams.core.guests import Guest
from streams.core.leases import nothing, to_begin, to_go_on, what_is_left, why_short
from streams.core.money import estimate
from streams.core.purse import Purse, covers, grant_of, more, of
from streams.core.states import Account, Job, New
from streams.core.telling import account_of
from streams.core.values import NO_USAGE, Grant, Usage

DAY_MS: Final = 86_400_000

OLDEST_EACH: Final = 8
"""Each place of so many goes to who has waited longest, whatever their priority: nobody starves."""


def keep(job: Job, event: PlaceAsked | MoneyAsked | PlaceReturned) -> Folded:
    """Let a job of the tenant begin, give it more money, or take back what it leaves over."""
    if account_of(event.of) != event.job:
        return job, (Bury(reason=f"{event.of} is no job of the tenant of {event.job}"),)
    if isinstance(job, New):
        if isinstance(event, PlaceAsked):
            job = Account(key=event.job)
        else:
            return job, (_unknown(event),) if isinstance(event, MoneyAsked) else ()
    if not isinstance(job, Account):
        return job, ()
    account = on_its_day(job, event.at)
    told: tuple[Effect, ...] = ()
    match event:
        case PlaceAsked():
            account, told = _place_asked(account, event)
        case MoneyAsked():
            account, told = _money_asked(account, event)
        case PlaceReturned():
            account = _returned(account, event)
    account, given = _serve(account)
    return account, (*told, *given)


def on_its_day(account: Account, at: int) -> Account:
    """The account at this broker time (milliseconds since 1970): of a new day nothing is spent yet.

    Leases stay: what jobs spend of them after midnight is spent of the new day.
    """
    day = at // DAY_MS
    return replace(account, day=day, spent=NO_USAGE) if day > account.day else account


def waits(job: Job) -> bool:
    """Whether somebody waits at an account: for a place, or for money."""
    return isinstance(job, Account) and bool(job.guests.waiting or job.guests.asking)


def woken(account: Account, at: int, chance: float) -> PlaceAsked | PlaceGiven | None:
    """What an account at which somebody waits is told now and then, so that nobody waits for nothing.

    On a new day, which it must see to begin it, that somebody who waits still does; else one of those who
    have a place that they have it: one that has ended will say so, in case that was lost.

    Args:
        at: Broker time, milliseconds since 1970.
        chance: A number from 0, below 1: which of them.
    """
    if at // DAY_MS > account.day:
        first, _ = account.guests.first("age")
        guest = first or next(iter(account.guests.asking.values()), None)
        return None if guest is None else _asked_for(account, guest)
    begun = account.guests.begun
    if begun == 0:
        return None
    which = int(chance * begun)
    guest = next(islice((each for each in account.guests.values() if each.begun), which, None))
    return PlaceGiven(job=guest.job, revision=guest.revision, lease=guest.lease)


def _asked_for(account: Account, guest: Guest) -> PlaceAsked:
    return PlaceAsked(
        job=account.key,
        of=guest.job,
        revision=guest.revision,
        priority=guest.priority,
        since=guest.since,
        jobs=account.jobs,
        day=account.limit,
        want=guest.want,
        parent=guest.parent,
    )


def _place_asked(account: Account, event: PlaceAsked) -> tuple[Account, tuple[Effect, ...]]:
    if event.since > account.told_at or not (account.told_at or account.guests):
        account = replace(account, jobs=event.jobs, limit=event.day, told_at=event.since)
    guest = account.guests.get(event.of)
    if guest is not None and guest.revision >= event.revision:
        again = guest.revision == event.revision and guest.begun and guest.asked == 1
        return account, (_place_given(guest),) if again else ()
    if guest is not None:  # it was opened again: that it had ended was never told
        account = _without(account, guest, _whole(guest))
    guest = Guest(
        job=event.of,
        revision=event.revision,
        priority=event.priority,
        since=event.since,
        want=event.want,
        parent=event.parent,
    )
    parent = account.guests.get(event.parent) if event.parent else None
    if parent is None or not parent.begun:
        return _with(account, guest), ()
    # Its parent waits for it, and has a place: to wait for a place or for money would be to wait for itself.
    lease = None if account.limit is None else what_is_left(account, guest.want)
    return _begin(account, replace(guest, inside=True), lease)


def _money_asked(account: Account, event: MoneyAsked) -> tuple[Account, tuple[Effect, ...]]:
    guest = account.guests.get(event.of)
    if guest is None or not guest.begun or guest.revision < event.revision:
        return account, (_unknown(event),)
    if guest.revision > event.revision or event.n < guest.asked:
        return account, ()
    if event.n == guest.asked:
        return account, (_money_given(guest),) if guest.gave is not None else ()
    guest = replace(guest, asked=event.n, want=event.want, gave=None)
    if account.limit is None:  # there was one when its goal came in
        guest = _given(guest, of(event.want), "")
        return _with(account, guest), (_money_given(guest),)
    return _with(account, guest), ()


def _returned(account: Account, event: PlaceReturned) -> Account:
    guest = account.guests.get(event.of)
    if guest is None or guest.revision > event.revision:
        return account
    if not guest.begun:  # it never had anything to spend; what it had under this name before is settled
        return _without(account, guest, NO_USAGE)
    if guest.revision < event.revision or event.spent is None:
        return _without(account, guest, _whole(guest))
    return _without(account, guest, event.spent)


def _serve(account: Account) -> tuple[Account, tuple[Effect, ...]]:
    """Give what can be given: first to jobs that have begun, then to those that wait for a place."""
    told: list[Effect] = []
    for guest in sorted(account.guests.asking.values(), key=_order):
        assert guest.want is not None
        more_ = to_go_on(account, guest.want)
        if more_ is not None:
            short = not covers(more_, of(guest.want))
            given = _given(guest, more_, why_short(account) if short else "")
        elif guest.inside:
            given = _refused(account, guest)
        else:
            continue
        account = _with(account, given)
        told.append(_money_given(given))
    while True:
        account, first, lease = _next(account)
        if first is None:
            break
        account, place = _begin(replace(account, turns=account.turns + 1), first, lease)
        told += place
    asking = account.guests.asking
    if asking and len(asking) == account.guests.holding:
        # Nobody is left who could give anything back: the last one goes on with what it has.
        last = _refused(account, max(asking.values(), key=_order))
        account = _with(account, last)
        told.append(_money_given(last))
    return account, tuple(told)


def _next(account: Account) -> tuple[Account, Guest | None, Purse | None]:
    """Who begins now, and with which lease; None where nobody can.

    Who comes first is waited for: a job that needs less does not go before one that needs more.
    """
    if account.guests.waiting == 0 or (account.jobs is not None and account.guests.places >= account.jobs):
        return account, None, None
    if account.limit is not None and account.guests.asking:
        return account, None, None
    oldest = account.turns % OLDEST_EACH == OLDEST_EACH - 1
    guest, guests = account.guests.first("age" if oldest else "priority")
    if guests is not account.guests:
        account = replace(account, guests=guests)
    if guest is None or account.limit is None:
        return account, guest, None
    lease = to_begin(account, guest.want)
    return account, guest if lease is not None else None, lease


def _begin(account: Account, guest: Guest, lease: Purse | None) -> tuple[Account, tuple[Effect, ...]]:
    begun = replace(guest, begun=True, lease=None if lease is None else grant_of(lease), want=None)
    return _with(account, begun), (_place_given(begun),)


def _given(guest: Guest, purse: Purse, reason: str) -> Guest:
    lease = None if guest.lease is None else grant_of(more(of(guest.lease), purse))
    return replace(guest, lease=lease, want=None, gave=grant_of(purse), reason=reason)


def _refused(account: Account, guest: Guest) -> Guest:
    return replace(guest, want=None, gave=nothing(account), reason=why_short(account))


def _with(account: Account, guest: Guest) -> Account:
    return replace(account, guests=account.guests.with_(guest))


def _without(account: Account, guest: Guest, spent: Usage) -> Account:
    return replace(account, guests=account.guests.without(guest.job), spent=account.spent + spent)


def _whole(guest: Guest) -> Usage:
    """What a guest may have spent of whom nobody told: all that was leased to it."""
    return NO_USAGE if guest.lease is None else estimate(guest.lease)


def _order(guest: Guest) -> tuple[int, int, str]:
    return -guest.priority, guest.since, guest.job


def _place_given(guest: Guest) -> Tell:
    return Tell(event=PlaceGiven(job=guest.job, revision=guest.revision, lease=guest.lease))


def _money_given(guest: Guest) -> Tell:
    assert guest.gave is not None
    return Tell(
        event=MoneyGiven(
            job=guest.job, revision=guest.revision, n=guest.asked, more=guest.gave, reason=guest.reason
        )
    )


def _unknown(event: MoneyAsked) -> Tell:
    """To a job that has no place here: it ends with what it has."""
    more_ = Grant(
        calls=None if event.want.calls is None else 0,
        tokens=None if event.want.tokens is None else 0,
        usd=None if event.want.usd is None else 0.0,
    )
    reason = "its tenant's account does not know it any more"
    return Tell(event=MoneyGiven(job=event.of, revision=event.revision, n=event.n, more=more_, reason=reason))
