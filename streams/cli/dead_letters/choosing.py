"""Which dead letters a command is about: places, or filters."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.exits import Exit, Stop
from streams.cli.options import moment

if TYPE_CHECKING:
    from streams.letters import Place, Wanted


class Lots(StrEnum):
    """What became of dead letters."""

    WAITING = "waiting"
    REDRIVEN = "redriven"
    DROPPED = "dropped"


Places = Annotated[
    list[str] | None,
    typer.Argument(metavar="[PARTITION:OFFSET]...", help="Their places, as `list` shows them."),
]
Topic = Annotated[
    str,
    typer.Option(help="Of this topic: goals, subtasks or job-events.", show_default=False),
]
Partition = Annotated[int | None, typer.Option(min=0, help="Of this partition of it.", show_default=False)]
Job = Annotated[
    str,
    typer.Option(help="Of this job, tenant/id; the id alone for the tenant `default`.", show_default=False),
]
Key = Annotated[str, typer.Option(help="Whose original has this key.", show_default=False)]
Reason = Annotated[
    str, typer.Option(metavar="TEXT", help="With this text in the reason.", show_default=False)
]
Until = Annotated[
    str, typer.Option(metavar="WHEN", help="Nothing from this time on; as --since.", show_default="now")
]
All = Annotated[bool, typer.Option("--all", help="All that wait.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
By = Annotated[str, typer.Option(help="Who does it.", show_default="the user of this machine")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What was said on the command line of dead letters that are wanted."""

    topic: str
    partition: int | None
    job: str
    key: str
    reason: str
    since: str
    until: str

    @property
    def any(self) -> bool:
        """Whether anything was said."""
        return self.partition is not None or any(
            (self.topic, self.job, self.key, self.reason, self.since, self.until)
        )

    def wanted(self, lot: Lots | None) -> "Wanted":
        """Those that match.

        Raises:
            Stop: a time is none.
        """
        from streams.cli.watch import named
        from streams.letters import FOREVER, Wanted

        return Wanted(
            topic=self.topic,
            partition=self.partition,
            job=named(self.job) if self.job else "",
            key=self.key,
            reason=self.reason,
            since=moment(self.since),
            until=moment(self.until, "--until") if self.until else FOREVER,
            lot=None if lot is None else lot.value,
        )

    def chosen(self, places: Sequence[str] | None, *, every: bool) -> "tuple[Place, ...] | Wanted":
        """The places given, or those that wait and match.

        Raises:
            Stop: nothing was said, or two things that exclude each other.
        """
        if places:
            if self.any or every:
                raise Stop("give either places, or filters", Exit.USAGE)
            return tuple(dict.fromkeys(map(place_of, places)))
        if not self.any and not every:
            raise Stop("say which: places, filters such as --topic and --since, or --all", Exit.USAGE)
        return self.wanted(Lots.WAITING)


def place_of(text: str) -> "Place":
    """Partition and offset.

    Raises:
        Stop: it is no place.
    """
    partition, _, offset = text.partition(":")
    if not (partition.isascii() and partition.isdigit() and offset.isascii() and offset.isdigit()):
        raise Stop(f"{text!r} is no place: write PARTITION:OFFSET, as `list` shows it", Exit.USAGE)
    return int(partition), int(offset)
