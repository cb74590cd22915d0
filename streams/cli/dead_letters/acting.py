"""What the commands on dead letters do."""

import asyncio
import getpass
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager

import typer

from streams import letters, redriving
from streams.cli.dead_letters import view
from streams.cli.dead_letters.choosing import place_of
from streams.cli.environment import settings
from streams.cli.exits import Exit, Stop
from streams.cli.output import console, print_json, say
from streams.cli.quiet import quiet
from streams.client import Swarm
from streams.letters import Letter, Place, Wanted
from streams.log import LogUnavailable
from streams.redriving import Done, NotDone, Outcome
from streams.topics import DEAD_LETTERS
from streams.wire.marks import Redriven

Choose = Callable[[], tuple[Place, ...] | Wanted]
"""Raises Stop where what was said on the command line does not fit together."""

Act = Callable[[Swarm, Sequence[Letter]], AsyncGenerator[Outcome, None]]


async def list_letters(
    choose: Callable[[], Wanted], brokers: str | None, prefix: str | None, *, as_json: bool
) -> None:
    """Print those that are wanted."""
    wanted = choose()
    async with _swarm(brokers, prefix) as swarm:
        found = await letters.find(swarm.log, range(swarm.lanes), wanted)
    out = console()
    for letter in found:
        if as_json:
            print_json(view.fields(letter))
        else:
            say(out, view.line(letter))
    if not found and not as_json:
        typer.echo("There are none.", err=True)


async def show_letter(text: str, brokers: str | None, prefix: str | None, *, as_json: bool) -> None:
    """Print one, whole."""
    place = place_of(text)
    async with _swarm(brokers, prefix) as swarm:
        if place[0] >= swarm.lanes:
            raise Stop(f"{DEAD_LETTERS} has no partition {place[0]}", Exit.USAGE)
        letter = await letters.at(swarm.log, place)
    if letter is None:
        raise Stop(f"there is no dead letter at {text}; `anabranch dead-letters list` shows them", Exit.POOR)
    if as_json:
        print_json(view.fields(letter, value=True))
    else:
        view.whole(console(), letter)


async def redrive_letters(
    choose: Choose,
    brokers: str | None,
    prefix: str | None,
    by: str,
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Send them back, and say what came of each."""

    def act(swarm: Swarm, found: Sequence[Letter]) -> AsyncGenerator[Outcome, None]:
        return redriving.redrive(swarm.log, found, lanes=swarm.lanes, by=by or _user())

    jobs = await _each(choose, brokers, prefix, act, "redriven", yes=yes, as_json=as_json)
    if jobs and not as_json:
        typer.echo(f"`anabranch watch {jobs[0]}` shows how a job goes on.", err=True)


async def drop_letters(
    choose: Choose,
    brokers: str | None,
    prefix: str | None,
    by: str,
    *,
    why: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Mark them as done with, and say what came of each."""

    def act(swarm: Swarm, found: Sequence[Letter]) -> AsyncGenerator[Outcome, None]:
        return redriving.drop(swarm.log, found, reason=why, by=by or _user())

    await _each(choose, brokers, prefix, act, "dropped", yes=yes, as_json=as_json)


async def _each(
    choose: Choose,
    brokers: str | None,
    prefix: str | None,
    act: Act,
    doing: str,
    *,
    yes: bool,
    as_json: bool,
) -> list[str]:
    """Do something with each, and say what came of it; the jobs that go on.

    Raises:
        typer.Exit: one was so before, or could not be; with code 1.
        LogUnavailable: the log went away.
    """
    chosen = choose()
    out = console()
    outcomes: list[Outcome] = []

    def tell(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if as_json:
            print_json(view.outcome_fields(outcome))
        else:
            say(out, view.outcome(outcome, doing=doing))

    async with _swarm(brokers, prefix) as swarm:
        if isinstance(chosen, Wanted):
            found = await letters.find(swarm.log, range(swarm.lanes), chosen)
            if not found:
                typer.echo("There are none.", err=True)
                return []
            question = f"{view.counted(found)}: are they to be {doing}?"
            if not yes and not await asyncio.to_thread(typer.confirm, question, err=True):
                raise Stop("nothing was done", Exit.POOR)
        else:
            found = await letters.those(swarm.log, swarm.lanes, chosen)
            for place in sorted(set(chosen) - {letter.place for letter in found}):
                tell(NotDone(place=place, reason="there is no dead letter"))
        try:
            async with aclosing(act(swarm, found)) as coming:
                async for outcome in coming:
                    tell(outcome)
        except LogUnavailable as error:
            raise LogUnavailable(
                f"{error}; {len(outcomes)} of {len(found)} were done or told of, and it may not be known "
                "whether the next one was: do it again, it says so"
            ) from error
    done = [each for each in outcomes if isinstance(each, Done) and not each.again]
    if not as_json:
        typer.echo(f"{len(done)} of {len(outcomes)} {doing}.", err=True)
    marks = [each.mark for each in done if isinstance(each.mark, Redriven)]
    jobs = list(dict.fromkeys(mark.job for mark in marks if mark.job is not None))
    if len(done) < len(outcomes):
        raise typer.Exit(Exit.POOR)
    return jobs


@asynccontextmanager
async def _swarm(brokers: str | None, prefix: str | None) -> AsyncIterator[Swarm]:
    quiet()
    ours = settings(brokers=brokers, prefix=prefix)
    async with Swarm(ours.brokers, prefix=ours.prefix, access=ours.access) as swarm:
        yield swarm


def _user() -> str:
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # a container's user may have no name
        return f"somebody@{socket.gethostname()}"
