"""Slots: never more than there are, nobody forgotten, turns among jobs, and who comes back goes first."""

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from streams.memory_log.virtual_time import run
from streams.slots import Slots


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
    back: bool
    holds: bool = False
    go: asyncio.Event = field(default_factory=asyncio.Event)


class House:
    """Slots and all who came; whoever is in it is looked after."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.slots = Slots(lambda: self.capacity)
        self.tasks: dict[Guest, asyncio.Task[None]] = {}
        self.order: list[Guest] = []

    def come(self, job: str, *, back: bool = False) -> Guest:
        guest = Guest(job=job, back=back)
        self.tasks[guest] = asyncio.create_task(self._stay(guest))
        return guest

    async def _stay(self, guest: Guest) -> None:
        await self.slots.acquire(guest.job, back=guest.back)
        guest.holds = True
        self.order.append(guest)
        try:
            await guest.go.wait()
        finally:
            guest.holds = False
            self.slots.release()

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
                self.come(f"job-{step.which}", back=step.what == "come back")
            case "leave" if leaving:
                leaving[step.which % len(leaving)].go.set()
            case "cancel" if inside:
                self.tasks[inside[step.which % len(inside)]].cancel()
            case "capacity":
                self.capacity = step.which
                self.slots.pump()
            case _:
                pass


@given(steps=STEPS)
def test_never_more_than_there_are_and_nobody_lost(steps: list[Step]) -> None:
    """Whoever comes, goes or is cancelled, in whichever moment: free slots and waiting guests never meet."""

    async def story() -> None:
        house = House(2)
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
            assert not waiting or house.slots.taken >= house.capacity
            if any(guest in waiting for guest in back):
                assert all(guest.back for guest in house.order[seen:])
            back, seen = [guest for guest in waiting if guest.back], len(house.order)
        house.capacity = 1
        house.slots.pump()
        for _ in range(len(house.tasks) + 1):
            for guest in house.here(holding=True):
                guest.go.set()
            await house.settle()
        assert all(task.done() for task in house.tasks.values())
        assert (house.slots.taken, house.slots.waiting) == (0, 0)

    run(story())


def test_jobs_take_turns_and_those_who_come_back_go_first() -> None:
    """A job that wants a hundred does not keep out the one that wants one."""

    async def story() -> None:
        house = House(1)
        house.come("first")
        await house.settle()
        for job in ("wide", "wide", "wide", "narrow", "other", "other"):
            house.come(job)
        house.come("wide", back=True)
        await house.settle()
        for _ in range(8):
            for guest in house.here(holding=True):
                guest.go.set()
            await house.settle()
        assert [(guest.job, guest.back) for guest in house.order] == [
            ("first", False),
            ("wide", True),
            ("wide", False),
            ("narrow", False),
            ("other", False),
            ("wide", False),
            ("other", False),
            ("wide", False),
        ]

    run(story())


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
