"""Slots: never more than there are, nobody forgotten, tenants in turn, and who comes back goes first."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from streams.memory_log.virtual_time import run
from streams.slots import AWAY, COME_BACK, Slots


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that happens to the slots.

    Attributes:
        which: Of those whom it can happen to, counted round and round.
        amid: The next step comes before anyone has noticed this one.
    """

    what: Literal["come", "come back", "leave", "cancel", "capacity"]
    which: int
    amid: bool


STEPS = st.lists(
    st.builds(
        Step,
        what=st.sampled_from(("come", "come", "come back", "leave", "leave", "cancel", "capacity")),
        which=st.integers(0, 5),
        amid=st.booleans(),
    ),
    max_size=60,
)


@dataclass(eq=False, kw_only=True)
class Guest:
    """One who wants a slot, and keeps it until told to go."""

    job: str
    back: bool = False
    priority: int = 0
    holds: bool = False
    go: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def tenant(self) -> str:
        return self.job.partition("/")[0]


class Most:
    """So many of the tenant ``a`` may have a slot at once, and any number of others."""

    def __init__(self, most: int | None) -> None:
        self.most, self.now = most, 0

    def full(self, tenant: str) -> bool:
        return tenant == "a" and self.most is not None and self.now >= self.most

    def began(self, tenant: str) -> None:
        self.now += tenant == "a"

    def ended(self, tenant: str) -> None:
        self.now -= tenant == "a"


class House:
    """Slots and all who came; whoever is in it is looked after."""

    def __init__(self, capacity: int, most: int | None = None) -> None:
        self.capacity = capacity
        self.places = Most(most)
        self.slots = Slots(lambda: self.capacity, self.places)
        self.tasks: dict[Guest, asyncio.Task[None]] = {}
        self.order: list[Guest] = []

    def come(self, job: str, *, priority: int = 0, back: bool = False) -> Guest:
        guest = Guest(job=job, priority=priority, back=back)
        self.tasks[guest] = asyncio.create_task(self._stay(guest))
        return guest

    async def _stay(self, guest: Guest) -> None:
        if guest.back:
            self.slots.away[guest.tenant] += 1  # as after stepping out
        await self.slots.acquire(guest.job, priority=guest.priority, back=guest.back)
        guest.holds = True
        self.order.append(guest)
        try:
            await guest.go.wait()
        finally:
            guest.holds = False
            self.slots.release(guest.job)

    def here(self, *, holding: bool) -> list[Guest]:
        return [guest for guest, task in self.tasks.items() if not task.done() and guest.holds is holding]

    async def settle(self) -> None:
        for _ in range(8):
            await asyncio.sleep(0)

    def happens(self, step: Step) -> None:
        leaving = self.here(holding=True)
        inside = leaving + self.here(holding=False)
        match step.what:
            case "come" | "come back":
                job = f"{'ab'[step.which % 2]}/{step.which}"
                self.come(job, priority=step.which % 3, back=step.what == "come back")
            case "leave" if leaving:
                leaving[step.which % len(leaving)].go.set()
            case "cancel" if inside:
                self.tasks[inside[step.which % len(inside)]].cancel()
            case "capacity":
                self.capacity = step.which
                self.slots.pump()
            case _:
                pass


@given(steps=STEPS, most=st.sampled_from((None, 1, 2)))
def test_never_more_than_there_are_and_nobody_lost(steps: list[Step], most: int | None) -> None:
    """Whoever comes, goes or is cancelled, in whichever moment: free slots and waiting guests never meet."""

    async def story() -> None:
        house = House(2, most)
        back: list[Guest] = []
        seen = 0
        for step in steps:
            before = house.slots.taken
            house.happens(step)
            assert house.slots.taken <= max(before, house.capacity)
            if step.amid:
                continue
            await house.settle()
            assert house.slots.taken == len(house.here(holding=True))
            waiting = house.here(holding=False)
            away = Counter(guest.tenant for guest in waiting if guest.back)
            assert house.slots.away == away
            holding = [guest.tenant for guest in house.here(holding=True)]
            assert holding.count("a") == house.places.now
            assert most is None or house.places.now <= most
            may = [
                guest
                for guest in waiting
                if (guest.back or away[guest.tenant] < AWAY * house.capacity)
                and not house.places.full(guest.tenant)
            ]
            assert not may or house.slots.taken >= house.capacity
            assert not house.slots.stuck
            begun = {guest.tenant for guest in house.order[seen:] if not guest.back}
            assert not any(guest in waiting and guest.tenant in begun for guest in back)
            back, seen = [guest for guest in waiting if guest.back], len(house.order)
        house.capacity = 1
        house.slots.pump()
        for _ in range(len(house.tasks) + 1):
            for guest in house.here(holding=True):
                guest.go.set()
            await house.settle()
        assert all(task.done() for task in house.tasks.values())
        assert (house.slots.taken, house.slots.waiting, house.slots.away) == (0, 0, {})
        house.slots.pump()
        assert not house.slots._lines

    run(story())


async def order_of(*coming: Guest) -> list[str]:
    """The jobs of those who come at once to one slot, in the order in which they get it."""
    house = House(1)
    house.come("nobody/first")
    await house.settle()
    for guest in coming:
        house.come(guest.job, priority=guest.priority, back=guest.back)
    await house.settle()
    while house.here(holding=True):
        for guest in house.here(holding=True):
            guest.go.set()
        await house.settle()
    assert house.slots.taken == 0
    return [guest.job + " again" * guest.back for guest in house.order[1:]]


GUESTS = st.lists(
    st.builds(
        Guest,
        job=st.builds("{}/{}".format, st.sampled_from("abc"), st.integers(0, 3)),
        back=st.sampled_from((False, False, False, True)),
        priority=st.integers(0, 2),
    ),
    max_size=40,
)


@given(GUESTS)
def test_nobody_starves(coming: list[Guest]) -> None:
    """Between two turns of a tenant every other that waits has one, and so have jobs that are as urgent."""
    for guest in coming:  # a job has one priority
        guest.priority = COME_BACK if guest.back else ord(guest.job[-1]) % 3

    async def story() -> None:
        house = House(1)
        house.come("nobody/first")
        await house.settle()
        left = [house.come(each.job, priority=each.priority, back=each.back) for each in coming]
        await house.settle()
        served: list[Guest] = []
        while left:
            for guest in house.here(holding=True):
                guest.go.set()
            await house.settle()
            (chosen,) = house.here(holding=True)
            own = [guest for guest in left if guest.tenant == chosen.tenant]
            assert chosen.priority == max(guest.priority for guest in own)
            equal = [guest for guest in own if guest.priority == chosen.priority]
            assert chosen is next(guest for guest in equal if chosen.back or guest.job == chosen.job)
            since = since_last(served, [guest.tenant == chosen.tenant for guest in served]) or left
            assert {guest.tenant for guest in left} - {chosen.tenant} <= {guest.tenant for guest in since}
            since = since_last(served, [(g.job, g.back) == (chosen.job, False) for g in served]) or equal
            if not chosen.back:
                assert {guest.job for guest in equal} - {chosen.job} <= {guest.job for guest in since}
            left.remove(chosen)
            served.append(chosen)

    run(story())


def since_last(served: list[Guest], same: list[bool]) -> list[Guest]:
    """Who was served from the last one on that is the same; nobody where there was none."""
    return served[-1 - same[::-1].index(True) :] if True in same else []


def test_jobs_take_turns_and_those_who_come_back_go_first() -> None:
    """A job that wants a hundred does not keep out the one that wants one."""
    wide, narrow, other = Guest(job="t/wide"), Guest(job="t/narrow"), Guest(job="t/other")
    back = Guest(job="t/wide", back=True)
    got = run(order_of(wide, wide, wide, narrow, other, other, back))
    assert got == ["t/wide again", "t/wide", "t/narrow", "t/other", "t/wide", "t/other", "t/wide"]


def test_a_flood_of_one_tenant_leaves_every_second_slot_to_another() -> None:
    """Also one of attempts that an endpoint sent away and that come back."""
    flood = [Guest(job=f"flood/{n}", priority=9, back=n % 2 == 0) for n in range(100)]
    got = run(order_of(*flood, Guest(job="small/1"), Guest(job="small/2")))
    assert {got.index("small/1"), got.index("small/2")} == {1, 3}


def test_slots_go_by_the_weights_of_tenants() -> None:
    """They come with the commands."""

    async def story() -> list[str]:
        house = House(0)
        for n in range(9):
            for tenant, weight in (("a", 2), ("b", 1)):
                order = house.slots.acquire(f"{tenant}/{n}", weight=weight)
                house.tasks[Guest(job=tenant)] = asyncio.create_task(order)
        await house.settle()
        got: list[str] = []
        for house.capacity in range(1, 10):
            house.slots.pump()
            await house.settle()
            got += [g.job for g, task in house.tasks.items() if task.done()][len(got) :]
            done = Counter(guest.job for guest, task in house.tasks.items() if task.done())
            assert abs(done["a"] - 2 * house.capacity / 3) <= 1
        for task in house.tasks.values():
            task.cancel()
        return got

    assert len(run(story())) == 9


def test_urgent_jobs_go_first_within_their_tenant() -> None:
    """And as they came among equals."""
    guests = (("low", 1), ("old", 5), ("high", 9), ("new", 5))
    got = run(order_of(*(Guest(job=f"t/{name}", priority=priority) for name, priority in guests)))
    assert got == ["t/high", "t/old", "t/new", "t/low"]


def test_one_cancelled_in_the_moment_it_is_given_a_slot_gives_it_on() -> None:
    """Neither it nor the next in line may keep the slot from use."""

    async def story() -> None:
        house = House(1)
        holder = house.come("a")
        await house.settle()
        second, third = house.come("b"), house.come("c")
        await house.settle()
        holder.go.set()
        await asyncio.sleep(0)  # the slot is given to the second, which has not noticed
        assert house.slots.taken == 1
        assert house.slots.waiting == 1
        house.tasks[second].cancel()
        await house.settle()
        assert third.holds
        assert house.slots.taken == 1

    run(story())


def test_without_capacity_all_wait_until_there_is_some() -> None:
    """As in a process that owns no lane at the moment."""

    async def story() -> None:
        house = House(0)
        guests = [house.come("a") for _ in range(3)]
        await house.settle()
        assert not any(guest.holds for guest in guests)
        house.capacity = 2
        house.slots.pump()
        await house.settle()
        assert [guest.holds for guest in guests] == [True, True, False]

    run(story())


def test_while_many_of_a_tenant_are_away_nobody_new_of_it_begins() -> None:
    """Their time runs in the line of an endpoint; who comes back is let in, and so is another tenant."""

    async def story() -> None:
        house = House(2)
        for _ in range(AWAY * 2):
            await house.slots.acquire("a/early")
            house.slots.step_out("a/early")
        new, other = house.come("a/late"), house.come("b/late")
        await house.settle()
        assert (new.holds, other.holds) == (False, True)
        assert not house.slots.stuck, "nobody else may begin"
        await asyncio.wait_for(house.slots.acquire("a/early", back=True), 1)
        house.slots.release("a/early")
        await house.settle()
        assert new.holds
        for _ in range(AWAY * 2 - 1):
            house.slots.stay_away("a/early")
        new.go.set()
        other.go.set()
        await house.settle()
        assert (house.slots.taken, house.slots.waiting, house.slots.away) == (0, 0, {})

    run(story())
