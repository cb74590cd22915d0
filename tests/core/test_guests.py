"""Laws of the guests at an account: a line that never changes gives the same turns as a sorted list."""

from hypothesis import given, settings

from streams.core.guests import Guest, Guests
from streams.core.line import Order
from streams.core.purse import NONE, Purse, more, of
from streams.core.values import Grant, JobId
from tests.core.histories import Choices, choices

ORDERS: tuple[Order, ...] = ("priority", "age")


def a_guest(made: Choices) -> Guest:
    """One of a few jobs, with a place or without."""
    begun = made.below(3) == 2
    number, revision = made.below(12), 1 + made.below(2)
    return Guest(
        job=f"acme/g{number}",
        revision=revision,
        priority=(number + revision) % 3,
        since=(number * revision) % 5,
        begun=begun,
        lease=made.of((None, Grant(calls=2), Grant(tokens=5, usd=0.5))) if begun else None,
        want=made.of((None, Grant(calls=1))),
        inside=begun and made.below(4) == 3,
    )


def first_of(known: dict[JobId, Guest], order: Order) -> Guest | None:
    """Who comes first, by looking at all of them."""
    waiting = [guest for guest in known.values() if not guest.begun]
    ranked = order == "priority"
    return min(
        waiting, key=lambda guest: (-guest.priority if ranked else 0, guest.since, guest.job), default=None
    )


@settings(max_examples=40)
@given(choices(400))
def test_guests_are_a_mapping_with_a_line(made: Choices) -> None:
    """Whoever comes, begins, comes again and leaves; and the guests of before are still as they were."""
    known: dict[JobId, Guest] = {}
    guests = start = Guests()
    for _ in range(30):
        before, was = guests, dict(known)
        guest = a_guest(made)
        if made.below(4) == 3:
            guests = guests.without(guest.job)
            known.pop(guest.job, None)
        else:
            guests = guests.with_(guest)
            known[guest.job] = guest
        assert guests == known == dict(guests)
        assert before == was
        assert dict(guests.changed(before)) == {
            job: known.get(job) for job in {**was, **known} if was.get(job) is not known.get(job)
        }
        begun = [each for each in known.values() if each.begun]
        assert (len(guests), guests.begun, guests.waiting) == (
            len(known),
            len(begun),
            len(known) - len(begun),
        )
        assert guests.places == sum(not each.inside for each in begun)
        assert guests.holding == sum(each.lease is not None for each in begun)
        assert set(guests.asking) == {each.job for each in begun if each.want is not None}
        assert guests.leased == leased(begun)
        for order in ORDERS:
            first, shorter = guests.first(order)
            assert first is first_of(known, order)
            assert shorter == guests
            if made.below(2):
                guests = shorter
    assert dict(guests.changed(start)) == known
    assert Guests.of(known.values()) == guests


def leased(begun: list[Guest]) -> Purse:
    """What all of them have."""
    total = NONE
    for guest in begun:
        if guest.lease is not None:
            calls, tokens, usd = of(guest.lease)
            total = more(total, (calls or 0, tokens or 0, usd or 0))
    return total


def test_a_line_forgets_who_has_left_it() -> None:
    """However many come and go, it is no longer than twice those who wait, and some."""
    guests = Guests()
    for number in range(500):
        guests = guests.with_(Guest(job=f"acme/g{number}", revision=1, priority=number % 10, since=number))
        if number >= 10:
            first, guests = guests.first("priority")
            assert first is not None
            guests = guests.without(first.job)
    _, guests = guests.first("age")
    assert guests.waiting == 10
    assert guests.line.entries < 100
